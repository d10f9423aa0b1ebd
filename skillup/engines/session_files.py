"""Session files: reading their lines, comparing them between turns, rewriting them for a copy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.events import read_event
from skillup.schema.record import SessionFingerprint

_SHOWN = 16
"""Characters of a digest: enough to tell two apart."""


def loss_of(path: Path | None, previous: SessionFingerprint) -> str | None:
    """Why the file does not begin with the bytes that it had when `previous` was taken.

    None if it does. It does not, either, if it held no message then, unless it was seeded so: the
    earlier turns were in it even less than they are now.
    """
    size, sha256 = previous.prefix_bytes, previous.prefix_sha256
    if previous.messages == 0 and not previous.seeded:
        return f"after the turn before, the session held no user message ({size} bytes)"
    before = f"it held {size} bytes after the turn before"
    if path is None or not path.is_file():
        return f"its file is gone: {before} (sha256 {sha256[:_SHOWN]}…)"
    with path.open("rb") as file:
        data = file.read(size)
    if len(data) < size:
        return f"{path}: {before}, and holds {len(data)} now"
    digest = hashlib.sha256(data).hexdigest()
    if digest == sha256:
        return None
    return (
        f"{path}: {before}, and these are others now: "
        f"sha256 {sha256[:_SHOWN]}… then, {digest[:_SHOWN]}… now"
    )


def missing_message(now: SessionFingerprint | None, previous: SessionFingerprint) -> str | None:
    """Why the session does not have the user message of this turn; None if it has."""
    count = now.messages if now is not None else 0
    if count > previous.messages:
        return None
    return f"it held user messages before the turn: {previous.messages}; after it: {count}"


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A line that is not blank."""

    number: int  # From 1; blank lines count
    row: dict[str, Any] | str  # The JSON object, or the text of what is none
    ended: bool  # It has its newline


def lines_of(path: Path, limit: int | None = None, *, start: int = 0) -> Iterator[SessionLine]:
    """The lines within `limit` bytes from the byte `start`, one at a time. Raises OSError.

    A line that the limit cuts is left out.
    """
    with path.open("rb") as file:
        file.seek(start)
        number = 0
        while data := file.readline(-1 if limit is None else limit):
            number += 1
            ended = data.endswith(b"\n")
            if limit is not None:
                limit -= len(data)
                if limit == 0 and not ended:
                    return
            # Bytes that are no UTF-8 are replaced: one of them shall not cost a message.
            row = read_event(data.rstrip(b"\r\n").decode(errors="replace").encode())
            if row is not None:
                yield SessionLine(number, row, ended)


def rows_of(path: Path, limit: int | None = None, start: int = 0) -> Iterator[dict[str, Any]]:
    """Of :func:`lines_of` those that are JSON objects."""
    lines = lines_of(path, limit, start=start)
    return (line.row for line in lines if isinstance(line.row, dict))


def json_line(row: Mapping[str, Any]) -> bytes:
    """A row as a line, in ASCII; what JSON or Unicode do not have becomes text that they have."""
    clean = read_event(json.dumps(row, default=str).encode())
    return json.dumps(clean, separators=(",", ":")).encode() + b"\n"


# What goes on after a path makes it another one: `/tmp/a` is not in `/tmp/ab` or `/tmp/a.bak`.
_GOES_ON = r"(?![\w-]|\.\w)"


class Rewriting:
    """Old text → new text in lines of JSON, also in texts that are themselves JSON.

    `paths` are replaced where they end, or something below them follows; `words` wherever they
    stand. Of texts that begin with each other, the longer goes first.
    """

    def __init__(self, paths: Mapping[str, str], words: Mapping[str, str]) -> None:
        ends = _in_json(paths)
        self._new = ends | _in_json(words)
        longest = sorted(self._new, key=len, reverse=True)
        forms = (re.escape(old) + (_GOES_ON.encode() if old in ends else b"") for old in longest)
        self._pattern = re.compile(b"|".join(forms))

    def line(self, line: bytes) -> bytes:
        return self._pattern.sub(lambda found: self._new[found[0]], line) if self._new else line


def _in_json(replacements: Mapping[str, str]) -> dict[bytes, bytes]:
    """As they stand in JSON, and in JSON within JSON; less those that change nothing."""
    forms: dict[bytes, bytes] = {}
    for pair in replacements.items():
        if pair[0] and pair[0] != pair[1]:
            for ascii_only in (True, False):
                texts = pair
                for _ in range(2):
                    quoted = (json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in texts)
                    texts = next(quoted), next(quoted)
                    forms.setdefault(texts[0].encode(), texts[1].encode())
    return forms


def moved_text(text: str, old: str, new: str) -> str:
    """`text` with the path `old` replaced, but not where it is only part of a longer name.

    ``/w/one`` is moved in ``/w/one``, ``/w/one/a`` and ``cd /w/one.``, not in ``/w/one-2``.
    """
    return re.sub(re.escape(old) + _GOES_ON, lambda _: new, text)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions of a CLI whose session files skillup may write, both ends included."""

    first: str
    last: str

    def __contains__(self, version: str) -> bool:
        """Not if it is no release, such as ``2.1.0-beta``; words behind it do not count."""
        match = re.match(r"\s*v?(\d+)\.(\d+)\.(\d+)(?:[+ ]|\Z)", version)
        if match is None:
            return False
        first, last = (tuple(map(int, text.split("."))) for text in (self.first, self.last))
        return first <= tuple(map(int, match.groups())) <= last

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"
