"""A process on a worker of a cluster that runs a few trials, as `skillup run` would.

In its directory `root` takes the place of `/`, `message.json` says what to run, `run` comes of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from skillup.app.interruption import first_skillup_error, until_signalled
from skillup.app.planning import RunRequest, plan_of, request_from
from skillup.app.run_session import RunSession
from skillup.errors import SkillupError
from skillup.load.discover import TRUST
from skillup.plan import Plan


def main() -> None:
    message = json.loads(Path(sys.argv[1], "message.json").read_text())
    os.dup2(2, 1)  # nobody reads stdout
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The client has looked at what the suites may do; here is only what it sent, without `.git`.
    os.environ[TRUST] = "1"
    request, root = request_from(message), f"{sys.argv[1]}/root"
    request = replace(
        request,
        directory=root + request.directory,
        paths=tuple(root + path for path in request.paths),
        engines=tuple(root + name if name[0:1] == "/" else name for name in request.engines),
    )
    try:
        _run(message, request)
    except (SkillupError, BaseExceptionGroup) as error:
        refused = first_skillup_error(error)
        if refused is None:
            raise
        text = "; ".join(filter(None, [refused.message, refused.hint]))
        sys.exit(" ".join(text.replace(root, "").split()))  # the client gets the last line


def _end_with_parent() -> None:
    """End this process as Ctrl-C would once its parent, which holds the pipe, is gone."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
    os.kill(os.getpid(), signal.SIGKILL)


def _run(message: dict[str, Any], request: RunRequest) -> None:
    """Run ``message["jobs"]``; the journal says why their run has stopped."""
    os.chdir(request.directory)
    plan, _ = plan_of(request)
    chosen = set(message["jobs"])
    # What they depend on has been seen to by the client.
    jobs = tuple(replace(job, depends_on=()) for job in plan.jobs if job.id in chosen)
    if len(jobs) != len(chosen):
        raise SkillupError("the suites make another plan there than here")
    with RunSession(
        request,
        Plan(jobs),
        path=Path(sys.argv[1], "run"),
        run_id=message["run_id"],
        about={
            "references": message["references"],
            "jobs": [job.id for job in jobs],
            "used": {},  # the client knows it
        },
        own_process=True,
    ) as session:
        anyio.run(until_signalled, partial(session.run, _Nobody()))
        reason = session.options.stopping.reason
        if reason is not None:
            session.directory.journal("run_stopped", stop=reason.model_dump(mode="json"))


class _Nobody:
    """Observes the run: what happened is in its directory."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


if __name__ == "__main__":
    main()
