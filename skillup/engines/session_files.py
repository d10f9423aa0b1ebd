"""Fingerprints of session files: what a session held after a turn, and whether it still does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from skillup.schema.record import SessionFingerprint

IsUserMessage = Callable[[dict[str, Any]], bool]


def session_lines(path: Path, offset: int = 0, end: int | None = None) -> Iterator[dict[str, Any]]:
    """The JSON objects between two byte offsets; what is no object is passed over."""
    with path.open("rb") as file:
        file.seek(offset)
        for line in file:
            offset += len(line)
            if end is not None and offset > end:
                return
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry


def take_fingerprint(
    path: Path | None, session_id: str, is_user_message: IsUserMessage
) -> SessionFingerprint | None:
    """Of the whole file as it is now; None if there is none."""
    if path is None or not path.is_file():
        return None
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        size = file.tell()
    return SessionFingerprint(
        session_id=session_id,
        messages=sum(map(is_user_message, session_lines(path))),
        prefix_sha256=digest.hexdigest(),
        prefix_bytes=size,
    )


def without_file(session_id: str) -> SessionFingerprint:
    """Of a session that has no file: it holds nothing that a later turn could build on."""
    return SessionFingerprint(
        session_id=session_id,
        messages=0,
        prefix_sha256=hashlib.sha256().hexdigest(),
        prefix_bytes=0,
    )


def still_holds(path: Path | None, previous: SessionFingerprint) -> bool:
    """Whether the file begins with exactly the bytes that it had when `previous` was taken.

    Not if it held no message then: the earlier turns were in it even less than they are now.
    """
    if previous.messages == 0 or path is None or not path.is_file():
        return False
    with path.open("rb") as file:
        return _digest_of_first(file, previous.prefix_bytes) == previous.prefix_sha256


def has_grown(now: SessionFingerprint | None, previous: SessionFingerprint) -> bool:
    """Whether the session got the user message of this turn, too."""
    return now is not None and now.messages > previous.messages


def _digest_of_first(file: BinaryIO, size: int) -> str | None:
    digest = hashlib.sha256()
    while size > 0:
        chunk = file.read(min(size, 1 << 20))
        if not chunk:
            return None
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()
