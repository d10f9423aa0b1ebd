"""Session files: reading their lines, comparing them between turns, rewriting them for a copy."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from skillup.dataclass import frozen, mutable
from skillup.engines.events import Transcript, read_event
from skillup.schema.record import SessionFingerprint, TranscriptItem
from skillup.workspace.disk import leads_out, open_at_once

_MOST_BYTES = 1 << 28
_SHOWN = 16  # Characters of a digest: enough to tell two apart


def own_file(path: Path | None, home: Path) -> Path | None:
    """None if the agent has put a link, a pipe or a file without end in its place."""
    if path is None or not -1 < size_of(path) < _MOST_BYTES or leads_out(path, home):
        return None
    return path


def size_of(path: Path) -> int:
    """In bytes; -1: it is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - done for every turn
    except OSError:
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def loss_of(path: Path | None, previous: SessionFingerprint) -> str | None:
    """Why the file does not begin with the bytes that it had when `previous` was taken.

    None if it does. A file that held no message then counts as lost, unless it was seeded so: the
    earlier turns were never in it.
    """
    size, sha256 = previous.prefix_bytes, previous.prefix_sha256
    if previous.messages == 0 and not previous.seeded:
        where = path or "the session, of which no file was found,"
        return f"after the turn before, {where} held no user message ({size} bytes)"
    before = f"it held {size} bytes after the turn before (sha256 {sha256[:_SHOWN]}…)"
    if path is None or not path.is_file():
        return f"its file is gone: {before}"
    with open_at_once(path) as file:
        data = file.read(size)
    digest = hashlib.sha256(data).hexdigest()
    if digest == sha256:
        return None
    return f"{path}: {before}; now these are {len(data)} (sha256 {digest[:_SHOWN]}…)"


def missing_message(now: SessionFingerprint | None, previous: SessionFingerprint) -> str | None:
    """Why the session does not have the user message of this turn; None if it has."""
    count = now.messages if now is not None else 0
    if count > previous.messages:
        return None
    return f"it held user messages before the turn: {previous.messages}; after it: {count}"


class SessionLine(NamedTuple):
    """A line that is not blank."""

    number: int  # From 1; blank lines count
    row: dict[str, Any] | str  # The JSON object, or the text of what is none
    ended: bool  # It has its newline


def lines_of(path: Path, limit: int | None = None, *, start: int = 0) -> Iterator[SessionLine]:
    """Those that end within `limit` bytes from the byte `start`. Raises OSError."""
    with open_at_once(path) as file:
        file.seek(start)
        number = 0
        while data := file.readline(-1 if limit is None else limit):
            number += 1
            ended = data.endswith(b"\n")
            if limit is not None:
                limit -= len(data)
                if limit == 0 and not ended:
                    return
            row = row_of(data)
            if row is not None:
                yield SessionLine(number, row, ended)


def row_of(line: bytes) -> dict[str, Any] | str | None:
    """Of a line of a session file; None: it is blank."""
    # Bytes that are no UTF-8 are replaced: one of them shall not cost a message.
    return read_event(line.rstrip(b"\r\n").decode(errors="replace").encode())


def fingerprint_of(
    file: Path | None, session_id: str, is_message: Callable[[dict[str, Any]], bool]
) -> SessionFingerprint | None:
    """What the session in `file` holds; None if there is no file."""
    if file is None or not os.path.isfile(file):  # noqa: PTH113 - done for every turn
        return None
    digest, size, messages = hashlib.sha256(), 0, 0
    with open_at_once(file) as lines:
        for line in lines:
            digest.update(line)
            size += len(line)
            row = row_of(line)
            messages += isinstance(row, dict) and is_message(row)
    sha = digest.hexdigest()
    return SessionFingerprint(
        session_id=session_id, messages=messages, prefix_sha256=sha, prefix_bytes=size
    )


def rows_of(path: Path, limit: int | None = None, start: int = 0) -> Iterator[dict[str, Any]]:
    """Of :func:`lines_of` those that are JSON objects."""
    lines = lines_of(path, limit, start=start)
    return (line.row for line in lines if isinstance(line.row, dict))


def json_line(row: Mapping[str, Any]) -> bytes:
    """A row as a line, in ASCII; what JSON or Unicode do not have becomes text that they have."""
    clean = read_event(json.dumps(row, default=str).encode())
    return json.dumps(clean, separators=(",", ":")).encode() + b"\n"


# What goes on after a path makes it another one: `runs/a` is not in `runs/ab` or `runs/a.bak`.
_GOES_ON = r"(?![\w-]|\.\w)"


