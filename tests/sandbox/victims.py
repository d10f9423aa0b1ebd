"""A machine with things to steal, and a run whose agent tries to; which column that is."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import skillup
from tests.sandbox import thief
from tests.support.project import GUARD_SECONDS, Project, wait_until

NOBODY = 65534
TOOLS = """
    bash cat chmod env git grep head id ln ls mkdir mkfifo mv node rm setsid sh sleep test touch tr
    """
OURS = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # What is installed for us
KEPT = """
    context: {files: {secret.txt: canary}}
    input: {turns: [one, two]}
    scripted: [{say: done}]
    assertions: [{contains: done}]
    """
TRIES = """
    depends_on: [a-kept]
    input: {turns: [try]}
    scripted: [{steps: [{run: python3 thief.py targets.json}], say: tried}]
    assertions: [{contains: tried}]
    """


def python_of(user: int) -> str | None:
    """A Python that this user may run and that has what ours has; None: there is none."""
    version = ".".join(map(str, sys.version_info[:2]))
    for program in (sys.executable, f"/usr/bin/python{version}"):
        ask = (program, "-c", "import skillup.cli.main")
        with suppress(OSError):
            done = subprocess.run(
                ask, user=user, check=False, cwd="/", env=OURS, stderr=subprocess.DEVNULL
            )
            if done.returncode == 0:
                return program
    return None


@contextmanager
def serving(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Iterator[Any]:
    """A service that answers `open`; its address."""

    def serve() -> None:
        with suppress(OSError, TypeError):  # which a closed datagram socket makes
            while True:
                if kind == socket.SOCK_DGRAM:
                    server.sendto(b"open", server.recvfrom(16)[1])
                    continue
                with server.accept()[0] as client:
                    client.recv(16)
                    client.send(b"open")

    with socket.socket(family, kind) as server:
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


def lan_address() -> str:
    found = (a for each in psutil.net_if_addrs().values() for a in each)
    own = (a.address for a in found if a.family == socket.AF_INET)
    return next((address for address in own if not address.startswith("127.")), "127.0.0.1")


@contextmanager
def valuables(project: Project, user: int) -> Iterator[dict[str, Any]]:
    """Things of `user`; what a thief must know of them."""
    root = project.root.parent
    libc = thief.libc
    libc.syscall(thief.KEYCTL, 1, None)  # a session keyring of our own
    libc.syscall(thief.ADD_KEY, b"user", b"skillup-canary", b"x", 1, -3)
    home, shm = project.home / "canary", Path(f"/dev/shm/skillup-{os.getpid()}")
    tmp = Path(f"/tmp/skillup-canary-{os.getpid()}")
    for path in (home, shm, tmp):
        path.write_text("canary")
        os.chown(path, user, user)
    command = (shutil.which("sleep") or "sleep", "300")
    with ExitStack() as stack:
        for path in (shm, tmp):
            stack.callback(path.unlink)
        port = stack.enter_context(serving(socket.AF_INET, ("0.0.0.0", 0)))[1]
        stack.enter_context(serving(socket.AF_INET, ("127.0.0.1", port), socket.SOCK_DGRAM))
        path = stack.enter_context(serving(socket.AF_UNIX, str(root / "socket")))
        os.chown(path, user, user)
        abstract = f"skillup-canary-{os.getpid()}"
        stack.enter_context(serving(socket.AF_UNIX, f"\0{abstract}"))
        victim = stack.enter_context(
            subprocess.Popen(
                ["sleep-canary", command[1]], executable=command[0], user=user, group=user
            )
        )
        stack.callback(victim.kill)
        memory = libc.shmget(thief.SHM_KEY, 4096, 0o1666)
        stack.callback(libc.shmctl, memory, 0, None)
        yield {
            "answers": str(project.root / "cases/b-tries.yaml"),
            "runs": str(project.root / ".skillup/runs"),
            "home": str(home),
            "tmp": str(tmp),
            "program": str(Path(skillup.__file__).parent / "engines/scripted_agent/agent.py"),
            "victim": victim.pid,
            "port": port,
            "lan": lan_address(),
            "socket": path,
            "abstract": abstract,
            "shm": str(shm),
        }


# Another user's, who has numbers for the users in containers here, and nowhere else.
AS_USER = """
    mount --make-rshared / && mount --bind "$0" /etc/subuid && mount --bind "$0" /etc/subgid &&
    exec setpriv --reuid USER --regid USER --clear-groups "$@"
    """


def rootless(user: int, base: Path) -> tuple[list[str], dict[str, str]]:
    """What commands of that user begin with who has podman, and their variables; or skips.

    All that podman keeps of the user's is in `base`.
    """
    for program in ("podman", "newuidmap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    numbers, own = base / "numbers", {"PATH": os.environ["PATH"], "HOME": str(base / "home")}
    own["XDG_RUNTIME_DIR"] = str(base)
    numbers.write_text(f"{user}:200000:65536\n")
    subprocess.run(["chown", "-R", f"{user}:{user}", base], check=True)
    other = ["unshare", "--mount", "sh", "-c", AS_USER.replace("USER", str(user)), str(numbers)]
    way = other if user != os.geteuid() else []
    form = "{{.Host.Security.Rootless}} {{len .Host.IDMappings.UIDMap}}"
    argv = (*way, "podman", "info", "--format", form)
    done = subprocess.run(argv, env=own, capture_output=True, text=True)
    if done.stdout.split() != ["true", "2"]:
        said = (done.stderr.strip() or "it has no numbers in /etc/subuid").splitlines()[-1]
        pytest.skip(f"podman does not work for user {user}: {said}")
    return way, own


def in_container(
    kind: str, *programs: Path, way: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> str | None:
    """What a suite says for an image with a shell, a Python, git and these; None: no podman."""
    python = shutil.which("python3", path="/usr/bin")
    if not (shutil.which("podman") and shutil.which(kind) and python):
        return None
    made_of = [TOOLS, python, *((one.name, one.stat().st_size) for one in programs)]
    name = f"localhost/skillup-tests:{zlib.crc32(repr(made_of).encode())}"
    environment = f"{{type: {kind}, image: '{name}'}}"
    podman = (*way, "podman")
    if subprocess.run([*podman, "image", "exists", name], check=False, env=env).returncode == 0:
        return environment
    ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    library = subprocess.check_output([python, "-c", ask], text=True).strip()
    found = [python, *filter(None, (shutil.which(one, path="/usr/bin") for one in TOOLS.split()))]
    linking = [*found, *map(str, programs), *map(str, Path(library, "lib-dynload").glob("*.so"))]
    linked = subprocess.run(["ldd", *linking], capture_output=True, text=True, check=False)
    needed = set(re.findall(r"(?:=> |^\t)(/\S+) \(", linked.stdout, re.MULTILINE))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        root = Path(place, "root")
        Path(place).chmod(0o755)
        for folder in ("etc", "tmp"):
            (root / folder).mkdir(parents=True)
            (root / folder).chmod(0o1777)
        (root / "bin").symlink_to("usr/bin")
        copy = ("cp", "-rL", "--parents", *found, *needed, library, str(root))
        subprocess.run(copy, check=True)
        for program in programs:
            shutil.copy(program, root / "usr/bin")
        archive = shutil.make_archive(f"{place}/image", "tar", root)
        subprocess.run([*podman, "import", archive, name], check=True, capture_output=True, env=env)
    return environment


@contextmanager
def service(address: str = "") -> Iterator[dict[str, str]]:
    """Podman's own daemon, for its client and docker's; the variables that lead there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = address or f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with tempfile.NamedTemporaryFile("w+", suffix=".conf") as settings:
        # Its own are more than root may have in some virtual machines.
        settings.write('[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n')
        settings.flush()
        command = ("podman", "system", "service", "--time", "0", address)
        ask = ("podman", "--url", address, "--remote", "version")
        with subprocess.Popen(command, env={**os.environ, "CONTAINERS_CONF": settings.name}) as own:
            try:
                wait_until(lambda: not subprocess.run(ask, capture_output=True).returncode, own)
                yield {"DOCKER_HOST": address, "CONTAINER_HOST": address}
            finally:
                own.terminate()


