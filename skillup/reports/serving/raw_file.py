"""Files of a run directory by their path in a URL; nothing outside of it, whatever is asked for."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote_to_bytes

_BINARY_WITHIN = 8192


class NoSuchFileError(Exception):
    """There is nothing to serve under this path; why is nobody's business."""


def open_inside(root: Path, encoded: str) -> tuple[BinaryIO, int, str]:
    """The regular file `encoded` (a path as it stands in a URL) below `root`: file, size, name.

    It is decoded once. Links are followed only where they lead to what is below `root`. Raises
    NoSuchFileError for everything else: directories, pipes, ways out, odd names.
    """
    parts = [os.fsdecode(unquote_to_bytes(part)) for part in encoded.split("/")]
    if not all(map(_is_name, parts)):
        raise NoSuchFileError
    try:
        top = root.resolve(strict=True)
        path = top.joinpath(*parts).resolve(strict=True)
        if top not in path.parents:
            raise NoSuchFileError
        # Neither waits for a pipe's writer, nor follows a link that has been put there since.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, RuntimeError, ValueError):
        raise NoSuchFileError from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NoSuchFileError
    return os.fdopen(descriptor, "rb"), status.st_size, parts[-1]


def _is_name(part: str) -> bool:
    """Whether it is one name in a directory: no step up, no second separator, no odd control."""
    return part not in ("", ".", "..") and not any(c in "/\\" or ord(c) < 32 for c in part)


def is_binary(file: BinaryIO) -> bool:
    """Whether its beginning is no text; the file stands at its start again."""
    head = file.read(_BINARY_WITHIN)
    file.seek(0)
    return b"\0" in head


def disposition(name: str, *, attachment: bool) -> str:
    """The Content-Disposition for a file of this name, whatever is in the name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)
    kind = "attachment" if attachment else "inline"
    encoded = quote(os.fsencode(name), safe="")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}"
