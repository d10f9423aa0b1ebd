"""Everything that must stand before the first turn: workspace, skills, environment, context."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.engines.base import Progress, TrialContext
from skillup.load.variables import MissingVariableError, expand
from skillup.process import new_marker
from skillup.schema.record import FileState, SkillInfo, TurnError
from skillup.trial.message import look_at
from skillup.trial.references import keep_references
from skillup.trial.request import TrialEvent, TrialRequest
from skillup.trial.skills import skills_for
from skillup.trial.telling import AgentWatcher
from skillup.workspace import BlobStore, Snapshot, prepare_workspace


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
