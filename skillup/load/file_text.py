"""A file's text: read without ever waiting, decoded as UTF-8, or refused with a place.

Every function raises InvalidFilesError with one located problem.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NoReturn

from skillup.errors import InvalidFilesError, Problem

MAX_BYTES = 16 * 1024 * 1024

_UTF8 = "save it as UTF-8"
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def read_text(path: Path) -> str:
    """The whole text of a regular file of at most MAX_BYTES, without a byte order mark."""
    return decode(read_file(path), path)


def decode(data: bytes, path: Path) -> str:
    """`data` as UTF-8, without a byte order mark; `path` is for the message."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        refuse(path, "this is UTF-16 or UTF-32, not UTF-8", _UTF8)
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        refuse(path, message, _UTF8, *line_and_column(before, len(before)))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Where the character at `offset` stands, both counted from 1."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def refuse(path: Path, message: str, fix: str = "", line: int = 1, column: int = 1) -> NoReturn:
    """Raise InvalidFilesError with this one problem."""
    raise InvalidFilesError([Problem(path, line, column, "", message, fix)])


def read_file(path: Path) -> bytes:
    """The content of a regular file of at most MAX_BYTES."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        refuse(path, "there is no such file")
    except PermissionError:
        refuse(path, "the file may not be read", "give yourself permission to read it")
    except (OSError, ValueError) as error:
        refuse(path, f"the file cannot be opened: {getattr(error, 'strerror', None) or error}")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        refuse(path, f"this is {_KINDS.get(stat.S_IFMT(status.st_mode), 'a device')}, not a file")
    try:
        with os.fdopen(descriptor, "rb") as stream:
            # A file may have grown since, and some do not know their size.
            data = b"" if status.st_size > MAX_BYTES else stream.read(MAX_BYTES + 1)
    except OSError as error:
        refuse(path, f"the file cannot be read: {error.strerror or error}")
    size = max(status.st_size, len(data))
    if size > MAX_BYTES:
        message = f"the file is too large ({size / 2**20:.1f} MB)"
        refuse(path, message, "the limit is 16 MB; keep large texts in files of their own")
    return data
