"""The command in processes that begin where a fresh one is once it has imported everything.

Importing takes half a second of processor time, which is most of what a short command takes, and
the tests run thousands of them. So each process of the tests keeps one that has imported the
command line, and every command is a fork of it: with its own arguments, environment, directory and
files. What a fresh interpreter reads from its environment it has read before, see `FRESH`.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import pkgutil
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import skillup

FRESH = ("PYTHON", "LC_", "LANG", "TERM", "COLUMNS", "LINES", "FORCE_", "NO_COLOR", "TZ", "TMPDIR")
"""Variables that begin so need an interpreter of their own."""

_ROOT = Path(__file__).parents[2]
_NOT_IMPORTED = (
    "skillup.executors.cluster",
    "skillup.pytest_plugin",
    "skillup.engines.scripted_agent",
)
_SERVE = "import sys; from tests.support.forked import serve; serve(int(sys.argv[1]))"


class Forks:
    """A process that is forked for each command; started when the first one is wanted."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        seconds: float,
        *,
        program: str = "skillup",
    ) -> tuple[int, bytes, bytes] | None:
        """Exit code, stdout and stderr of the command; None: another one is under way.

        `program`: or `pytest`. Raises subprocess.TimeoutExpired.
        """
        if not self._busy.acquire(blocking=False):
            return None
        try:
            line = self._started()
            request: dict[str, object] = {"program": program, "arguments": list(arguments)}
            request |= {"cwd": str(cwd), "env": dict(env)}
            with (
                Path(os.devnull).open("rb") as nothing,
                tempfile.TemporaryFile() as stdout,
                tempfile.TemporaryFile() as stderr,
            ):
                _send(line, request, [file.fileno() for file in (nothing, stdout, stderr)])
                pid = _receive(line)[0]["pid"]
                line.settimeout(seconds)
                try:
                    code: int = _receive(line)[0]["code"]
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    line.settimeout(None)
                    _receive(line)
                    raise subprocess.TimeoutExpired(list(arguments), seconds) from None
                finally:
                    line.settimeout(None)
                outputs = []
                for file in (stdout, stderr):
                    file.seek(0)
                    outputs.append(file.read())
                return code, outputs[0], outputs[1]
        finally:
            self._busy.release()

    @contextmanager
    def on_path(self, folder: Path) -> Iterator[int]:
        """Meanwhile `skillup` in `folder` is a command whose processes are forks, one at a time.

        Gives the descriptor that whoever calls it must inherit.
        """
        with self._busy:
            number = self._started().fileno()
            folder.mkdir(exist_ok=True)
            command = folder / "skillup"
            forked = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from {__name__} import fork"
            words = [sys.executable, "-c", f"{forked}; fork({number})"]
            command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            command.chmod(0o755)
            try:
                yield number
            except BaseException:
                # Its answer to a command that was given up would be taken for that to the next.
                if self._server is not None:
                    self._server.kill()
                    self._server.wait()
                raise

    def _started(self) -> socket.socket:
        if self._server is None or self._line is None or self._server.poll() is not None:
            self._line, theirs = socket.socketpair()
            with closing(theirs):
                self._server = subprocess.Popen(
                    [sys.executable, "-c", _SERVE, str(theirs.fileno())],
                    cwd=_ROOT,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
        return self._line


FORKS = Forks()


def serve(descriptor: int) -> None:
    """Fork for each request that comes there, until nobody asks any more."""
    _import_everything()
    with socket.socket(fileno=descriptor) as line:
        while (received := _receive(line))[0]:
            request, files = received
            import_module(request["program"])
            pid = os.fork()
            if pid == 0:
                line.close()
                _become(request, files)
            for file in files:
                os.close(file)
            _send(line, {"pid": pid})
            _, status = os.waitpid(pid, 0)
            _send(line, {"code": os.waitstatus_to_exitcode(status)})


def _import_everything() -> None:
    """Whatever a command may come to import, and the models, which are built when first used."""
    import anyio._backends._asyncio  # noqa: F401
    import rich.table  # noqa: F401
    from pydantic import BaseModel

    for module in pkgutil.walk_packages(skillup.__path__, "skillup."):
        if not module.name.startswith(_NOT_IMPORTED) and not module.name.endswith("__main__"):
            import_module(module.name)
    models = BaseModel.__subclasses__()
    for model in models:
        models.extend(model.__subclasses__())
        if model.__module__.startswith("skillup.schema."):
            model.model_rebuild()
    gc.freeze()  # a fork's collections leave these pages as they are, shared


def _become(request: Mapping[str, Any], files: Sequence[int]) -> None:
    code = 70
    try:
        for wanted, file in enumerate(files):
            os.dup2(file, wanted)
            os.close(file)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = [request["program"], *request["arguments"]]
        sys.path[0] = request["cwd"]
        code = _code_of_main(request["program"])
    finally:
        os._exit(code)


def _code_of_main(program: str) -> int:
    """As an interpreter ends: with what main raised, its threads, and its output."""
    code = 0
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        if isinstance(leave.code, str):
            sys.stderr.write(f"{leave.code}\n")
    except BaseException:  # noqa: BLE001  as an interpreter does
        sys.excepthook(*sys.exc_info())
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    return code


def fork(descriptor: int) -> None:
    """The command of these arguments as a fork, for who inherited the server's other end."""
    arguments = {"program": "skillup", "arguments": sys.argv[1:]}
    with socket.socket(fileno=descriptor) as line:
        _send(line, {**arguments, "cwd": str(Path.cwd()), "env": dict(os.environ)}, [0, 1, 2])
        _receive(line)
        code = _receive(line)[0]["code"]
    sys.exit(code)


def _send(line: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    data = json.dumps(message).encode() + b"\n"
    if files:
        rights = array.array("i", files)
        sent = line.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        data = data[sent:]
    line.sendall(data)


def _receive(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its files; nothing where the other side has gone."""
    data, files = b"", list[int]()
    while not data.endswith(b"\n"):
        # The next message may be there already; it is left for the next call.
        waiting = line.recv(1 << 16, socket.MSG_PEEK)
        size = waiting.find(b"\n") + 1 or len(waiting)
        part, more, _, _ = socket.recv_fds(line, max(size, 1), 3)
        if not part:
            return {}, files
        data += part
        files += more
    return json.loads(data), files
