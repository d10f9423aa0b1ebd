"""A process on a worker of a cluster that holds a few trials, as `skillup run` would.

It is asked by the first line of stdin, from :mod:`skillup.executors.cluster.on_worker`: the request
of the run, its paths as the client has them, and the directory that takes the place of `/` here. It
says a line of JSON on stdout for each thing that happens, and for what it asks the client, whose
answers are further lines of stdin. It ends when its worker does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import anyio

from skillup import __version__
from skillup.app.planning import plan_of, secrets_of_plan
from skillup.app.request import RunRequest, parse_vars, request_from
from skillup.app.run_session import RunSession, first_skillup_error
from skillup.app.shutdown import until_signalled
from skillup.engines.registry import get_engine
from skillup.errors import FullDiskError, InvalidFilesError, RunDirectoryError, SkillupError
from skillup.executors import RunOptions
from skillup.executors.cluster.asking import ClientRequests, RemotePacing, lines_of
from skillup.executors.cluster.spawned import NO_ROOM
from skillup.executors.cluster.telling import UnitReports, watch_parent
from skillup.executors.shared_prefix import with_relatives
from skillup.judges.models.cache import AnswerCache, AnswerFolder
from skillup.load.trust import VARIABLE
from skillup.plan import Plan
from skillup.store import RunDirectory
from skillup.trial.message import now


def main() -> int:
    """Do what stdin asks for."""
    lines = lines_of(sys.stdin.fileno())
    asked = json.loads(next(lines))
    watch_parent(asked["parent"])
    root = asked["root"]
    # The client has looked at what the suites may do; here is only what it sent, without `.git`.
    os.environ[VARIABLE] = "1"
    try:
        request = _placed_below(root, asked["request"])
        os.chdir(request.directory)
        plan, _ = plan_of(request)
        if asked["mode"] == "look":
            found = anyio.run(_profiles, plan)
            _say({"event": "looked", "profiles": found, "jobs": [job.id for job in plan.jobs]})
        else:
            _hold(asked, request, plan, lines)
    except SkillupError as error:
        return _refused(error, root)
    except BaseExceptionGroup as group:
        refused = first_skillup_error(group)
        if refused is None:
            raise
        return _refused(refused, root)
    return 0


def _refused(error: SkillupError, root: str) -> int:
    """Say why nothing more is held; the exit code."""
    problems = [str(p) for p in error.problems[:3]] if isinstance(error, InvalidFilesError) else []
    said = "; ".join([*problems, error.message, *filter(None, [error.hint])])
    # Where no disk has room there may be none for this, either: the code says enough.
    with suppress(OSError):
        sys.stderr.write(said.replace(root, "") + "\n")
        sys.stderr.flush()
    return NO_ROOM if isinstance(error, FullDiskError | RunDirectoryError) else 1


def _say(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _placed_below(root: str, given: dict[str, Any]) -> RunRequest:
    """The request, its absolute paths below `root`; relative ones start from its directory."""

    def placed(path: str) -> str:
        return root + path if path.startswith("/") else path

    request = request_from({"request": given})
    return replace(
        request,
        directory=placed(request.directory),
        paths=tuple(placed(path) for path in request.paths),
        engines=tuple(placed(name) for name in request.engines),
    )


async def _profiles(plan: Plan) -> dict[str, dict[str, str | None]]:
    """By profile, the version of its CLI, why it cannot be used here, and why it may not be."""
    found: dict[str, dict[str, str | None]] = {}
    for profile in {job.profile.name: job.profile for job in plan.jobs}.values():
        available = await get_engine(profile.engine).check(profile, os.environ)
        problem = available.problem.message if available.problem is not None else None
        doubt = next(iter(available.notes), None)
        found[profile.name] = {"version": available.version, "problem": problem, "doubt": doubt}
    return found


def _hold(asked: dict[str, Any], request: RunRequest, plan: Plan, answers: Iterator[bytes]) -> None:
    wanted = set(asked["jobs"])
    # What they depend on has been seen to by the client.
    jobs = tuple(replace(job, depends_on=()) for job in plan.jobs if job.id in wanted)
    if len(jobs) != len(wanted):
        raise SkillupError("the suites make another plan here than at the client")
    plan = Plan(tuple(with_relatives(jobs, plan.jobs, asked["counted"])))
    environment, base = dict(os.environ), Path(request.directory)
    secrets = secrets_of_plan(plan, base, environment)
    info = {
        "schema_version": "skillup.run/1",
        "run_id": asked["run_id"],
        "skillup_version": __version__,
        "started_at": now(),
        "request": asdict(request),
        "jobs": [job.id for job in jobs],
        "references": asked["references"],
    }
    with RunDirectory.create(Path(asked["directory"]), info, mask=secrets.mask) as directory:
        own = AnswerFolder(directory.judge_answers, secrets.mask, needed=True)
        telling = UnitReports(secrets.mask)
        asking = ClientRequests(telling.say, answers)
        options = RunOptions(
            run_id=asked["run_id"],
            environment=environment,
            secrets=secrets,
            parallel=1,
            patience=asking.patience,
            turns_shared=telling.turns_shared,
            variables=parse_vars(request.variables),
            seed=request.seed,
            own_process=True,
        )
        session = RunSession(
            request,
            plan,
            directory,
            AnswerCache(own, None, anew=request.no_judge_cache),
            options,
            RemotePacing(asking, asked["run_id"], request.patience_seconds),
        )

        async def hold() -> None:
            async with asking.listening():
                await session.run(telling)

        anyio.run(until_signalled, hold)
    _say({"event": "end"})


if __name__ == "__main__":
    sys.exit(main())