def rewriting(paths: Mapping[str, str], words: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """Old text → new text in a line of JSON, also in texts that are themselves JSON.

    `paths` are replaced where they end, or something below them follows; `words` wherever they
    stand. Of texts that begin with each other, the longer goes first.
    """
    ends = _in_json(paths)
    new = ends | _in_json(words)
    longest = sorted(new, key=len, reverse=True)
    forms = (re.escape(old) + (_GOES_ON.encode() if old in ends else b"") for old in longest)
    pattern = re.compile(b"|".join(forms))
    return lambda line: pattern.sub(lambda found: new[found[0]], line) if new else line


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


@frozen
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


Role = Literal["user", "assistant", "tool_call", "tool_result", "reasoning", "question", "notice"]
"""notice: what the CLI says or adds by itself, and what we do not understand."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]")
_FIRST_WORDS = 200


@frozen
class SessionEntry:
    """One message, call, result, thought or notice."""

    line: int  # From 1
    timestamp: str | None  # As the file has it: ISO 8601, UTC
    turn: int  # Which user message it belongs to, from 1; 0 before the first
    role: Role
    item: TranscriptItem


@mutable
class SessionSummary:
    """What is known of a session as a whole; complete when all its lines have been read."""

    session_id: str | None = None
    cwd: str | None = None
    version: str | None = None  # Of the CLI, in the last line that has it
    model: str | None = None  # The last one that answered
    title: str | None = None
    started: str | None = None
    ended: str | None = None
    turns: int = 0
    first_words: str = ""  # The beginning of the first user message
    unknown_lines: int = 0  # Lines that we do not understand, in whole or in part
    truncated: bool = False  # The last line is cut off: still being written, or its writer died


class SessionReader(Transcript, ABC):
    """Reads one session file of a CLI's users, once; no row of it makes it raise."""

    engine: str  # The adapter's name
    label: str  # The agent's name, for people
    folder: str  # In the CLI's home: where the files are

    def __init__(self) -> None:
        super().__init__()
        self.summary = SessionSummary()
        self.entries: list[SessionEntry] = []  # Of the line that is read
        self.used: dict[str, tuple[int, dict[str, int]]] = {}  # `tokens` by what of, with the line
        self.unread: list[int] = []  # Lines cut, no JSON, or too deep: a call may be in them
        self._line = 0
        self._timestamp: str | None = None
        self._unknown_line = 0

    @staticmethod
    @abstractmethod
    def id_in(file: Path, directory: Path) -> str | None:
        """Of the session in a file below a directory; None if it is none."""

    @staticmethod
    @abstractmethod
    def matches(row: dict[str, Any]) -> bool:
        """Whether a row can only be of this format."""

    @abstractmethod
    def feed(self, row: dict[str, Any]) -> None:
        """Enters what a row says."""

    @abstractmethod
    def tokens(self, row: dict[str, Any]) -> tuple[str, dict[str, int]] | None:
        """What a row's counts are of ("": of the row), and they by the names of `Usage`."""

    def left_lines(self, lines: Iterable[SessionLine]) -> Collection[int]:  # noqa: ARG002
        """The numbers of the lines that are on branches gone back from."""
        return ()

    def read(self, path: Path, limit: int | None = None) -> Iterator[SessionEntry]:
        """The entries, line by line; afterwards the summary is complete. Raises OSError.

        Of a session with branches only the conversation as it stands: only the end tells which
        that is, so its file is read twice. Not within a `limit` of first bytes.
        """
        left = self.left_lines(lines_of(path)) if limit is None else ()
        for line in lines_of(path, limit):
            if line.number in left:
                continue
            self._line, self._timestamp, self.entries = line.number, None, []
            if isinstance(line.row, dict):
                self.feed(line.row)
                if found := self.tokens(line.row):
                    self.used[found[0] or str(line.number)] = line.number, found[1]
            else:
                self.unread.append(line.number)
                if line.ended:
                    self.unknown(line.row)
                else:
                    self.summary.truncated = True
                    self.notice("the last line is cut off")
            yield from self.entries

    def time(self, timestamp: Any) -> None:
        """When the line was written."""
        if isinstance(timestamp, str) and _TIME.match(timestamp) is not None:
            self._timestamp = self.summary.ended = timestamp
            self.summary.started = self.summary.started or timestamp

    def user(self, text: str, agent: str | None = None) -> None:
        """A message of the user; for a sub-agent, of its caller."""
        self.summary.turns += agent is None
        if not self.summary.first_words:
            self.summary.first_words = " ".join(text[: 4 * _FIRST_WORDS].split())[:_FIRST_WORDS]
        self._enter("user", TranscriptItem(type="message", text=text, agent=agent))

    def reasoning(self, text: str, agent: str | None = None) -> None:
        """Entered though it is empty: it may be kept secret."""
        self.add(TranscriptItem(type="reasoning", text=text, agent=agent))

    def notice(self, text: str, agent: str | None = None) -> None:
        if text:
            self.add(TranscriptItem(type="notice", text=text, agent=agent))

    def unknown(self, event: Any) -> None:
        super().unknown(event)
        self.summary.unknown_lines += self._line != self._unknown_line
        self._unknown_line = self._line

    def add(self, item: TranscriptItem) -> None:
        self._enter("assistant" if item.type == "message" else item.type, item)

    def _enter(self, role: Role, item: TranscriptItem) -> None:
        at = self._line, self._timestamp, self.summary.turns
        self.entries.append(SessionEntry(*at, role, item))
