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
_WIDE_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_text(path: Path) -> str:
    """The whole text of a regular file of at most MAX_BYTES, without a byte order mark."""
    return decode(read_file(path), path)


def decode(data: bytes, path: Path) -> str:
    """`data` as UTF-8, without a byte order mark; `path` is for the message."""
    for mark, encoding in _WIDE_MARKS.items():
        if data.startswith(mark):
            refuse(path, f"this is {encoding}, not UTF-8", _UTF8)
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        line, column = line_and_column(before, len(before))
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        refuse(path, message, _UTF8, line, column)


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
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = next((name for test, name in _KINDS if test(status.st_mode)), "something else")
            refuse(path, f"this is {kind}, not a file")
        if status.st_size > MAX_BYTES:
            _refuse_size(path, status.st_size)
        return _read_all(descriptor, status.st_size, path)
    except OSError as error:
        refuse(path, f"the file cannot be read: {error.strerror or error}")
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, expected: int, path: Path) -> bytes:
    """Everything there is; a file may have grown since its size was asked for."""
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:
        return data
    parts = [data]
    size = len(data)
    while chunk := os.read(descriptor, 1024 * 1024):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            _refuse_size(path, size)
    return b"".join(parts)


def _refuse_size(path: Path, size: int) -> NoReturn:
    limit = MAX_BYTES // (1024 * 1024)
    message = f"the file is too large ({size / (1024 * 1024):.1f} MB)"
    refuse(path, message, f"the limit is {limit} MB; keep large texts in files of their own")
