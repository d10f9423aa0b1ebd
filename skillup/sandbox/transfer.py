"""What differs between directories here and the same ones in a container, sent over a stream.

Imported by us; in a container its source is run, and :func:`serve`. All paths are absolute, and the
same on both sides. What comes out of a container is not trusted: only what was asked for is taken,
links stay links, and nothing is written or removed through one.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_LINE_BYTES = 64 << 20  # A fact for each of some hundred thousand files
_PART_BYTES = 1 << 17
MOST_BYTES = 1 << 30  # In one direction at once: what is beyond has no hash in a snapshot, either


def listing(roots: Iterable[str]) -> dict[str, list[Any]]:
    """All below the roots: kind, mode, size, and of files and links what changes with them.

    A directory comes before what is in it. FIFOs, sockets and devices are left out.
    """
    found: dict[str, list[Any]] = {}
    pending = list(roots)
    while pending:
        path = pending.pop()
        with suppress(FileNotFoundError):  # it has just vanished
            status = os.lstat(path)
            kind, mode = _KINDS.get(stat.S_IFMT(status.st_mode)), status.st_mode & 0o777
            if kind == "directory":
                pending += [os.path.join(path, name) for name in os.listdir(path)]
                found[path] = [kind, 0, 0]
            elif kind is not None:
                stamps = status.st_mtime_ns, status.st_ctime_ns, status.st_ino
                found[path] = [kind, mode, status.st_size, *stamps]
    return found


def write_line(stream: Any, value: Any) -> None:
    stream.write(json.dumps(value).encode() + b"\n")


def read_line(stream: Any) -> Any:
    """Raises OSError, also where the other side could not do its part."""
    line = stream.readline(_LINE_BYTES)
    if not line.endswith(b"\n"):
        raise OSError("there are too many files" if line else "the container has ended")
    value = json.loads(line)
    if isinstance(value, str):
        raise OSError(value)
    return value


def send(stream: Any, found: dict[str, list[Any]]) -> None:
    """What was listed, without what is no more."""
    for path, (kind, mode, size, *stamps) in found.items():
        with suppress(FileNotFoundError):
            if kind != "file":
                target = os.readlink(path) if kind == "link" else ""
                write_line(stream, [path, kind, mode, 0, target])
                continue
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                write_line(stream, [path, kind, mode, size, stamps[0]])
                while size:  # so many, whatever became of it
                    length = min(size, _PART_BYTES)
                    part = file.read(length) or bytes(length)
                    stream.write(part)
                    size -= len(part)
    write_line(stream, None)
    stream.flush()


def receive(
    stream: Any, removed: Iterable[str], wanted: Callable[[str], bool] = lambda _: True
) -> None:
    """Removes what is `removed`, and writes what comes. Of directories no modes are kept."""
    left = MOST_BYTES
    for path in removed:
        if os.path.lexists(os.path.dirname(path)):
            _remove(path)
    while head := read_line(stream):
        path, kind, mode, size, more = head
        left -= size
        if left < 0:
            raise OSError("more than 1 GiB at once are not copied")
        if not wanted(path):
            raise OSError(f"{path} was not asked for")
        if kind != "directory" or os.path.islink(path) or not os.path.isdir(path):
            _remove(path)
        if kind == "directory":
            os.makedirs(path, exist_ok=True)
        elif kind == "link":
            os.symlink(more, path)
        else:
            with open(path, "xb") as file:
                while size:
                    part = stream.read(min(size, _PART_BYTES))
                    if not part:
                        raise OSError("the container has ended")
                    file.write(part)
                    size -= len(part)
            os.chmod(path, mode & 0o777)
            os.utime(path, ns=(more, more))


def _remove(path: str) -> None:
    """What is there, if its directory is no other place by a link."""
    folder = os.path.dirname(path)
    if os.path.realpath(folder) != folder:
        raise OSError(f"{folder} is another place by a link")
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def serve() -> None:
    """Inside: takes what is sent, says what is there, and sends what of that is wanted."""
    stream = socket.socket(fileno=0).makefile("rwb")
    try:
        order = read_line(stream)
        if order["ends"] and os.getppid() == 1:  # it sees no processes but the container's
            with suppress(OSError):  # there are no others
                os.kill(-1, 9)
        for folder in map(os.path.dirname, order["roots"]):
            if not os.path.lexists(folder):
                os.makedirs(folder)
                os.chmod(folder, 0o1777)
        if order["user"]:
            os.setgroups([])
            os.setgid(order["user"])
            os.setuid(order["user"])
        receive(stream, order["removed"])
        found = listing(order["roots"])
        write_line(stream, found)
        stream.flush()
        send(stream, {path: found[path] for path in read_line(stream)})
    except Exception as error:
        write_line(stream, str(error))
        stream.flush()
