"""Session files: reading their lines, comparing them between turns, rewriting them for a copy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.events import map_texts, read_event
from skillup.schema.record import SessionFingerprint

_SHOWN = 16
"""Characters of a digest: enough to tell two apart."""
LONGEST_LINE = 64 << 20
"""Bytes. Pictures stand in session files as text; nothing else is as long as this."""


def take_fingerprint(
    path: Path | None, session_id: str, is_user_message: Callable[[dict[str, Any]], bool]
) -> SessionFingerprint | None:
    """Of the whole file as it is now; None if there is none."""
    if path is None or not path.is_file():
        return None
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        size = file.tell()
    return SessionFingerprint(
        session_id=session_id,
        messages=sum(map(is_user_message, rows_of(path))),
        prefix_sha256=digest.hexdigest(),
        prefix_bytes=size,
    )


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
    digest, left = hashlib.sha256(), size
    with path.open("rb") as file:
        while left and (chunk := file.read(min(left, 1 << 20))):
            digest.update(chunk)
            left -= len(chunk)
    if left:
        return f"{path}: {before}, and holds {size - left} now"
    if digest.hexdigest() == sha256:
        return None
    return (
        f"{path}: {before}, and these are others now: "
        f"sha256 {sha256[:_SHOWN]}… then, {digest.hexdigest()[:_SHOWN]}… now"
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


def lines_of(
    path: Path, limit: int | None = None, *, start: int = 0, longest: int = LONGEST_LINE
) -> Iterator[SessionLine]:
    """The lines within `limit` bytes from the byte `start`, one at a time. Raises OSError.

    A line that the limit cuts is left out; of one above `longest` there is only the beginning.
    """
    with path.open("rb") as file:
        file.seek(start)
        number = 0
        while data := file.readline(longest if limit is None else min(limit, longest)):
            number += 1
            ended = data.endswith(b"\n")
            if limit is not None:
                limit -= len(data)
                if limit == 0 and not ended:
                    return
            if len(data) == longest and not ended:
                while not ended and (rest := file.readline(1 << 20)):
                    ended = rest.endswith(b"\n")
                yield SessionLine(number, data[:1000].decode(errors="replace"), ended)
                continue
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
# So does what stands before it, but for an escaped newline or tab and a flag such as `-I`.
_BEGINS = re.compile(r"(?:\\[nrtbf]|(?:^|[\s\"'=])-\w|(?:^|[^\w.~-]))\Z")
_LOOK_BACK = 4


class Rewriting:
    """Old text → new text, applied to the strings within lines of JSON; a longer one goes first.

    `paths` are replaced where they stand whole, with or without something below them; `words`
    wherever they stand. All within an `untouched` JSON object stays as it is.
    """

    def __init__(
        self,
        paths: Mapping[str, str],
        words: Mapping[str, str],
        untouched: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        self._paths, self._words = _with_escaped(paths), _with_escaped(words)
        any_path, any_word = (
            "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
            for texts in (self._paths, self._words)
        )
        choices = [f"(?P<path>{any_path}){_GOES_ON}"] if any_path else []
        choices += [f"(?:{any_word})"] if any_word else []
        self._pattern = re.compile("|".join(choices)) if choices else None
        self._untouched = untouched

    def line(self, line: bytes) -> bytes:
        """A line of JSON, with its newline. One that needs no change stays as it is."""
        try:
            row = json.loads(line)
            rewritten = map_texts(row, self.text, self._untouched)
        except (ValueError, RecursionError):
            return line
        if rewritten == row:
            return line
        try:
            text = json.dumps(rewritten, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            text = json.dumps(rewritten, separators=(",", ":")).encode()
        return text + b"\n" * line.endswith(b"\n")

    def text(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        if match.groupdict().get("path") is None:
            return self._words[match[0]]
        before = match.string[max(0, match.start() - _LOOK_BACK) : match.start()]
        whole = not before or _BEGINS.search(before) is not None
        return self._paths[match[0]] if whole else match[0]


def _with_escaped(replacements: Mapping[str, str]) -> dict[str, str]:
    """Also as they stand in a string that is itself JSON; less those that change nothing."""
    forms: dict[str, str] = {}
    for old, new in replacements.items():
        if not old or old == new:
            continue
        for ascii_only in (True, False):
            quoted, its_new = (json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in (old, new))
            forms[quoted] = its_new
        forms[old] = new
    return forms


def moved_text(text: str, old: str, new: str) -> str:
    """`text` with the path `old` replaced, but not where it is only part of a longer name.

    ``/w/one`` is moved in ``/w/one``, ``/w/one/a`` and ``cd /w/one.``, not in ``/w/one-2``.
    """
    return Rewriting({old: new}, {}).text(text)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions of a CLI whose session files skillup may write, both ends included."""

    first: str
    last: str

    def __contains__(self, version: str) -> bool:
        """Whether it lies within the range; not if it is no release, such as ``2.1.0-beta``.

        Build metadata (``1.2.3+abc``) and words after a space (``2.1.1 (Claude Code)``) are no
        part of it.
        """
        match = re.fullmatch(r"\s*v?(\d+\.\d+\.\d+)(?:[+ ].*)?", version, re.DOTALL)
        if match is None:
            return False
        first, this, last = (
            tuple(map(int, text.split("."))) for text in (self.first, match[1], self.last)
        )
        return first <= this <= last

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"
