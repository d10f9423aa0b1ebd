"""What comes before a conversation: can it be, the box, the workspace, the past in the session."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.dataclass import mutable
from skillup.engines.base import (
    AddressedEngine,
    EngineTurn,
    HistorySeeder,
    SessionResumer,
    TrialContext,
)
from skillup.load.profiles import MissingVariableError, expand
from skillup.load.semantics import unsupported_in
from skillup.process.live import LiveSlot
from skillup.process.tree import new_marker
from skillup.sandbox.base import NO_BOX, Box, BoxPlan, NoBoxError, installation
from skillup.schema import templates
from skillup.schema.case import Input, Turn, UserAnswer
from skillup.schema.grade import Judging
from skillup.schema.record import Checkpoint, EngineInfo, Record, TurnError, TurnRecord, utc_now
from skillup.schema.suite import lead_of, needs_simulator
from skillup.trial.artifacts import keep_references
from skillup.trial.history import Past, as_template, past_of, with_unanswered
from skillup.trial.request import TrialEvent, TrialRequest
from skillup.trial.session import AgentWatcher, LiveSession, look_at, no_resume_error, put_back
from skillup.workspace.disk import ensure_directory, refuse_full_disk, same_path
from skillup.workspace.prepare import prepare_workspace, skills_for
from skillup.workspace.snapshot import Snapshot


@mutable
class OpenTrial:
    """A trial whose conversation can be run, or be gone on with."""

    request: TrialRequest
    record: Record  # What there is of it so far, without turns
    session: LiveSession
    turns: Sequence[Turn]  # All turns of the case
    variables: dict[str, str]
    done: Sequence[TurnRecord] = ()  # The turns that ran before this session was forked, or resumed
    used_seconds: float = 0.0  # How long they took; the conversation's own limit is over all of it
    earlier_seconds: float = 0.0  # The same, with the preparations
    judging: Judging | None = None
    """What judges used meanwhile, in a part of the conversation that another process ran."""


def context_of(
    request: TrialRequest,
    workspace: Path,
    home: Path,
    added: Mapping[str, str],
    skills: Mapping[str, Path],
    session_id: str | None = None,
    marker: str | None = None,
    box: Box = NO_BOX,
) -> TrialContext:
    """What the engine is given of the trial. All paths are real ones."""
    job = request.job
    profile, command = job.profile, job.suite.suite.environment.command
    if command and box.has_own_programs:
        profile = profile.model_copy(update={"command": command})
    made = TrialContext(
        profile=profile,
        workspace=workspace,
        home=home,
        streams=request.streams,
        environment=request.environment,
        secrets=request.secrets,
        extra_env=added,
        marker=marker or new_marker(),
        session_id=session_id or str(uuid.uuid4()),
        skills=skills,
        version=request.engine_version,
        script=job.loaded.case.scripted,
        attempt=request.attempt,
        seed=request.seed,
        progress=AgentWatcher(job.id, request.notify),
        live=LiveSlot() if job.profile.session == "live" else None,
        box=box,
        case_id=job.loaded.id,
        variant=job.variant,
    )
    return _behind_gateway(request, made)


def _behind_gateway(request: TrialRequest, trial: TrialContext) -> TrialContext:
    """The trial with its model behind the run's gateway: its agent has an address, and no key.

    With `isolation: shared` the user's own settings of the CLI say where its model is.
    """
    gateway, profile, engine = request.gateway, trial.profile, request.engine
    if gateway is None or profile.gateway == "off" or profile.isolation == "shared":
        return trial
    # As an AddressedEngine: `isinstance` takes longer than all the rest.
    address = getattr(engine, "model_address", None)
    if address is None or (found := address(trial)) is None:
        return trial
    (url, names), given = found, (trial.environment, trial.extra_env)
    secrets = trial.secrets.also_of({**given[0], **given[1]}, names)
    route = gateway.route(url, trial.streams, secrets.mask_bytes)
    environment, extra = (
        {k: route.placeholder(v) if k in names and v else v for k, v in variables.items()}
        for variables in given
    )
    for name in ("no_proxy", "NO_PROXY"):  # else it would ask a proxy for our address
        environment[name] = ",".join(filter(None, (environment.get(name), "127.0.0.1")))
    return replace(trial, environment=environment, extra_env=extra, gateway=route, secrets=secrets)


async def open_trial(request: TrialRequest, record: Record) -> OpenTrial | TurnError:
    """Make everything that the first turn needs."""
    problem = case_problem(request)
    if problem is not None:
        return problem
    return await in_box(request, partial(_open_in, request, record))


async def _open_in(
    request: TrialRequest, record: Record, box: Box, added: Mapping[str, str]
) -> OpenTrial | TurnError:
    case, engine = request.job.loaded.case, request.engine
    turns = case.input.all_turns()
    if len(turns) > 1 and not isinstance(engine, SessionResumer):
        if request.job.suite.suite.on_no_resume != "single_shot":
            return no_resume_error(engine.name)
        # All messages as one.
        parts = [f"Message {n}:\n{as_template(turn)}" for n, turn in enumerate(turns, start=1)]
        intro = f"These are {len(turns)} messages. Work through them in order."
        turns = [Turn(content="\n\n".join([intro, *parts]))]
        record = record.model_copy(update={"execution_mode": "single_shot"})
    given = {**case.vars, **request.variables}
    try:
        past = Past()
        if case.input.history:
            past = await anyio.to_thread.run_sync(
                past_of, case.input, given, abandon_on_cancel=True
            )
        filled_once(case.input, {**given, **past.variables})
    except templates.UnresolvedNameError as missing:
        return TurnError(kind="template", message=f"`input`: {missing}")
    if past.miss is not None:
        return TurnError(kind="capture", message=past.miss)
    if past.unanswered and turns and turns[0].respond is not None:
        what = "the history ends with a message of the user's, and the simulated user writes the "
        fix = "next: leave the last one out, or give turn 1 a `content`"
        return TurnError(kind="unsupported", message=what + fix)
    variables = {**given, **past.variables}
    prepared = await _prepare(request, variables, box, added)
    if isinstance(prepared, TurnError):
        return prepared
    live, skills = prepared
    references = keep_references(case, request.job.suite.root, live.blobs, variables)
    placed = EngineTurn()
    if past.items:
        if not (isinstance(engine, HistorySeeder) and isinstance(engine, SessionResumer)):
            what = f"{engine.name} cannot be given a history; use another engine with --engine"
            return TurnError(kind="unsupported", message=what)
        placed = await engine.seed(past.items, live.context)
        if placed.error is not None:
            return placed.error
        live.session, live.fingerprint = placed.session, placed.fingerprint
        live.prompts = tuple(item.content for item in past.items if item.role == "user")
    record = record.model_copy(
        update={
            "sandbox": box.info,
            "skills": list(skills),
            "references": references,
            "initial_files": live.snapshot.files,
            "initial_variables": variables,
            "history": list(past.items),
            "notes": [*past.notes, *placed.notices],
        }
    )
    turns = with_unanswered(turns, past.unanswered)
    return OpenTrial(request, record, live, turns, dict(variables))


def case_problem(request: TrialRequest) -> TurnError | None:
    """Why the conversation cannot be run, known before anything of it is made."""
    case = request.job.loaded.case
    missing = [*unsupported_in(request.job.suite.suite), *unsupported_in(case)]
    if missing:
        what = "; ".join(dict.fromkeys(message for _, message in missing))
        return TurnError(kind="unsupported", message=what)
    turns, most = len(case.input.turns or ()), case.turn_limit
    if most is not None and turns > most:
        what = f"the case has {turns} turns, and its conversation may have {most} at most"
        return TurnError(kind="max_turns", message=what)
    if not needs_simulator(case):
        return None
    if request.simulator is None:
        what = "the case needs a simulated user, and there is nobody to play it"
        return TurnError(kind="judge", message=f"{what}: set `user_simulator.model` in eval.yaml")
    lead = lead_of(case)
    most = lead.max_turns if lead is not None else len(case.input.all_turns())
    if most > 1 and not isinstance(request.engine, SessionResumer):
        what = f"{request.engine.name} cannot resume a session, and a simulated user answers what "
        fix = "the agent said before; use another engine (single_shot is no way out here)"
        return TurnError(kind="no_resume", message=what + fix)
    return None


async def _prepare(
    request: TrialRequest, variables: Mapping[str, str], box: Box, added: Mapping[str, str]
) -> tuple[LiveSession, Sequence[Any]] | TurnError:
    """Workspace, skills and home; the session to be, and the skills that were installed."""
    job = request.job
    case, suite = job.loaded.case, job.suite.suite
    request.notify(TrialEvent(job.id, "preparing"))
    skills = skills_for(job.suite, job.variant)
    if isinstance(skills, TurnError):
        return skills
    home, temporary, workspace = (
        same_path(f"{request.scratch}/{name}") for name in ("home", "tmp", "workspace")
    )
    ensure_directory(home, 0o700)
    ensure_directory(temporary, 0o700)
    # For git and setup commands: enough to find programs, and nothing of the user's own.
    kept = ("PATH", "LANG", "TZ")
    environment = {k: v for k, v in request.environment.items() if k in kept}
    environment |= {"TMPDIR": str(temporary), "HOME": str(home)}
    marker = new_marker()
    made = await prepare_workspace(
        case.context,
        suite_root=job.suite.root,
        destination=workspace,
        variables=variables,
        skills=skills,
        skill_directories=request.engine.skill_directories(),
        env={**environment, **added},
        marker=marker,
        setup_steps=[step.run for step in suite.environment.setup_steps],
        timeout_seconds=case.timeout_seconds or job.profile.timeout_seconds,
        box=box,
    )
    if isinstance(made, TurnError):
        return made
    paths = {skill.info.name: made.root / skill.directories[0] for skill in made.skills}
    context = context_of(request, made.root, home, added, paths, marker=marker, box=box)
    if (problem := unreachable(request, context)) is not None:
        return problem
    infos = tuple(skill.info for skill in made.skills)
    snapshot = Snapshot({}, started_ns=time.time_ns())
    if not made.is_empty:
        snapshot = await look_at(made.root, request.blobs)
    live = LiveSession(request.engine, context, request.blobs, snapshot, was_empty=made.is_empty)
    return live, infos


def filled_once(given: Input, variables: Mapping[str, str]) -> tuple[str | None, list[UserAnswer]]:
    """The added system prompt and the answers, for all turns. Raises UnresolvedNameError."""
    answers = [a if a.literal else templates.fill("answers", a, variables) for a in given.answers]
    if given.system is None or given.literal:
        return given.system, answers
    return templates.render(given.system, variables), answers


def new_record(request: TrialRequest) -> Record:
    """The record of a job of which nothing has happened yet."""
    job, profile = request.job, request.job.profile
    return Record(
        run_id=request.run_id,
        suite=job.suite.name,
        suite_root=str(job.suite.root),
        case_id=job.loaded.id,
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
        started_at=utc_now(),
        duration_ms=0,
    )


def ended(record: Record, clock: float, **update: Any) -> Record:
    """`record`, with all that is to be said at its end; `clock` is when it began (monotonic)."""
    duration = max(0, round((time.monotonic() - clock) * 1000))
    return record.model_copy(update={"duration_ms": duration, **update})


# Going on with a conversation that another process began.


def request_digest(request: TrialRequest) -> str:
    """Of case and engine: a conversation is only gone on with if they are the same."""
    job = request.job
    facts = {
        "case": job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "profile": job.profile.model_dump(mode="json"),
        "version": request.engine_version,
        "variant": job.variant,
        "variables": dict(request.variables),
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


async def resume_trial(request: TrialRequest, checkpoint: Checkpoint) -> OpenTrial | str:
    """The trial, ready for its next turn; or why it must begin anew. Raises FullDiskError."""
    try:
        if checkpoint.asked_sha256 != request_digest(request):
            return "the case, its variables or the engine were changed since"
        home, workspace = request.scratch / "home", request.scratch / "workspace"
        if not home.is_dir() or home.is_symlink():
            return "its scratch directory is gone"
        files, signature = checkpoint.session_files, checkpoint.workspace_sha256
        problem = await anyio.to_thread.run_sync(
            put_back, home.resolve(), workspace, files, signature, checkpoint.session
        )
        if problem is not None:
            return problem
        opened = await in_box(request, partial(_resume, request, checkpoint))
        return opened.message if isinstance(opened, TurnError) else opened
    except OSError as refused:
        refuse_full_disk(refused, request.scratch)
        return f"what it left could not be read: {refused.strerror or refused}"


async def _resume(
    request: TrialRequest, checkpoint: Checkpoint, box: Box, added: Mapping[str, str]
) -> OpenTrial:
    case = request.job.loaded.case
    past = await anyio.to_thread.run_sync(past_of, case.input, {**case.vars, **request.variables})
    workspace, home = ((request.scratch / name).resolve() for name in ("workspace", "home"))
    skills = {name: workspace / path for name, path in checkpoint.skills.items()}
    snapshot = await look_at(workspace, request.blobs)
    session_id = checkpoint.chosen_session_id
    context = context_of(request, workspace, home, added, skills, session_id=session_id, box=box)
    record, done = checkpoint.record, checkpoint.record.turns
    request.streams.remove_from(len(done) + 1)
    state = checkpoint.session.session_id, checkpoint.session, checkpoint.messages
    session = LiveSession(request.engine, context, request.blobs, snapshot, *state)
    sent = (one for turn in done for one in turn.executed())
    session.prompts = tuple(one.content for one in sent if not one.slash_command)
    many = "turn 1 was" if len(done) == 1 else f"turns 1–{len(done)} were"
    note = f"resumed after turn {len(done)}: {many} run by an earlier start of the run"
    earlier = done, checkpoint.elapsed_seconds, checkpoint.elapsed_ms / 1000, record.judging
    turns = with_unanswered(case.input.all_turns(), past.unanswered)
    record = record.model_copy(
        update={"turns": [], "judging": None, "notes": [*record.notes, note]}
    )
    return OpenTrial(request, record, session, turns, dict(checkpoint.variables), *earlier)


# The box of a trial: made of what its suite asks for, and what its agent needs to run in it.

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


async def in_box(
    request: TrialRequest,
    work: Callable[[Box, Mapping[str, str]], Awaitable[OpenTrial | TurnError]],
) -> OpenTrial | TurnError:
    """What `work` makes in the trial's box, which is closed if that is an error.

    It is also given what suite and profile add to the agent's environment, filled in.
    """
    given = request.job.suite.suite.environment.env
    try:
        # The profile's own were filled in when it was read: once more would undo its `$$`.
        added = {name: expand(value, request.environment) for name, value in given.items()}
    except MissingVariableError as missing:
        message = f"the environment cannot be made: {'; '.join(missing.args)}"
        return TurnError(kind="setup", message=message)
    box = await _trial_box(request)
    if isinstance(box, TurnError):
        return box
    opened: OpenTrial | TurnError | None = None
    try:
        opened = await work(box, {**added, **request.job.profile.env})
        return opened
    finally:
        if opened is None or isinstance(opened, TurnError):
            with anyio.CancelScope(shield=True):
                await box.close()


async def _trial_box(request: TrialRequest) -> Box | TurnError:
    """Where the trial's programs run. Its directories are made."""
    job, given = request.job, request.job.suite.suite.environment
    asked = given.asked(request.environment)
    if asked == "none":
        return NO_BOX
    from skillup.sandbox.opening import open_box

    if job.profile.isolation == "shared":
        what = "`isolation: shared` is your own home, which a sandbox hides"
        return TurnError(kind="setup", message=f"{what}; leave one of the two out")
    programs = installation(request.command, {**request.environment, **job.profile.env})
    readable = []
    for path in given.read:
        place = job.suite.root.absolute() / Path(path).expanduser()
        if not place.exists():
            return TurnError(kind="setup", message=f"`environment.read`: there is no {place}")
        if job.suite.path.resolve().is_relative_to(place.resolve()):
            what = f"`environment.read`: {place} holds the suite, and its answers"
            return TurnError(kind="setup", message=f"{what}; name what agents need of it")
        readable.append(place)
    for name in ("workspace", "home", "tmp"):
        (request.scratch / name).mkdir(mode=0o777 if name == "workspace" else 0o700, exist_ok=True)
    places = [(request.scratch / name).resolve() for name in ("workspace", "home", "tmp")]
    gateway, hosts = request.gateway, given.allowed_egress
    proxy = gateway.route("", hosts=hosts) if gateway is not None and hosts else None
    open_network = given.network_policy == "allow_all"
    url = proxy.proxy_url if proxy is not None else ""  # the user's own is out of reach
    plan = BoxPlan(
        writable=places[:2],
        temporary=places[2],
        readable=readable,
        programs=programs,
        program=None if given.command or not request.command else request.command[0],
        port=gateway.port if gateway is not None else 0,
        socket=gateway.socket if gateway is not None else Path(),
        proxy=proxy,
        variables={} if open_network else dict.fromkeys(_PROXIES, url),
        open_network=open_network,
        nested=job.profile.permission != "full",
        limits=given.limits,
        image=given.image,
    )
    try:
        return await open_box(asked, given, plan)
    except NoBoxError as problem:
        return TurnError(kind="setup", message=str(problem))


def unreachable(request: TrialRequest, trial: TrialContext) -> TurnError | None:
    """The model of an agent that asks it past the gateway, in a box without network."""
    info = trial.box.info
    closed = info is not None and trial.box.isolates and not info.network
    if not closed or trial.gateway is not None or not isinstance(request.engine, AddressedEngine):
        return None
    what = f"no way leads from the sandbox to the model of {trial.profile.name}"
    why = "with this login, or `gateway: off`, its requests do not go through skillup"
    fix = "name the model's hosts in `environment.allowed_egress`, or set a key"
    return TurnError(kind="setup", message=f"{what}: {why}; {fix}")
