"""A process on a worker of a cluster that runs a few trials, as `skillup run` would.

On stdin it gets what :mod:`skillup.executors.cluster.worker` asks: the request of the run, its
paths as the client has them, and the directory that takes the place of `/` here. What came of it is
in the directory `run`, and in the file `answer.json` beside it. It ends when its worker does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from skillup.app.planning import plan_of
from skillup.app.request import RunRequest, request_from
from skillup.app.run_session import RunSession, first_skillup_error
from skillup.app.shutdown import until_signalled
from skillup.engines.registry import get_engine
from skillup.errors import FullDiskError, InvalidFilesError, RunDirectoryError, SkillupError
from skillup.executors.cluster.worker import ANSWER_FILE, NO_ROOM
from skillup.load.trust import VARIABLE
from skillup.plan import Plan

_LOOK_SECONDS = 0.5
_STOP_SECONDS = 60.0


def main() -> int:
    """Do what stdin asks for."""
    asked = json.loads(sys.stdin.buffer.read())
    os.dup2(2, 1)  # nobody reads stdout
    threading.Thread(target=_end_with, args=(asked["parent"],), daemon=True).start()
    # The client has looked at what the suites may do; here is only what it sent, without `.git`.
    os.environ[VARIABLE] = "1"
    try:
        request = _placed_below(asked["root"], asked["request"])
        os.chdir(request.directory)
        plan, _ = plan_of(request)
        answer = _check(asked, plan) if asked["mode"] == "check" else _run(asked, request, plan)
        Path(asked["directory"], ANSWER_FILE).write_text(json.dumps(answer))
    except SkillupError as error:
        return _refused(error, asked["root"])
    except BaseExceptionGroup as group:
        refused = first_skillup_error(group)
        if refused is None:
            raise
        return _refused(refused, asked["root"])
    return 0


def _end_with(parent: int) -> None:
    """End this process as Ctrl-C would once `parent` is not its parent any more."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _refused(error: SkillupError, root: str) -> int:
    """Say on stderr, in one line, why no trials are run; the exit code."""
    problems = [str(p) for p in error.problems[:3]] if isinstance(error, InvalidFilesError) else []
    text = "; ".join([*problems, error.message, *filter(None, [error.hint])])
    # Where no disk has room there may be none for this, either: the code says enough.
    with suppress(OSError):
        sys.stderr.write(" ".join(text.replace(root, "").split()) + "\n")
        sys.stderr.flush()
    return NO_ROOM if isinstance(error, FullDiskError | RunDirectoryError) else 1


def _placed_below(root: str, given: dict[str, Any]) -> RunRequest:
    """The request, its paths below `root`, without what only the client decides."""
    request = request_from({"request": given})
    return replace(
        request,
        directory=root + request.directory,
        paths=tuple(root + path for path in request.paths),
        engines=tuple(root + name if name[0:1] == "/" else name for name in request.engines),
        executor="local",
        parallel=1,
        max_fail=None,
        max_cost_usd=None,
        max_tokens=None,
        time_limit=None,
    )


def _check(asked: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Why the plan cannot be run here, and why it may not; the versions of the CLIs."""
    found: dict[str, Any] = {"problem": None, "doubt": None, "versions": {}}

    async def look() -> None:
        for profile in {job.profile.name: job.profile for job in plan.jobs}.values():
            about = await get_engine(profile.engine).check(profile, os.environ)
            found["versions"][profile.name] = about.version
            problem = about.problem.message if about.problem is not None else None
            for what, text in (("problem", problem), ("doubt", next(iter(about.notes), None))):
                if text and found[what] is None:
                    prefix = "" if text.startswith(f"{profile.name}: ") else f"{profile.name}: "
                    found[what] = prefix + text

    anyio.run(look)
    if found["problem"] is None and [job.id for job in plan.jobs] != asked["jobs"]:
        found["problem"] = "the suites make another plan there than here"
    return found


def _run(asked: dict[str, Any], request: RunRequest, plan: Plan) -> dict[str, Any] | None:
    """Run ``asked["jobs"]``; why their run has stopped, if it has."""
    chosen = set(asked["jobs"])
    # What they depend on has been seen to by the client.
    jobs = tuple(replace(job, depends_on=()) for job in plan.jobs if job.id in chosen)
    if len(jobs) != len(chosen):
        raise SkillupError("the suites make another plan here than at the client")
    with RunSession.open(
        # Whether a case is decided the client knows.
        replace(request, until_decided=False),
        Plan(jobs),
        path=Path(asked["directory"], "run"),
        run_id=asked["run_id"],
        about={"references": asked["references"], "jobs": [job.id for job in jobs]},
        own_process=True,
    ) as session:
        anyio.run(until_signalled, partial(session.run, _Nobody()))
        reason = session.options.stopping.reason
    return reason.model_dump(mode="json") if reason is not None else None


class _Nobody:
    """Observes the run: what happened is in its directory."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


if __name__ == "__main__":
    sys.exit(main())
