"""A whole project in a temporary directory, and the command run in it as a user would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.store import RunDirectory
from tests.support.exported import stored_record
from tests.support.forked import FORKS, FRESH

GUARD_SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def data(self) -> Any:
        return json.loads(self.stdout)


def wait_until(is_so: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
    """Fails if it takes too long, or if the process ends before."""
    end = time.monotonic() + GUARD_SECONDS
    while not is_so():
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


class Project:
    """Files in a directory; `run` is the command line there, with a home of its own."""

    def __init__(self, root: Path, *, indexed: bool = False) -> None:
        """`indexed`: its runs are put into an index, as a user's are; a quarter of a short run."""
        self.indexed = indexed
        self.root = root / "project"
        self.home = root / "home"
        self.root.mkdir()
        self.home.mkdir()

    def write(self, files: Mapping[str, str]) -> Project:
        """Write files; texts are dedented."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return self

    def holding(self, folder: Path) -> Project:
        """With a copy of all that is in the folder."""
        shutil.copytree(folder, self.root, dirs_exist_ok=True, symlinks=True)
        return self

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """A small environment, so that nothing of the developer's own plays a part."""
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR", "TZ")}
        own = {"HOME": str(self.home)} | ({} if self.indexed else {"SKILLUP_INDEX": "none"})
        return {**kept, **own, **(extra or {})}

    def run(self, *arguments: str, env: Mapping[str, str] | None = None, cwd: str = ".") -> Outcome:
        """`skillup ARGUMENTS`, to its end."""
        own = self.environment(env)
        if not any(name.startswith(FRESH) for name in env or ()):
            ended = FORKS.run(arguments, self.root / cwd, own, GUARD_SECONDS)
            if ended is not None:
                return Outcome(ended[0], ended[1].decode(), ended[2].decode())
        done = subprocess.run(
            [sys.executable, "-m", "skillup", *arguments],
            cwd=self.root / cwd,
            env=own,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=GUARD_SECONDS,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(
        self, *command: str, env: Mapping[str, str] | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """A command to its end, with a `skillup` on its PATH; `more`: as subprocess has it."""
        programs, own = self.root.parent / "bin", self.environment(env)
        own["PATH"] = f"{programs}{os.pathsep}{own['PATH']}"
        usual = {"cwd": self.root, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        usual |= {"stdin": subprocess.DEVNULL, "timeout": GUARD_SECONDS, "check": False}
        with FORKS.on_path(programs) as line:
            return subprocess.run(command, env=own, pass_fds=[line], text=True, **{**usual, **more})

    @contextmanager
    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, module: str = "skillup"
    ) -> Iterator[subprocess.Popen[str]]:
        """`skillup ARGUMENTS`, going on while the test does something to it."""
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=self.root,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()

    def run_json(self, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        """`skillup run ARGUMENTS --json`: the result, whatever the exit code."""
        return self.run("run", *arguments, "--json", env=env).data

    def latest_run(self) -> Path:
        return max((self.root / ".skillup" / "runs").iterdir())

    def journal(self, event: str | None = None, *, run: str | None = None) -> list[Any]:
        """The latest run's, or that of `run`; the events of one kind alone, if it is given."""
        place = self.latest_run() if run is None else self.root / run
        with RunDirectory.open(place) as directory:
            return [one for one in directory.events() if event in (None, one["event"])]

    def record(self, job: str, *, run: str | None = None) -> Any:
        return stored_record(self.latest_run() if run is None else self.root / run, job)
