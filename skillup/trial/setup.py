"""What comes before a conversation: is it possible, the workspace, the past in the session."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.engines.base import Progress, SessionResumer, TrialContext
from skillup.load.model import LoadedSuite
from skillup.load.profiles import MissingVariableError, expand
from skillup.load.semantics import too_many_turns, unsupported_in_case, unsupported_in_suite
from skillup.plan import Variant
from skillup.process import new_marker
from skillup.schema.case import Turn
from skillup.schema.grade import Judging
from skillup.schema.judge import SkillRef
from skillup.schema.record import EngineInfo, FileState, Record, SkillInfo, TurnError, TurnRecord
from skillup.schema.templates import UnresolvedNameError
from skillup.trial.artifacts import keep_references
from skillup.trial.history import (
    as_template,
    past_of,
    place_history,
    unanswered_problem,
    with_unanswered,
)
from skillup.trial.message import LiveSession, look_at, no_resume_error, now, system_of
from skillup.trial.request import AgentWatcher, TrialEvent, TrialRequest
from skillup.trial.simulated_conversation import simulation_problem
from skillup.workspace import (
    BlobStore,
    SkillToInstall,
    Snapshot,
    prepare_workspace,
    skill_name,
    skill_problem,
    unusable,
)

# Which skills a trial gets: those under test (not in the baseline), and distractors.


def skills_for(suite: LoadedSuite, variant: Variant) -> list[SkillToInstall] | TurnError:
    """The skills to install; a TurnError of kind `setup` names one that is not a skill."""
    wanted: list[SkillToInstall] = []
    for ref in under_test(suite) if variant == "with_skill" else ():
        source = (suite.root / ref.path).resolve()
        problem = unusable(source, as_is=ref.as_is)
        if problem is not None:
            return TurnError(kind="setup", message=f"skill {ref.path}: {problem}")
        name = ref.name or skill_name(source)
        wanted.append(
            SkillToInstall(name, source, ref.include, ref.exclude, ref.target, as_is=ref.as_is)
        )
    for distractor in suite.suite.distractors:
        source = (suite.root / distractor).resolve()
        problem = skill_problem(source)
        if problem is not None:
            return TurnError(kind="setup", message=f"distractor {distractor}: {problem}")
        wanted.append(SkillToInstall(skill_name(source), source, role="distractor"))
    return wanted


def under_test(suite: LoadedSuite) -> list[SkillRef]:
    """The suite's skills; where it names none, the skill whose directory holds `evals/`."""
    if suite.suite.skills is not None:
        return suite.suite.skills
    holds_evals = suite.path.resolve().parent.name == "evals"
    if holds_evals and Path(suite.root / "SKILL.md").is_file():
        return [SkillRef(path=".")]
    return []


# Everything that must stand before the first turn: workspace, skills, environment, context.


@dataclass(frozen=True, slots=True)
class Prepared:
    """A trial that is ready for its first turn."""

    context: TrialContext
    blobs: BlobStore
    snapshot: Snapshot
    skills: tuple[SkillInfo, ...]
    references: dict[str, FileState]
    variables: dict[str, str]


async def prepare(
    request: TrialRequest, rebuilt: Mapping[str, str] | None = None
) -> Prepared | TurnError:
    """Make the workspace and what goes with it; a TurnError says what could not be made.

    `rebuilt` are variables that the history defines; they outrank all others.
    """
    job = request.job
    case, suite = job.loaded.case, job.suite.suite
    request.notify(TrialEvent(job.id, "preparing"))
    variables = {**case.vars, **request.variables, **(rebuilt or {})}
    added = extra_variables(request)
    if isinstance(added, TurnError):
        return added
    skills = skills_for(job.suite, job.variant)
    if isinstance(skills, TurnError):
        return skills
    workspace, home = request.scratch / "workspace", request.scratch / "home"
    home.mkdir(mode=0o700, parents=True)
    marker = new_marker()
    made = await prepare_workspace(
        case.context,
        suite_root=job.suite.root,
        destination=workspace,
        variables=variables,
        skills=skills,
        skill_directories=request.engine.skill_directories(),
        env=_setup_environment(request.environment, added, home),
        marker=marker,
        setup_steps=[step.run for step in suite.environment.setup_steps],
        timeout_seconds=case.timeout_seconds or job.profile.timeout_seconds,
    )
    if isinstance(made, TurnError):
        return made
    blobs = request.blobs
    context = context_of(
        request, made.root, home.resolve(), added, made.skill_paths, str(uuid.uuid4()), marker
    )
    return Prepared(
        context=context,
        blobs=blobs,
        snapshot=await look_at(made.root, blobs),
        skills=made.skills,
        references=keep_references(case, job.suite.root, blobs, variables),
        variables=variables,
    )


def extra_variables(request: TrialRequest) -> dict[str, str] | TurnError:
    """What suite and profile add to the agent's environment, filled in."""
    job = request.job
    try:
        # The profile's own were filled in when it was read: once more would undo its `$$`.
        own = _expand_all(job.suite.suite.environment.env, request.environment)
    except MissingVariableError as missing:
        message = f"the environment cannot be made: {missing}; {missing.fix}"
        return TurnError(kind="setup", message=message)
    return {**own, **job.profile.env}


def context_of(
    request: TrialRequest,
    workspace: Path,
    home: Path,
    added: Mapping[str, str],
    skills: Mapping[str, Path],
    session_id: str,
    marker: str,
) -> TrialContext:
    """What the engine is told of the trial. All paths are real ones."""
    job = request.job
    return TrialContext(
        profile=job.profile,
        workspace=workspace,
        home=home,
        raw_dir=request.raw_dir,
        environment=request.environment,
        secrets=request.secrets,
        extra_env=added,
        marker=marker,
        session_id=session_id,
        skills=skills,
        version=request.engine_version,
        script=job.loaded.case.scripted,
        attempt=request.attempt,
        seed=request.seed,
        progress=activity_of(request),
    )


