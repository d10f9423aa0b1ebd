"""Files that are the old one or the new one whenever the machine stops; JSON without secrets."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from skillup.errors import ExitCode, RunDirectoryError
from skillup.redaction.secrets import is_absent
from skillup.schema.base import Stored
from skillup.workspace.disk import write_whole

_NOT_ALLOWED = "you may not write there: change its permissions, or choose another --out"
_FULL = "the disk is full: free some space, then go on with --resume"
_HINTS = {
    "ENOSPC": _FULL,
    "EDQUOT": "your disk quota is used up: free some space, then go on with --resume",
    "EFBIG": "files of that size are not allowed here: raise the limit, or use another --out",
    "EACCES": _NOT_ALLOWED,
    "EPERM": _NOT_ALLOWED,
    "EROFS": "the file system is read-only: choose another --out",
    "EMFILE": "more open files are needed: raise `ulimit -n`, or run fewer trials at once (-j)",
    "ENFILE": "the machine has too many open files: run fewer trials at once (-j)",
    "ENAMETOOLONG": "the path is too long for this file system: choose a shorter --out",
    "SQLITE_FULL": _FULL,
    # Of a quota SQLite says no more.
    "SQLITE_IOERR": "see whether there is room on the disk, then go on with --resume",
    "SQLITE_NOTADB": "start the run anew",
    "SQLITE_CORRUPT": "start the run anew",
    "SQLITE_CANTOPEN": "see that you may read and write there; `ulimit -n` limits open files",
    "SQLITE_READONLY": _NOT_ALLOWED,
    "SQLITE_BUSY": "another program has it open for writing: end that first",
}
"""By what the names of errors begin with."""
_OF_THE_MACHINE = ("ENOSPC", "EDQUOT", "EFBIG", "SQLITE_FULL", "SQLITE_IOERR")
REFUSALS = (OSError, sqlite3.Error, UnicodeDecodeError)
"""What disk and SQLite raise; the last where a message of SQLite's quotes a damaged file."""


@contextmanager
def disk_errors(doing: str, path: Path) -> Iterator[None]:
    """Raises RunDirectoryError in place of :data:`REFUSALS`: ``cannot <doing> <path>: …``."""
    try:
        yield
    except REFUSALS as error:
        raise refusal(doing, path, error) from error


def refusal(doing: str, path: Path, error: Exception) -> RunDirectoryError:
    """What the disk or SQLite refused, as users read it."""
    if isinstance(error, OSError):
        name, reason = errno.errorcode.get(error.errno or 0, ""), error.strerror or str(error)
    else:
        damaged = "SQLITE_CORRUPT" if isinstance(error, UnicodeDecodeError) else ""
        name, reason = getattr(error, "sqlite_errorname", damaged), str(error)
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        reason = "it is damaged, or no run of skillup"
    hint = next((text for start, text in _HINTS.items() if name.startswith(start)), None)
    refused = RunDirectoryError(f"cannot {doing} {path}: {reason}", hint=hint)
    if name.startswith(_OF_THE_MACHINE):
        refused.exit_code = ExitCode.ERROR  # no wrong use
    return refused


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replaces ``path`` by a file that holds ``data``, or its parts; its directory must exist.

    Raises RunDirectoryError if writing fails; ``path`` is then as it was. Several may write it.
    """
    with disk_errors("write", path):
        write_whole(path, [data] if isinstance(data, bytes) else data)
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Makes renames in ``directory`` last. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Makes ``directory`` and its parents, and makes that last. Raises RunDirectoryError."""
    with disk_errors("make", directory):
        missing = []
        at = directory
        while not at.is_dir() and at != at.parent:
            missing.append(at)
            at = at.parent
        if missing:
            directory.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_directory(made.parent)


def open_regular(path: Path) -> BinaryIO:
    """The file, to be read. Raises OSError, also for a pipe, which would block for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """What is in the file; as :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()


