"""Disobedient child processes for tests, and the proof that none of them is left."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import psutil

from skillup.process.output import OnLine
from skillup.process.run import ProcessOutcome, ProcessRequest, run_process
from skillup.process.tree import new_marker

GUARD_SECONDS = 60.0

# What every child script can use: note() writes down its pid, so that a test can look for it later;
# daemon() forks twice, so that what it runs has no parent, and detached() once, in a new session.
_PRELUDE = """
import os, signal, sys, time
HERE = os.environ["CHILDREN_DIR"]
def note(name="child"):
    with open(f"{HERE}/{os.getpid()}.tmp", "w") as file:
        file.write(name)
    os.rename(f"{HERE}/{os.getpid()}.tmp", f"{HERE}/{os.getpid()}.pid")
def say(text):
    os.write(1, text.encode() + b"\\n")
def ignore(*signals):
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
def wait_for_notes(count):
    while len([n for n in os.listdir(HERE) if n.endswith(".pid")]) < count:
        time.sleep(0.01)
def close_output():
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
def detached(action):
    if os.fork() == 0:
        os.setsid()
        action()
        os._exit(0)
def daemon(action):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            action()
        os._exit(0)
    os.waitpid(pid, 0)
def linger():
    note("lingering")
    time.sleep(300)
note("main")
"""


def is_alive(pid: int) -> bool:
    """Whether there is such a process; whoever has inherited a dead one may clear it away later."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Children:
    """A directory of child scripts and the pids of all that ran from it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pid_directory = directory / "pids"
        self.pid_directory.mkdir(parents=True)
        self._scripts = 0

    def script(self, body: str) -> Path:
        self._scripts += 1
        file = self.directory / f"child{self._scripts}.py"
        file.write_text(_PRELUDE + textwrap.dedent(body), encoding="utf-8")
        return file

    @property
    def env(self) -> Mapping[str, str]:
        own = {"CHILDREN_DIR": str(self.pid_directory), "PYTHONPATH": os.pathsep.join(sys.path)}
        return {"PATH": os.environ.get("PATH", ""), **own}

    def request(self, body: str, **options: Any) -> ProcessRequest:
        """A request that runs ``body``; options are those of :class:`ProcessRequest`."""
        options.setdefault("env", self.env)
        options.setdefault("timeout_seconds", GUARD_SECONDS)
        options.setdefault("grace_seconds", 0.3)
        options.setdefault("marker", new_marker())
        argv = (sys.executable, str(self.script(body)))
        return ProcessRequest(argv, self.directory, **options)

    def run(self, body: str, on_line: OnLine | None = None, **options: Any) -> ProcessOutcome:
        """Runs ``body`` to its end and proves that nothing of it is left."""
        outcome = anyio.run(run_process, self.request(body, **options), on_line)
        self.assert_none_left()
        return outcome

    def pids(self, name: str = "") -> list[int]:
        """Of all that noted themselves, alive or not; those of one name, if it is given."""
        files = self.pid_directory.glob("*.pid")
        return sorted(int(file.stem) for file in files if name in file.read_text("utf-8"))

    def wait_for_pids(self, count: int, name: str = "") -> list[int]:
        """Blocks until that many (of one name, if it is given) have noted themselves."""
        deadline = time.monotonic() + GUARD_SECONDS
        while len(self.pids(name)) < count:
            assert time.monotonic() < deadline, f"only {len(self.pids(name))} of {count} children"
            time.sleep(0.01)
        return self.pids(name)

    def alive(self) -> list[psutil.Process]:
        """Every process that inherited this directory in its environment or noted its pid."""
        found = []
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("CHILDREN_DIR") == str(self.pid_directory)
                noted = process.pid in self.pids() and process.ppid() == os.getpid()
            except psutil.Error:
                continue
            if (ours or noted) and process.pid != os.getpid():
                found.append(process)
        return found

    def assert_none_left(self) -> None:
        """Neither alive nor as zombies; and no zombie of anyone's became ours."""
        assert self.alive() == []
        zombies = [
            child
            for child in psutil.Process().children()
            if child.status() == psutil.STATUS_ZOMBIE and child.pid in self.pids()
        ]
        assert zombies == []
