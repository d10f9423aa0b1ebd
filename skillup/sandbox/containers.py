"""docker and podman: a container for a trial, in which each of its programs is an `exec`.

The container lives as long as its input is open: it goes with us, however we end. Directories are
mounted where they are, so the daemon must be of this machine.
"""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import anyio.to_thread

from skillup.process.live import LiveSlot
from skillup.process.run import ProcessRequest, start_process, supervise
from skillup.process.tree import OWNER_VARIABLE, TRIAL_VARIABLE
from skillup.sandbox.base import (
    FORWARD,
    INSIDE,
    NOTHING,
    Box,
    BoxPlan,
    NoBoxError,
    Probe,
    answer_of,
    forwarder,
    outermost,
    rlimits,
)
from skillup.schema.record import SandboxInfo

_SECONDS = 60.0  # How long a container may take to start
_CLOSE_SECONDS = 5.0  # And to end, if it does not
_SPARED = frozenset({"docker", "podman", "conmon", "containerd-shim", "runc", "crun"})
_OWN = ("HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
_ASK: Mapping[str, tuple[str, ...]] = {
    "docker": ("version", "--format", "{{.Server.Version}}"),
    "podman": ("info", "--format", "{{.Version.Version}} {{.Host.CgroupControllers}}"),
}
_FIX = {
    "docker": "start its daemon (`sudo systemctl start docker`), and be in its group",
    "podman": "see what `podman info` says",
}


def _client() -> dict[str, str]:
    """The environment of the client: the user's own, as far as it is about that."""
    kept = ("DOCKER_", "CONTAINER", "CONTAINERS_")
    return {k: v for k, v in os.environ.items() if k in _OWN or k.startswith(kept)}


@cache
def probe(kind: str) -> Probe:
    """Whether it runs containers here; asked once."""
    program, host = shutil.which(kind), os.environ.get("DOCKER_HOST", "unix:")
    if program is None:
        return Probe(problem=f"there is no program `{kind}`; install it")
    if sys.platform != "linux" or (kind == "docker" and not host.startswith("unix:")):
        what = "its daemon is not of this machine, and shares no sockets with it"
        return Probe(problem=f"{what}; run skillup there")
    code, said = answer_of(program, *_ASK[kind], env=_client())
    if code != 0:
        return Probe(problem=f"{said}; {_FIX[kind]}")
    version, _, controllers = said.partition(" ")
    unlimited = kind == "podman" and "pids" not in controllers
    return Probe(f"{kind} {version}", open=("processes without limit",) * unlimited)


@dataclass(frozen=True)
class ContainerBox(Box):
    """A running container."""

    has_own_programs = True
    command: tuple[str, ...] = ()  # `podman exec -i`
    name: str = ""
    plan: BoxPlan = NOTHING
    slot: LiveSlot = field(default_factory=LiveSlot)  # With the client that is attached to it

    def request(self, request: ProcessRequest) -> ProcessRequest:
        given = {**request.env, **self.plan.variables}
        given.pop("PATH", None)  # the image has its own
        # Not in the client's own environment, nor where all can see them.
        lines = {name: value for name, value in given.items() if "\n" not in value}
        self.file.touch(0o600)
        self.file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        said = [TRIAL_VARIABLE, OWNER_VARIABLE]
        said += [f"{name}={given[name]}" for name in given.keys() - lines]
        variables = ["--env-file", str(self.file), *(part for one in said for part in ("-e", one))]
        program, *arguments = request.argv
        found = shutil.which(program, path=request.env.get("PATH"))
        if program == sys.executable:
            program = "python3"
        elif found is not None and Path(found) in self.plan.readable:
            program = found
        inside = ("--workdir", os.fspath(request.cwd), *variables, self.name, program, *arguments)
        argv = (*self.command, *inside)
        return replace(request, argv=argv, env=_client(), spared=_SPARED)

    async def close(self) -> None:
        self.file.unlink(missing_ok=True)
        await self.slot.end()

    @property
    def file(self) -> Path:
        """Of variables; beside what is inside."""
        return self.plan.temporary.with_name("variables")


async def open_box(plan: BoxPlan, info: SandboxInfo) -> Box:
    """The container of a trial, where the probe found that it works. Raises NoBoxError."""
    if plan.limits.processes and info.open:
        raise NoBoxError(f"`limits.processes` is not kept by {info.kind} here (no cgroup for it)")
    program, name = shutil.which(info.kind) or info.kind, f"skillup-{secrets.token_hex(8)}"
    inside = forwarder("python3", plan) or ("sh", "-c", "echo ready; cat > /dev/null")
    options = [*_options(info.kind, plan), "--name", name, plan.image or "", *inside]
    request = ProcessRequest((program, "run", *options), Path("/"), _client(), b" ", _CLOSE_SECONDS)
    started = start_process(replace(request, spared=_SPARED))
    if isinstance(started, str):
        raise NoBoxError(started)
    box = ContainerBox(info, (program, "exec", "-i"), name, plan, LiveSlot(started))
    child, said = started[0], b""
    assert child.stdout is not None
    try:
        with anyio.move_on_after(_SECONDS):
            said = await anyio.to_thread.run_sync(child.stdout.readline, abandon_on_cancel=True)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await box.close()
        raise
    if said != b"ready\n":
        outcome = await supervise(replace(request, stdin=b""), *started, None)
        why = (outcome.stderr_tail.strip().splitlines() or ["it does not start"])[-1]
        fix = f"the image must be here (`{info.kind} pull`), with sh and python3 in it"
        raise NoBoxError(f"{info.kind} cannot run {plan.image}: {why}; {fix}")
    return box


def _options(kind: str, plan: BoxPlan) -> Iterator[str]:
    yield from ("-i", "--rm", "--pull", "never", "--read-only", "--cap-drop", "all")
    yield from ("--security-opt", "no-new-privileges", "--workdir", str(plan.writable[0]))
    if kind == "podman":
        yield from ("--security-opt", "label=disable")
        yield from ("--userns", "keep-id") if os.geteuid() else ()
    else:
        yield from ("--user", f"{os.geteuid()}:{os.getegid()}")
    yield from () if plan.open_network else ("--network", "none")
    limits = rlimits(plan.limits)
    if processes := limits.pop("nproc", None):  # of the container, not of the user
        yield from ("--pids-limit", str(processes))
    if kind == "podman" and os.geteuid() == 0:
        # Its own are more than root may have inside of another container.
        most = int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))
        limits = {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "nproc": most, **limits}
    for name, value in limits.items():
        yield from ("--ulimit", f"{name}={value}:{value}")
    mounts = [(path.resolve(), path, True) for path in outermost(plan.readable, system=())]
    mounts += [(path, path, False) for path in (*plan.writable, plan.temporary)]
    mounts.append((plan.temporary, Path("/tmp"), False))  # noqa: S108
    if plan.port:
        mounts.append((FORWARD, INSIDE / FORWARD.name, True))
        mounts.append((plan.socket, INSIDE / "model.sock", True))
    for source, target, read_only in mounts:
        if "," in f"{source}{target}":
            raise NoBoxError(f"{kind} mounts nothing whose name has a comma: {source}")
        options = f"type=bind,source={source},target={target}"
        yield from ("--mount", f"{options},readonly" if read_only else options)