def file_system(path: Path) -> str:
    """The kind of file system that `path` is on; empty if it is not known."""
    try:
        with open("/proc/self/mounts", "rb") as lines:  # noqa: PTH123
            rows = [line.split() for line in lines]
        named = [(at.replace(rb"\040", b" "), kind) for _, at, kind, *_ in rows]
        mounts = [(os.fsdecode(at), kind.decode()) for at, kind in named]
    except OSError:
        import psutil  # which takes a twentieth of the time until the first agent starts

        mounts = [(at.mountpoint, at.fstype) for at in psutil.disk_partitions(all=True)]
    real = f"{path.resolve()}/"
    found = [at for at in reversed(mounts) if real.startswith(f"{at[0].rstrip('/')}/")]
    return max(found, key=lambda at: len(at[0]))[1] if found else ""


Mask = Callable[[str], str]
"""Returns the text with secrets replaced."""

# DEL and C1 controls; separators that some take for line ends; marks of direction. C0 controls are
# escaped by every JSON writer.
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def no_mask(text: str) -> str:
    """The mask where there are no secrets."""
    return text


def to_json(value: BaseModel | Mapping[str, Any], mask: Mask, *, indent: int | None) -> bytes:
    """``value`` as JSON text with a final newline: UTF-8, masked, and valid whatever agents wrote.

    Lone surrogates become U+FFFD, NaN and infinities null. What a terminal would obey is written
    as JSON's escapes.
    """
    return masked_json(value, mask, indent=indent)[0] + b"\n"


@cache
def _encoder(indent: int | None) -> Callable[[Any], str]:
    separators = (",", ":") if indent is None else None
    made = json.JSONEncoder(
        ensure_ascii=False, indent=indent, separators=separators, allow_nan=False
    )
    return made.encode


def masked_json(
    value: BaseModel | Mapping[str, Any],
    mask: Mask,
    *,
    indent: int | None = None,
    exclude: Any = None,
) -> tuple[bytes, bool]:
    """As :func:`to_json`, without newline; and whether it differs from `value` itself."""
    if isinstance(value, BaseModel):
        about: dict[str, Any] = {"by_alias": True, "exclude": exclude}
        value = value.on_disk() if isinstance(value, Stored) else value
        with suppress(PydanticSerializationError):  # it refuses lone surrogates
            text = value.model_dump_json(indent=indent, **about)
            if mask is no_mask or is_absent(mask, text):
                return _harmless(text), False
        value = value.model_dump(mode="json", **about)

    encode = _encoder(indent)
    with suppress(ValueError, TypeError):  # what JSON does not have, and lone surrogates
        text = encode(value)
        if mask is no_mask or is_absent(mask, text):
            return _harmless(text), False

    def clean(value: Any) -> Any:
        # Every text, keys too, before it is quoted: so a secret that looks like a number cannot
        # break the syntax.
        if isinstance(value, str):
            text = mask(value)
            if not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError:
                    # By way of UTF-16: a pair of surrogates becomes the character it stands for.
                    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return text
        if isinstance(value, Mapping):
            return {clean(str(key)): clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    cleaned = clean(value)
    text = encode(cleaned)
    return _harmless(text), cleaned != value


def _harmless(text: str) -> bytes:
    if text.isascii() and "\x7f" not in text:
        return text.encode()
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


# What a run's file holds, compressed by zlib (RFC 1950), short texts with a preset dictionary.


def pack(data: bytes) -> bytes:
    if len(data) > 16_384:
        return zlib.compress(data, 1)
    small = _primed().copy()
    return bytes(small.compress(data) + small.flush())


@cache
def _dictionary() -> bytes:
    """What is in most records, grades and streams, made from one of each: what is in here need not
    be written again. Never changed, or older runs cannot be read.
    """
    return Path(__file__).with_name("dictionary.txt").read_bytes()


@cache
def _primed() -> Any:
    # Smaller tables: to copy the usual ones takes longer than to compress a trial's record.
    return zlib.compressobj(1, zlib.DEFLATED, 13, 5, zlib.Z_DEFAULT_STRATEGY, _dictionary())


def unpack(data: bytes) -> bytes:
    """Raises ValueError for what is not from :func:`pack`."""
    try:
        packed = zlib.decompressobj(zdict=_dictionary())
        whole = packed.decompress(data)
        if packed.eof:
            return whole
        raise ValueError("it ends too early")
    except (zlib.error, TypeError) as error:  # the latter: a damaged file has no data there
        raise ValueError(str(error)) from error
