"""Fingerprints of session files: what a session held after a turn, and whether it still does."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from skillup.engines.events import read_event
from skillup.schema.record import SessionFingerprint

_SHOWN = 16
"""Characters of a digest: enough to tell two apart."""
IsUserMessage = Callable[[dict[str, Any]], bool]


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
        messages=sum(map(is_user_message, rows_of(path))),
        prefix_sha256=digest.hexdigest(),
        prefix_bytes=size,
    )


def without_file(session_id: str) -> SessionFingerprint:
    """Of a session that has no file: it holds nothing that a later turn could build on."""
    nothing = hashlib.sha256().hexdigest()
    return SessionFingerprint(
        session_id=session_id, messages=0, prefix_sha256=nothing, prefix_bytes=0
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


def addition_to(path: Path | None, previous: SessionFingerprint) -> str | None:
    """What the file has got since `previous` was taken: before a turn, nobody may have written."""
    size = path.stat().st_size if path is not None and path.is_file() else 0
    if size <= previous.prefix_bytes:
        return None
    more = size - previous.prefix_bytes
    return f"{path}: it held {previous.prefix_bytes} bytes after the turn before; {more} were added"


def missing_message(now: SessionFingerprint | None, previous: SessionFingerprint) -> str | None:
    """Why the session has not got the user message of this turn, too; None if it has."""
    count = now.messages if now is not None else 0
    if count > previous.messages:
        return None
    return f"it held user messages before the turn: {previous.messages}; after it: {count}"


LONGEST_LINE = 64 << 20
"""Bytes. Pictures stand in session files as text; nothing else is as long as this."""


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A line that is not blank."""

    number: int
    """From 1; blank lines count."""
    row: dict[str, Any] | str
    """The JSON object, or the text of what is none."""
    ended: bool
    """It has its newline."""


def lines_of(
    path: Path, limit: int | None = None, *, start: int = 0, longest: int = LONGEST_LINE
) -> Iterator[SessionLine]:
    """The lines within `limit` bytes from the byte `start`, one at a time. Raises OSError.

    A line that the limit cuts is left out; of one above `longest` there is only the beginning.
    """
    with path.open("rb") as file:
        file.seek(start)
        number = 0
        left = limit
        while True:
            room = longest if left is None else min(left, longest)
            data = file.readline(room)
            number += 1
            if not data:
                return
            ended = data.endswith(b"\n")
            if left is not None:
                left -= len(data)
                if left == 0 and not ended:
                    return
            if len(data) == longest and not ended:
                ended = _skip_rest(file)
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


def _skip_rest(file: BinaryIO) -> bool:
    while data := file.readline(1 << 20):
        if data.endswith(b"\n"):
            return True
    return False


# What one session's lines say of its place, replaced by what a copy's should say.

# What goes on after a path makes it another one: `/tmp/a` is not in `/tmp/ab` or `/tmp/a.bak`.
_GOES_ON = r"(?![\w-]|\.\w)"
# So does what stands before it, but for an escaped newline or tab and a flag such as `-I`.
_BEGINS = re.compile(r"(?:\\[nrtbf]|(?:^|[\s\"'=])-\w|(?:^|[^\w.~-]))\Z")
_LOOK_BACK = 4


class Rewriting:
    """Old text → new text, applied to the strings within lines of JSON; a longer one goes first.

    `paths` are replaced where they stand whole, with or without something below them; `words`
    wherever they stand. `untouched` tells of a JSON object that all in it stays as it is.
    """

    def __init__(
        self,
        paths: Mapping[str, str],
        words: Mapping[str, str],
        untouched: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        self._paths = _with_escaped(paths)
        self._words = _with_escaped(words)
        choices = [f"(?:{_any_of(self._words)})"] if self._words else []
        if self._paths:
            choices.insert(0, f"(?P<path>{_any_of(self._paths)}){_GOES_ON}")
        self._pattern = re.compile("|".join(choices)) if choices else None
        self._untouched = untouched

    def line(self, line: bytes) -> bytes:
        """A line of JSON, with its newline. One that needs no change stays as it is."""
        try:
            row = json.loads(line)
            rewritten = self._value(row)
        except (ValueError, RecursionError):
            return line
        if rewritten == row:
            return line
        ending = b"\n" if line.endswith(b"\n") else b""
        return _json(rewritten) + ending

    def text(self, text: str) -> str:
        """A text of any kind."""
        return text if self._pattern is None else self._pattern.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        if match.groupdict().get("path") is None:
            return self._words[match[0]]
        before = match.string[max(0, match.start() - _LOOK_BACK) : match.start()]
        whole = not before or _BEGINS.search(before) is not None
        return self._paths[match[0]] if whole else match[0]

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            if self._untouched(value):
                return value
            return {self.text(key): self._value(item) for key, item in value.items()}
        return value


def _with_escaped(replacements: Mapping[str, str]) -> dict[str, str]:
    """Also as they stand in a string that is itself JSON; less those that change nothing."""
    forms: dict[str, str] = {}
    for old, new in replacements.items():
        if old and old != new:
            forms |= {_escaped(old, plain): _escaped(new, plain) for plain in (True, False)}
            forms[old] = new
    return forms


def _any_of(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


def _escaped(text: str, ascii_only: bool) -> str:
    try:
        return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    except UnicodeError:
        return text


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def moved_text(text: str, old: str, new: str) -> str:
    """`text` with the path `old` replaced, but not where it is only part of a longer name.

    ``/w/one`` is moved in ``/w/one``, ``/w/one/a`` and ``cd /w/one.``, not in ``/w/one-2``.
    """
    return Rewriting({old: new}, {}).text(text)


_NUMBERS = re.compile(r"\s*v?(\d+)\.(\d+)\.(\d+)(?:[+ ].*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions of a CLI whose session files skillup may write, both ends included."""

    first: str
    last: str

    def __contains__(self, version: str) -> bool:
        """Whether it lies within the range; not if it is no release, such as ``2.1.0-beta``."""
        first, last, this = map(parse_version, (self.first, self.last, version))
        return this is not None and first is not None and last is not None and first <= this <= last

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


def parse_version(version: str) -> tuple[int, ...] | None:
    """The three numbers of a release; None for a pre-release and for what is no version.

    Build metadata (``1.2.3+abc``) makes no difference; a word after a space (``2.1.1 (Claude
    Code)``) neither.
    """
    match = _NUMBERS.fullmatch(version)
    return tuple(map(int, match.groups())) if match else None
