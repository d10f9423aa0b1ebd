"""What a box is asked for, and how a program is started in it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anyio

from skillup.dataclass import frozen
from skillup.process.run import ProcessOutcome, ProcessRequest, run_process, run_quiet
from skillup.schema.record import SandboxInfo
from skillup.schema.suite import Limits

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store")  # Every box has them
_MANAGERS = "VOLTA_HOME NVM_DIR FNM_DIR ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR PYENV_ROOT"
"""Folders of version managers: programs in there need the rest of it."""

Start = Callable[[ProcessRequest], Awaitable[ProcessOutcome]]


class NoBoxError(Exception):
    """A sandbox that is asked for cannot be had: why, and what to do."""


@frozen
class BoxPlan:
    """What is to be inside. All paths are real ones, and are the same there."""

    writable: Sequence[Path]
    temporary: Path  # Writable, too; it is /tmp, besides
    readable: Sequence[Path] = ()
    programs: Sequence[Path] = ()  # Of this machine, where a box has not its own; only to read, too
    program: str | None = None  # Which of them is started; None: the box has its own
    port: int = 0  # Of the box's own loopback; the one way out, to the gateway. 0: there is none
    socket: Path = Path()  # The gateway's
    proxy: Any = None  # Keeps its way to other hosts open while the box is there
    variables: Mapping[str, str] = field(default_factory=dict)  # Set for all that runs inside
    open_network: bool = False  # It has the machine's own
    nested: bool = False  # What runs inside makes sandboxes of its own
    limits: Limits = field(default_factory=Limits.model_construct)
    image: str | None = None


NOTHING = BoxPlan((), Path())


@frozen
class Probe:
    """Whether a kind of sandbox works on this machine."""

    version: str = ""
    problem: str | None = None  # Why it does not, and what to do about that
    open: tuple[str, ...] = ()  # What it cannot close here
    copies: bool = False  # It has not our files


def answer_of(*argv: str, env: Mapping[str, str] | None = None) -> tuple[int | None, str]:
    """The exit code of a short command, and the last line that it said."""
    from concurrent.futures import ThreadPoolExecutor

    env = env or {"PATH": os.defpath}
    run = partial(run_quiet, argv, cwd=Path("/"), env=env, timeout_seconds=_PROBE_SECONDS)
    with ThreadPoolExecutor(1) as thread:  # an event loop may be running in this one
        done = thread.submit(anyio.run, run).result()
    said = f"{done.start_error or ''}\n{done.stderr}\n{done.stdout}".split("\n")
    return done.exit_code, next((line.strip() for line in reversed(said) if line.strip()), "")


@dataclass(frozen=True)
class Box:
    """Where the programs of a trial run, opened once for it. This one is the machine, as it is."""

    info: SandboxInfo | None = None  # For the record
    command: tuple[str, ...] = ()  # What makes the box, or leads into it: `podman exec -i`
    plan: BoxPlan = NOTHING
    has_own_programs: ClassVar[bool] = False  # Those of an image
    isolates: ClassVar[bool] = False  # What is outside cannot be reached from inside

    def request(self, request: ProcessRequest) -> ProcessRequest:
        """`request`, to run inside; its directory must be there."""
        return request

    async def run(self, request: ProcessRequest, start: Start = run_process) -> ProcessOutcome:
        """Runs it inside, by `start`. Raises OSError if files cannot be copied there, or back."""
        return await start(self.request(request))

    async def close(self) -> None:
        """Ends all that is left inside."""


NO_BOX = Box()
_PROBE_SECONDS = 60.0


def rlimits(limits: Limits) -> dict[str, int]:
    """By the system's names, in bytes."""
    given = {
        "data": (limits.memory_mb or 0) << 20,
        "fsize": (limits.file_mb or 0) << 20,
        "nofile": limits.open_files,
        "nproc": limits.processes,
    }
    return {name: value for name, value in given.items() if value}


def outermost(paths: Iterable[Path], system: Sequence[str] = _SYSTEM) -> list[Path]:
    """Without those that come with others, or with the system's."""
    own, known = dict.fromkeys(paths), {Path(place) for place in system}
    others = known.union(own)
    return [path for path in own if path not in known and others.isdisjoint(path.parents)]


def installation(command: Iterable[str], variables: Mapping[str, str]) -> list[Path]:
    """What of this machine's own a command needs to run, outside of the system's directories.

    Never a home, nor a folder just because a program lies in it: links on the way to it, its file,
    and the packages or the version manager that it is part of.
    """
    found: dict[Path, None] = {}
    home = variables.get("HOME", "/")
    managers = [Path(value) for name in _MANAGERS.split() if (value := variables.get(name))]
    managers = [place for place in managers if not Path(home).is_relative_to(place)]
    for word in command:
        place = word if "/" in word else shutil.which(word, path=variables.get("PATH"))
        if place is not None and os.path.isabs(place) and os.path.exists(place):  # noqa: PTH110, PTH117
            found |= dict.fromkeys(_parts(Path(place), managers, variables))
    if sys.base_prefix not in ("/usr", "/usr/local"):
        found[Path(sys.base_prefix)] = None
    return list(found)


def _parts(place: Path, managers: Sequence[Path], variables: Mapping[str, str]) -> Iterator[Path]:
    for manager in managers:
        if place.is_relative_to(manager):
            yield manager
    real = place.resolve()
    if not real.is_file():
        return
    for one in (place, real):
        packages = [above for above in one.parents if above.name == "node_modules"]
        yield packages[-1] if packages else one
    prefix = real.parent.parent
    if real.name == "node" and (prefix / "lib/node_modules").is_dir():
        yield prefix
    if real.name == "__main__.py":  # Of a Python package
        package = real.parent
        while (package.parent / "__init__.py").is_file():
            package = package.parent
        yield package
    with real.open("rb") as file:
        first = file.read(256).split(b"\n", 1)[0]
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").split()
        if words and words[0].endswith("/env"):
            words = [word for word in words[1:] if not word.startswith("-")]
        yield from installation(words[:1], variables)
