"""Fingerprints of session files: what a session held after a turn, and whether it still does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from skillup.schema.record import SessionFingerprint

_SHOWN = 16
"""Characters of a digest: enough to tell two apart."""
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


def of_a_history(fingerprint: SessionFingerprint | None) -> SessionFingerprint | None:
    """`fingerprint` of a session that was made of a history: it need not hold a user message."""
    return None if fingerprint is None else fingerprint.model_copy(update={"seeded": True})


def without_file(session_id: str) -> SessionFingerprint:
    """Of a session that has no file: it holds nothing that a later turn could build on."""
    return SessionFingerprint(
        session_id=session_id,
        messages=0,
        prefix_sha256=hashlib.sha256().hexdigest(),
        prefix_bytes=0,
    )


def what_it_lost(path: Path | None, previous: SessionFingerprint) -> str | None:
    """Why the file does not begin with the bytes that it had when `previous` was taken.

    None if it does. It does not, either, if it held no message then, unless it was seeded so: the
    earlier turns were in it even less than they are now.
    """
    size, sha256 = previous.prefix_bytes, previous.prefix_sha256
    if previous.messages == 0 and not previous.seeded:
        return f"after the turn before, the session held no user message ({size} bytes)"
    held = f"it held {size} bytes after the turn before"
    if path is None or not path.is_file():
        return f"its file is gone: {held} (sha256 {sha256[:_SHOWN]}…)"
    with path.open("rb") as file:
        found, of = _digest_of_first(file, size)
    if of < size:
        return f"{path}: {held}, and holds {of} now"
    if found == sha256:
        return None
    return (
        f"{path}: {held}, and these are others now: "
        f"sha256 {sha256[:_SHOWN]}… then, {found[:_SHOWN]}… now"
    )


def what_was_added(path: Path | None, previous: SessionFingerprint) -> str | None:
    """What the file has got since `previous` was taken: before a turn, nobody may have written."""
    if path is None or not path.is_file() or path.stat().st_size <= previous.prefix_bytes:
        return None
    more = path.stat().st_size - previous.prefix_bytes
    return f"{path}: it held {previous.prefix_bytes} bytes after the turn before; {more} were added"


def what_it_lacks(now: SessionFingerprint | None, previous: SessionFingerprint) -> str | None:
    """Why the session has not got the user message of this turn, too; None if it has."""
    if has_grown(now, previous):
        return None
    count = now.messages if now is not None else 0
    return f"it held user messages before the turn: {previous.messages}; after it: {count}"


def has_grown(now: SessionFingerprint | None, previous: SessionFingerprint) -> bool:
    """Whether the session got the user message of this turn, too."""
    return now is not None and now.messages > previous.messages


def _digest_of_first(file: BinaryIO, size: int) -> tuple[str, int]:
    """Of the first `size` bytes, or of as many as there are; and how many these were."""
    digest, wanted = hashlib.sha256(), size
    while size > 0:
        chunk = file.read(min(size, 1 << 20))
        if not chunk:
            break
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest(), wanted - size
