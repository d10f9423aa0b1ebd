"""bubblewrap: every program in namespaces of its own, with the trial's directories and no others.

No daemon, no image, no root: a program starts some milliseconds later. Workspace, home and
temporary directory keep their paths, so that the agents' sessions go on as they are.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from skillup.process.run import ProcessRequest
from skillup.sandbox.base import Box, BoxPlan, NoBoxError, Probe, answer_of, outermost, rlimits
from skillup.schema.record import SandboxInfo

NAME = "bwrap"
_FORWARD = Path(__file__).with_name("forward.py")
_INSIDE = "/run/skillup"  # Where it and the gateway's socket are
_SHARED_MEMORY_BYTES = 1 << 30
_JOIN_SESSION_KEYRING = 1  # A new one, without a name
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = """
    passwd group nsswitch.conf hosts resolv.conf localtime timezone ld.so.cache ld.so.conf
    ld.so.conf.d ssl/certs ssl/openssl.cnf pki/tls/certs pki/ca-trust ca-certificates alternatives
    mime.types python3
"""
"""No more: for root also private keys are readable."""
_LOADER = ("LD_", "GLIBC_", "MALLOC_", "GCONV_PATH", "LOCPATH", "NLSPATH")
_INSTALL = "install it (`apt-get install bubblewrap`, `dnf install bubblewrap`)"
_SWITCHES = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)
"""Settings of the kernel that keep it from user namespaces: when they do, and what does not."""


@cache
def probe() -> Probe:
    """Whether it can make a box here; asked once."""
    program = shutil.which(NAME)
    if program is None:
        return Probe(problem=f"there is no program `bwrap`; {_INSTALL}")
    version, problem = answer_of(program, "--version")[1], ""
    for closed in (True, False):
        code, said = answer_of(program, *_namespaces(closed=closed), *_system(), "--", "true")
        if code == 0:
            return Probe(version, open=() if closed else ("user namespaces",))
        problem = problem or said
    for name, value, better in _SWITCHES:
        with suppress(OSError):
            if Path("/proc/sys", name.replace(".", "/")).read_text("ascii").strip() == value:
                fix = f"`sudo sysctl -w {name}={better}`"
                fix += ", or an AppArmor profile for it with `userns,`" * ("apparmor" in name)
                return Probe(version, f"it may make no user namespaces ({problem}); {fix}")
    needs = "it needs user namespaces and a /proc of its own: start the container around it with"
    how = "`--security-opt seccomp=unconfined --security-opt unmask=ALL`"
    return Probe(version, f"{problem}; {needs} {how}")


def _namespaces(*, closed: bool) -> Iterator[str]:
    # No --new-session: we start every process in one, and a live agent is known by it.
    yield "--die-with-parent"
    for name in ("user", "ipc", "uts", "pid", "net", "cgroup-try"):
        yield f"--unshare-{name}"
    if closed:
        yield "--disable-userns"
    if os.geteuid() == 0:
        yield from ("--uid", "1000", "--gid", "1000")
    yield from ("--cap-drop", "ALL")


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/nix/store", "/nix/store")
    for place in map(Path, _SYSTEM):
        if place.is_symlink():
            yield from ("--symlink", str(place.readlink()), str(place))
        elif place.is_dir():
            yield from ("--ro-bind", str(place), str(place))
    for name in _ETC.split():
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    if os.geteuid() == 0:
        # Its files belong to root, which we are for the kernel.
        yield from ("--ro-bind", "/proc/sys", "/proc/sys")


@dataclass(frozen=True)
class BubblewrapBox(Box):
    """A program's command, behind the one that makes its box; nothing stays between programs."""

    isolates = True
    start: tuple[str, ...] = ()  # What the program's own is put behind inside

    def request(self, request: ProcessRequest) -> ProcessRequest:
        given = {**request.env, **self.plan.variables}
        # What a loader reads is for the programs inside, not for the one that makes the box.
        kept = {k: v for k, v in given.items() if not k.startswith(_LOADER)}
        said = [word for k in given.keys() - kept for word in ("--setenv", k, given[k])]
        inside = ("--chdir", os.fspath(request.cwd), "--", *self.start, *request.argv)
        # A signal to it would kill all at once; inside, agents have something to say.
        spared = frozenset({NAME})
        return replace(request, argv=(*self.command, *said, *inside), env=kept, spared=spared)


def _temporary(plan: BoxPlan) -> Iterator[str]:
    """The directory for temporary files, which is kept from program to program.

    Where other paths lead through it, nothing on their way may be replaced from inside: the next
    box would be made through a link of the agent's. What is mounted cannot be.
    """
    tmp = Path("/tmp")  # noqa: S108
    yield from ("--bind", str(plan.temporary), str(tmp))
    read = (*plan.programs, *plan.readable)
    paths = (*plan.writable, plan.temporary, *read, *(p.resolve() for p in read))
    first = {p.relative_to(tmp).parts[0] for p in paths if p != tmp and p.is_relative_to(tmp)}
    for name in sorted(first):
        yield from ("--tmpfs", f"{tmp}/{name}")


def _leave_keyring() -> None:
    """What this thread starts has a session keyring of its own: namespaces have none."""
    import ctypes

    number = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION_KEYRING, None)


def open_box(plan: BoxPlan, info: SandboxInfo) -> BubblewrapBox:
    """The box of a trial, where the probe found that it works. Raises NoBoxError."""
    if plan.limits.processes and os.geteuid() == 0:
        what = "`limits.processes` does not hold for root"
        raise NoBoxError(f"{what}; run skillup as another user, or take it out")
    _leave_keyring()
    if plan.open_network:
        plan = replace(plan, port=0)  # the gateway's own port is there
    start, limits = tuple[str, ...](), rlimits(plan.limits)
    if plan.port:
        python, own = os.path.realpath(sys.executable), f"{_INSIDE}/{_FORWARD.name}"
        start = (python, "-I", "-S", own, str(plan.port), f"{_INSIDE}/model.sock")
    if limits:
        limiter = shutil.which("prlimit")
        if limiter is None:
            raise NoBoxError("there is no program `prlimit` for `limits`; install util-linux")
        given = (f"--{name}={value}" for name, value in limits.items())
        start = (*start, os.path.realpath(limiter), *given, "--")
    program = shutil.which(NAME) or NAME
    closed = not plan.nested and not info.open
    arguments = list(_namespaces(closed=closed))
    if plan.open_network:
        arguments.remove("--unshare-net")
    arguments += _system()
    if not info.open:  # such a version knows sizes
        arguments += ("--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")  # noqa: S108
        arguments += ("--remount-ro", "/dev")
    arguments += _temporary(plan)
    for path in outermost((*plan.programs, *plan.readable)):
        real = str(path.resolve())
        arguments += ("--ro-bind", real, real)
        arguments += ("--symlink", real, str(path)) if real != str(path) else ()
    for path in (*plan.writable, plan.temporary):
        arguments += ("--bind", str(path), str(path))
    if plan.port:
        arguments += ("--ro-bind", str(_FORWARD), f"{_INSIDE}/{_FORWARD.name}")
        arguments += ("--ro-bind", str(plan.socket), f"{_INSIDE}/model.sock")
    arguments += ("--remount-ro", "/")
    return BubblewrapBox(info, (program, *arguments), plan, start)
