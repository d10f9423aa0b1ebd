"""A process on a worker of a cluster that runs a few trials, as `skillup run` would.

On stdin it gets what :mod:`skillup.executors.cluster.worker` asks: the request of the run, its
paths as the client has them, and a directory, whose `root` takes the place of `/` here. What came
of it is in `run` there, and in the file `answer.json`. It ends when its worker does.
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
from skillup.errors import FullDiskError, InvalidFilesError, RunDirectoryError, SkillupError
from skillup.executors.cluster.worker import ANSWER_FILE, NO_ROOM
from skillup.load.trust import VARIABLE
from skillup.plan import Plan

_LOOK_SECONDS = 0.5
_STOP_SECONDS = 60.0


def main() -> int:
    """Do what stdin asks for."""
    task = json.loads(sys.stdin.buffer.read())
    os.dup2(2, 1)  # nobody reads stdout
    threading.Thread(target=_end_with, args=(task["parent"],), daemon=True).start()
    # The client has looked at what the suites may do; here is only what it sent, without `.git`.
    os.environ[VARIABLE] = "1"
    root = f"{task['directory']}/root"
    try:
        request = _placed_below(root, task["request"])
        os.chdir(request.directory)
        plan, _ = plan_of(request)
        answer = _run(task, request, plan)
        Path(task["directory"], ANSWER_FILE).write_text(json.dumps(answer))
    except (SkillupError, BaseExceptionGroup) as error:
        refused = error if isinstance(error, SkillupError) else first_skillup_error(error)
        if refused is None:
            raise
        wrong = refused.problems[:3] if isinstance(refused, InvalidFilesError) else ()
        text = [*map(str, wrong), refused.message, refused.hint]
        with suppress(OSError):  # where no disk has room: the code says enough
            line = "; ".join(filter(None, text)).replace(root, "")
            sys.stderr.write(" ".join(line.split()) + "\n")  # the last line is what the client gets
            sys.stderr.flush()
        return NO_ROOM if isinstance(refused, FullDiskError | RunDirectoryError) else 1
    return 0


def _end_with(parent: int) -> None:
    """End this process as Ctrl-C would once `parent` is not its parent any more."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


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


def _run(task: dict[str, Any], request: RunRequest, plan: Plan) -> dict[str, Any]:
    """Run ``task["jobs"]``; why their run has stopped, and the errors that they met, by kind."""
    chosen = set(task["jobs"])
    # What they depend on has been seen to by the client.
    jobs = tuple(replace(job, depends_on=()) for job in plan.jobs if job.id in chosen)
    if len(jobs) != len(chosen):
        raise SkillupError("the suites make another plan there than here")
    with RunSession(
        # Whether a case is decided the client knows.
        replace(request, until_decided=False),
        Plan(jobs),
        path=Path(task["directory"], "run"),
        run_id=task["run_id"],
        about={"references": task["references"], "jobs": [job.id for job in jobs]},
        own_process=True,
    ) as session:
        anyio.run(until_signalled, partial(session.run, _Nobody()))
        reason = session.options.stopping.reason
        errors = [grade.error for grade in session.grades.values() if grade.error is not None]
    stop = reason.model_dump(mode="json") if reason is not None else None
    return {"stop": stop, "errors": {error["kind"]: error["message"] for error in errors}}


class _Nobody:
    """Observes the run: what happened is in its directory."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


if __name__ == "__main__":
    sys.exit(main())
