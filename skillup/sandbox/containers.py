"""docker and podman: a container for a trial, in which each of its programs is an `exec`.

The container lives as long as its input is open: it goes with us, however we end. Directories are
mounted where they are; where the daemon has not our files, they are copied.
"""

from __future__ import annotations

import io
import os
import resource
import secrets
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.process.live import LiveSlot
from skillup.process.run import ProcessOutcome, ProcessRequest, run_process, start_process
from skillup.process.tree import OWNER_VARIABLE, TRIAL_VARIABLE
from skillup.sandbox import channel, transfer
from skillup.sandbox.base import (
    Box,
    BoxPlan,
    NoBoxError,
    Probe,
    Start,
    answer_of,
    outermost,
    rlimits,
)
from skillup.sandbox.channel import Channel
from skillup.schema.record import SandboxInfo

_FIRST = Path(channel.__file__).read_text("utf-8")
_SILENT_SECONDS = 60.0  # So long nothing may come or go
_SERVE = Path(transfer.__file__).read_bytes() + b"\nserve()\n"
_Facts = dict[str, list[Any]]
_USER = 1000  # Inside, in place of root
_SECONDS = 60.0  # How long a container may take to start
_SPARED = frozenset({"docker", "podman", "conmon", "containerd-shim", "runc", "crun"})
_OWN = {"HOME", "PATH", "TMPDIR", "SSH_AUTH_SOCK"}
_OF_PODMAN = "{{with .Host}}{{.Hostname}} {{.ServiceIsRemote}} {{.CgroupControllers}}{{end}}"
_ASK: Mapping[str, tuple[str, ...]] = {
    "docker": ("info", "--format", "{{.ServerVersion}} {{.Name}}"),
    "podman": ("info", "--format", f"{{{{.Version.Version}}}} {_OF_PODMAN}"),
}
_WHERE = ("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
_FIX = {
    "docker": "start its daemon (`sudo systemctl start docker`), and be in its group",
    "podman": "see what `podman info` says",
}


def _client() -> dict[str, str]:
    """The environment of the client: the user's own, as far as it is about that."""
    kept = ("DOCKER_", "CONTAINER", "XDG_")
    return {k: v for k, v in os.environ.items() if k in _OWN or k.startswith(kept)}


@cache
def probe(kind: str) -> Probe:
    """Whether it runs containers here, and shares files with them; asked once."""
    program = shutil.which(kind)
    if program is None:
        return Probe(problem=f"there is no program `{kind}`; install it")
    code, said = answer_of(program, *_ASK[kind], env=_client())
    if code != 0:
        return Probe(problem=f"{said}; {_FIX[kind]}")
    version, name, remote, controllers, *_ = [*said.split(" ", 3), "", "", ""]
    if kind == "docker":
        is_ours = answer_of(program, *_WHERE, env=_client())[1].startswith("unix:")
    else:
        is_ours = remote == "false"
    # Docker Desktop's is in a virtual machine, which has a name of its own; a container has one.
    copies = sys.platform != "linux" or not is_ours or name != socket.gethostname()
    unlimited = kind == "podman" and "pids" not in controllers
    about = f"{kind} {version}{', files are copied' * copies}"
    return Probe(about, open=("processes without limit",) * unlimited, copies=copies)


class Copies:
    """Inside, a `user` writes to the `places`; what is `readable` is root's."""

    def __init__(
        self, channel: Channel, places: Sequence[Path], readable: Sequence[Path], user: int
    ) -> None:
        self._channel, self._user = channel, user
        self._places = [str(place) for place in places]
        self._readable = [str(one) for path in readable for one in {path, path.resolve()}]
        self._here: _Facts = {}  # When both were last the same
        self._there: _Facts = {}

    async def sync(self, *, ends: bool = False) -> None:
        """Sends what changed here, then fetches what changed there. Raises OSError.

        `ends`: with the latest program ends all that it left running. Who is cancelled waits.
        """
        if self._readable:
            order = {"roots": self._readable, "user": 0, "ends": False, "removed": []}
            await self._beside(lambda way: _ask(way, order, transfer.listing(self._readable)))
            self._readable = []
        await self._beside(lambda stream: self._sync(stream, ends))

    async def _beside(self, exchange: Callable[[Any], object]) -> None:
        def work() -> None:
            near, far = socket.socketpair()
            near.settimeout(_SILENT_SECONDS)
            # Where nobody reads that waits, too.
            threading.Thread(target=self._channel.open, args=(far, _SERVE), daemon=True).start()
            with near, near.makefile("rwb") as stream:
                exchange(stream)

        try:
            await anyio.to_thread.run_sync(work)
        except Exception as error:
            why = getattr(error, "strerror", None) or error
            said = f"files were not copied to the container, or from it: {why}"
            raise OSError(getattr(error, "errno", None), said) from error

    def _sync(self, stream: Any, ends: bool) -> None:
        here = transfer.listing(self._places)
        sent = {path: facts for path, facts in here.items() if self._here.get(path) != facts}
        order = {"roots": self._places, "user": self._user, "ends": ends}
        order["removed"] = [path for path in self._here if path not in here]
        there = _ask(stream, order, sent)
        inside = tuple(f"{place}/" for place in self._places)
        for path in there:
            if not f"{path}/".startswith(inside) or os.path.normpath(path) != path:
                raise OSError(f"{path!r} is not in its directories")
        for place in self._places:
            if there.get(place, [""])[0] != "directory":
                raise OSError(f"{place} is gone inside, or was replaced")
        changed = {p: f for p, f in there.items() if p not in sent and self._there.get(p) != f}
        gone = [path for path in here if path not in there]
        transfer.write_line(stream, [*changed])
        stream.flush()
        transfer.receive(stream, gone, changed.__contains__)
        self._here, self._there = transfer.listing(self._places) if changed or gone else here, there


def _ask(stream: Any, order: dict[str, Any], sent: _Facts) -> _Facts:
    """What is in the roots inside, when what is sent is there."""
    transfer.write_line(stream, order)
    transfer.send(stream, sent)
    found: _Facts = transfer.read_line(stream)
    return found


@dataclass(frozen=True)
class ContainerBox(Box):
    """A running container."""

    has_own_programs = isolates = True
    name: str = ""
    slot: LiveSlot = field(default_factory=LiveSlot)  # With the client that is attached to it
    channel: Channel | None = None
    copies: Copies | None = None  # None: our directories are mounted

    def request(self, request: ProcessRequest) -> ProcessRequest:
        given = {**request.env, **self.plan.variables}
        given.pop("PATH", None)  # the image has its own
        # Not in the client's own environment, nor where all can see them.
        lines = {name: value for name, value in given.items() if "\n" not in value}
        self.file.touch(0o600)
        self.file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        said = [f"{name}={given[name]}" for name in given.keys() - lines]
        said += () if self.copies else (TRIAL_VARIABLE, OWNER_VARIABLE)
        variables = ["--env-file", str(self.file), *(part for one in said for part in ("-e", one))]
        program, *arguments = request.argv
        found = shutil.which(program, path=request.env.get("PATH"))
        if program == sys.executable:
            program = "python3"
        elif found is not None and Path(found) in (*self.plan.programs, *self.plan.readable):
            program = found
        inside = ("--workdir", os.fspath(request.cwd), *variables, self.name, program, *arguments)
        # One elsewhere passes no signals on: it is ended, and by `sync` what it started.
        spared = frozenset() if self.copies else _SPARED
        return replace(request, argv=(*self.command, *inside), env=_client(), spared=spared)

    async def run(self, request: ProcessRequest, start: Start = run_process) -> ProcessOutcome:
        if self.copies is None:
            return await super().run(request, start)
        await self.copies.sync()
        outcome = await super().run(request, start)
        await self.copies.sync(ends=outcome.ended_by != "kept")
        return outcome

    async def close(self) -> None:
        self.file.unlink(missing_ok=True)
        if self.channel is not None:
            threading.Thread(target=self.channel.close, daemon=True).start()
        await self.slot.end()

    @property
    def file(self) -> Path:
        """Of variables; beside what is inside."""
        return self.plan.temporary.with_name("variables")


async def open_box(plan: BoxPlan, info: SandboxInfo) -> Box:
    """The container of a trial, where the probe found that it works. Raises NoBoxError."""
    if plan.limits.processes and info.open:
        raise NoBoxError(f"`limits.processes` is not kept by {info.kind} here (no cgroup for it)")
    copies = probe(info.kind).copies
    plan = _without_programs(plan, info.kind) if copies else plan
    program, name = shutil.which(info.kind) or info.kind, f"skillup-{secrets.token_hex(8)}"
    first = ("python3", "-I", "-S", "-c", _FIRST, str(plan.port))
    options = [*_options(info.kind, plan, copies=copies), "--name", name, plan.image or "", *first]
    argv = (program, "run", *options)
    child = start_process(ProcessRequest(argv, Path("/"), _client(), b" ", spared=_SPARED))
    if isinstance(child, str):
        raise NoBoxError(child)
    slot, said = LiveSlot(child), b""
    pipe = io.FileIO(child.stdout, closefd=False)
    try:
        with anyio.move_on_after(_SECONDS):
            said = await anyio.to_thread.run_sync(pipe.readline, abandon_on_cancel=True)
    except BaseException:
        await slot.end()
        raise
    if said != b"ready\n":
        complaints = (await slot.end()).strip().splitlines()
        why = complaints[-1] if complaints else "it does not start"
        fix = f"the image must be here (`{info.kind} pull`), with sh and python3 in it"
        raise NoBoxError(f"{info.kind} cannot run {plan.image}: {why}; {fix}")
    ends = os.dup(child.stdout), child.stdin
    child.stdin = -1
    way = Channel(*ends, 2, partial(_connected, str(plan.socket)))
    threading.Thread(target=way.run, daemon=True).start()
    box = ContainerBox(info, (program, "exec", "-i"), plan, name, slot, way)
    if not copies:
        return box
    user = os.geteuid() or _USER
    kept = Copies(way, (*plan.writable, plan.temporary), plan.readable, user)
    return replace(box, command=(*box.command, "--user", f"{user}:{user}"), copies=kept)


def _connected(gateway: str, _payload: bytes) -> socket.socket:
    """Where all connections from inside end."""
    end = socket.socket(socket.AF_UNIX)
    end.connect(gateway)
    return end


def _without_programs(plan: BoxPlan, kind: str) -> BoxPlan:
    """What is worth a copy: not this machine's own programs, which may not even run there."""
    if plan.program not in (None, sys.executable):
        what = f"the daemon of {kind} does not have this machine's files, nor {plan.program}"
        raise NoBoxError(f"{what}; name a CLI of the image: `environment.command`")
    python = {sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix}
    own = [path for path in outermost(plan.programs) if str(path) not in python]
    return replace(plan, programs=(), readable=(*(own if plan.program else ()), *plan.readable))


def _options(kind: str, plan: BoxPlan, *, copies: bool) -> Iterator[str]:
    yield from ("-i", "--rm", "--pull", "never", "--log-driver", "none", "--cap-drop", "all")
    yield from ("--security-opt", "no-new-privileges", "--workdir", "/")
    if copies:
        # For its first program, which makes directories, and ends what the agent's user runs.
        yield from ("--user", "0:0")
        for name in ("setuid", "setgid", "kill", "dac_override"):
            yield from ("--cap-add", name)
    elif kind == "podman":
        yield from ("--read-only", "--security-opt", "label=disable")
        yield from ("--userns", "keep-id") if os.geteuid() else ()
    else:
        yield from ("--read-only", "--user", f"{os.geteuid()}:{os.getegid()}")
    yield from () if plan.open_network else ("--network", "none")
    limits = rlimits(plan.limits)
    if processes := limits.pop("nproc", None):  # of the container, not of the user
        yield from ("--pids-limit", str(processes))
    if kind == "podman" and os.geteuid() == 0 and not copies:
        # Its own are more than root may have inside of another container.
        most = int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))
        limits = {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "nproc": most, **limits}
    for name, value in limits.items():
        yield from ("--ulimit", f"{name}={value}:{value}")
    read = outermost((*plan.programs, *plan.readable), system=())
    mounts = [(path.resolve(), path, True) for path in read]
    mounts += [(path, path, False) for path in (*plan.writable, plan.temporary)]
    mounts.append((plan.temporary, Path("/tmp"), False))  # noqa: S108
    for source, target, read_only in () if copies else mounts:
        if "," in f"{source}{target}":
            raise NoBoxError(f"{kind} mounts nothing whose name has a comma: {source}")
        options = f"type=bind,source={source},target={target}"
        yield from ("--mount", f"{options},readonly" if read_only else options)
