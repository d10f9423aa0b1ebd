"""A Dask cluster of real processes on loopback, each with a home and temporary files of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.project import wait_until

_ADDRESS = re.compile(r"Scheduler at:\s+(tcp://\S+)\n")
_REGISTERED = re.compile(r"Registered to:\s+tcp://\S+\n")


class DaskCluster:
    """A scheduler, and workers as they are asked for; :meth:`close` ends all of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "home").mkdir()
        (root / "tmp").mkdir()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", ["scheduler", "--port", "0"], _ADDRESS, {})
        found = _ADDRESS.search(self.log("scheduler"))
        assert found is not None
        self.address = found[1]

    def start_worker(
        self, name: str, *, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A worker that the scheduler knows of when this returns."""
        arguments = ["--name", name, "--nthreads", "1", "--no-nanny"]
        arguments += ["--local-directory", str(self.root / name)]
        command = ["worker", self.address, *arguments]
        return self._start(name, command, _REGISTERED, env or {})

    def log(self, name: str) -> str:
        return (self.root / f"{name}.log").read_text()

    def kill_scheduler(self) -> None:
        self._processes[0].kill()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            with suppress(subprocess.TimeoutExpired):
                process.wait(3)
            process.kill()
            process.wait()

    def _start(
        self, name: str, command: Sequence[str], ready: re.Pattern[str], env: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        kind, *arguments = command
        log = self.root / f"{name}.log"
        own = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TZ")}
        own |= {"HOME": str(self.root / "home"), "TMPDIR": str(self.root / "tmp")}
        own |= {"PYTHONPATH": str(Path(__file__).parents[2]), **env}
        host = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        program = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, *host]
        with log.open("wb") as output:
            process = subprocess.Popen(
                program,
                cwd=self.root,  # else Python finds the skillup of this folder first
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes.append(process)
        wait_until(lambda: ready.search(log.read_text()), process)
        return process