def run_as(user: int, project: Project, *options: str, way: Sequence[str] = (), **env: str) -> Any:
    """The result of a run by that user, whose the project is from now on; by `way`, if any."""
    python, base = python_of(user), project.root.parent
    assert python is not None
    if user != os.geteuid():
        subprocess.run(["chown", "-R", f"{user}:{user}", base], check=True)
    other = user if user != os.geteuid() and not way else None
    own = {"JUDGE_KEY": "canary", **OURS}
    done = subprocess.run(
        (*way, python, "-m", "skillup", "run", "cases", "--json", *options),
        cwd=project.root,
        env={**project.environment(), **own, **env},
        user=other,
        group=other,
        extra_groups=None if other is None else [],
        capture_output=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def tried(
    project: Project, environment: str, user: int, env: Mapping[str, str], way: Sequence[str] = ()
) -> dict[str, bool]:
    """What was open to an agent in that `environment`, of a skillup that `user` runs."""
    with valuables(project, user) as targets:
        project.write(
            {
                "cases/eval.yaml": f"name: s\nenvironment: {environment}\n",
                "cases/a-kept.yaml": KEPT,
                "cases/b-tries.yaml": TRIES + "    # canary\n",
            }
        )
        files = {"thief.py": Path(thief.__file__).read_text(), "targets.json": json.dumps(targets)}
        context = json.dumps({"files": files, "literal": True})
        with (project.root / "cases/b-tries.yaml").open("a") as case:
            case.write(f"context: {context}\n")
        result = run_as(user, project, "--keep-workspaces", "-j", "1", way=way, **env)
    assert [case["status"] for case in result["cases"]] == ["PASS"] * 2, result
    assert project.record("a-kept/scripted/with_skill/1")["turns"][1]["session_verified"]
    turn = project.record("b-tries/scripted/with_skill/1")["turns"][0]
    (output,) = (i["tool_result"]["content"] for i in turn["transcript"] if i["tool_result"])
    found: dict[str, bool] = json.loads(output)
    return found