def activity_of(request: TrialRequest) -> Progress:
    """Tells the run's observer what the trial's agent is doing."""
    return AgentWatcher(request.job.id, request.notify)


def _expand_all(values: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    return {name: expand(value, environment) for name, value in values.items()}


def _setup_environment(
    environment: Mapping[str, str], added: Mapping[str, str], home: Path
) -> dict[str, str]:
    """For git and setup commands: enough to find programs, and nothing of the user's own."""
    kept = {k: v for k, v in environment.items() if k in ("PATH", "LANG", "TZ", "TMPDIR")}
    return {**kept, "HOME": str(home), **added}


@dataclass(slots=True)
class Opened:
    """A trial whose conversation can be held, or be gone on with."""

    request: TrialRequest
    record: Record
    """What there is of it so far, without turns."""
    live: LiveSession
    turns: Sequence[Turn]
    """All turns of the case."""
    variables: dict[str, str]
    held: Sequence[TurnRecord] = ()
    """The turns that were held before this session was forked off."""
    held_seconds: float = 0.0
    """How long they took; the conversation's own limit is over all of it."""
    earlier_ms: int = 0
    """The same, with the preparations."""
    judging: Judging | None = None
    """What judges took meanwhile, in a part of the conversation that another process held."""


async def open_trial(request: TrialRequest, record: Record) -> Opened | Record:
    """Make everything that the first turn needs; a Record, with its error, if that cannot be."""
    case = request.job.loaded.case
    suite = request.job.suite.suite
    missing = [*unsupported_in_suite(suite), *unsupported_in_case(case)]
    if missing:
        what = "; ".join(dict.fromkeys(message for _, message in missing))
        return _refused(record, TurnError(kind="unsupported", message=what))
    excess = too_many_turns(case)
    if excess is not None:
        return _refused(record, TurnError(kind="max_turns", message=excess))
    unplayable = simulation_problem(request)
    if unplayable is not None:
        return _refused(record, unplayable)
    turns = case.input.all_turns()
    if len(turns) > 1 and not isinstance(request.engine, SessionResumer):
        if suite.on_no_resume != "single_shot":
            return _refused(record, no_resume_error(request.engine.name))
        turns = [_joined(turns)]
        record = record.model_copy(update={"execution_mode": "single_shot"})
    given = {**case.vars, **request.variables}
    try:
        past = await anyio.to_thread.run_sync(past_of, case.input, given, abandon_on_cancel=True)
        system_of(case.input, {**given, **past.variables})
    except UnresolvedNameError as missing:
        return _refused(record, TurnError(kind="template", message=f"`input`: {missing}"))
    if past.miss is not None:
        return _refused(record, TurnError(kind="capture", message=past.miss))
    homeless = unanswered_problem(turns, past.unanswered)
    if homeless is not None:
        return _refused(record, homeless)
    prepared = await prepare(request, past.variables)
    if isinstance(prepared, TurnError):
        return _refused(record, prepared)
    record = record.model_copy(
        update={
            "skills": list(prepared.skills),
            "references": prepared.references,
            "initial_files": dict(prepared.snapshot.files),
            "initial_variables": prepared.variables,
            "notes": list(past.notes),
        }
    )
    live = LiveSession(request.engine, prepared.context, prepared.blobs, prepared.snapshot)
    if past.items:
        placed = await place_history(request.engine, past.items, prepared.context)
        if placed.error is not None:
            return _refused(record, placed.error)
        live.session, live.fingerprint = placed.session, placed.fingerprint
        notes = [*past.notes, *placed.notices]
        record = record.model_copy(update={"history": list(past.items), "notes": notes})
    turns = with_unanswered(turns, past.unanswered)
    return Opened(request, record, live, turns, dict(prepared.variables))


def new_record(request: TrialRequest) -> Record:
    """The record of a job of which nothing has happened yet."""
    job, profile = request.job, request.job.profile
    return Record(
        run_id=request.run_id,
        suite=job.suite.name,
        suite_root=str(job.suite.root),
        case_id=job.loaded.case.id,
        case=job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        engine=EngineInfo(
            profile=profile.name,
            adapter=profile.engine,
            command=list(profile.command or ()),
            version=request.engine_version,
            model=profile.model,
            permission=profile.permission,
            isolation=profile.isolation,
        ),
        variant=job.variant,
        trial=job.trial,
        attempt=request.attempt,
        branch_of=job.loaded.branch_of,
        started_at=now(),
        duration_ms=0,
    )


def ended(record: Record, clock: float, *, earlier_ms: int = 0, **update: Any) -> Record:
    """`record`, with all that is to be said at its end; `clock` is when it began (monotonic)."""
    duration = max(0, earlier_ms + round((time.monotonic() - clock) * 1000))
    return record.model_copy(update={"duration_ms": duration, **update})


def _refused(record: Record, error: TurnError) -> Record:
    return record.model_copy(update={"error": error})


def _joined(turns: list[Turn]) -> Turn:
    """All messages as one, for an engine that cannot resume (the suite asked for it)."""
    parts = [f"Message {n}:\n{as_template(turn)}" for n, turn in enumerate(turns, start=1)]
    intro = f"These are {len(turns)} messages. Work through them in order."
    return Turn(content="\n\n".join([intro, *parts]))
