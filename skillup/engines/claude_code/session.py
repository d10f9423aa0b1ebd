"""Claude Code's session files: `projects/<slug of the working directory>/<session id>.jsonl`."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.claude_code.events import api_id, own_call
from skillup.engines.session_files import Rewriting, take_fingerprint
from skillup.schema.record import HistoryItem, SessionFingerprint, ToolCall, ToolResult


def session_file(engine_home: Path, session_id: str) -> Path | None:
    """The session's file. The slug is not computed: long ones are cut and get a hash added."""
    found = (engine_home / "projects").glob(f"*/{glob.escape(session_id)}.jsonl")
    return min(found, default=None)


def fingerprint(engine_home: Path, session_id: str) -> SessionFingerprint | None:
    """What the session holds now; None if it has no file."""
    return take_fingerprint(session_file(engine_home, session_id), session_id, is_user_message)


def is_user_message(entry: dict[str, Any]) -> bool:
    """Whether a line is a message that somebody sent, not a tool result or the CLI's own text."""
    if entry.get("type") != "user" or entry.get("isMeta") or entry.get("isSidechain"):
        return False
    if entry.get("isCompactSummary") or entry.get("isVisibleInTranscriptOnly"):
        return False
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        content = next((text for text in texts if isinstance(text, str) and text), None)
    return isinstance(content, str) and not content.startswith("[Request interrupted")


# Where Claude Code looks for the sessions of a working directory: `projects/<slug>`.

_LONGEST_SLUG = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOT_IN_SLUGS = re.compile(rb"[^a-zA-Z0-9]")


def project_folder(engine_home: Path, workspace: Path) -> Path:
    """The folder for sessions held in `workspace`, a real path; it need not exist."""
    return engine_home / "projects" / slug_of(str(workspace))


def slug_of(directory: str) -> str:
    """Whatever is no ASCII letter or digit becomes a dash; long ones are cut and get a hash.

    As claude 2.1 does it. It counts in UTF-16 units: an emoji becomes two dashes.
    """
    units = _utf16_units(directory)
    plain = "".join(chr(unit) if unit < 128 else "-" for unit in units).encode("ascii")
    slug = _NOT_IN_SLUGS.sub(b"-", plain).decode("ascii")
    if len(slug) <= _LONGEST_SLUG:
        return slug
    return f"{slug[:_LONGEST_SLUG]}-{_base36(_hash(units))}"


def _utf16_units(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[n] | data[n + 1] << 8 for n in range(0, len(data), 2)]


def _hash(units: list[int]) -> int:
    """31 times the hash so far, plus the next unit, in signed 32 bits; its amount."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return (1 << 32) - value if value >> 31 else value


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


# A session of Claude Code under a new id, in another trial's home; the parent's stays as it is.

# Folders of the engine's home that have something for each session, named by its id.
_BY_SESSION = ("todos", "tasks", "file-history")


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where a session is."""

    engine_home: Path
    home: Path
    """The trial's, which the engine's own is in under ``isolation: clean``."""
    workspace: Path
    """Real path."""
    session_id: str

    @property
    def folder(self) -> Path:
        """Where claude looks for the sessions of the workspace."""
        return project_folder(self.engine_home, self.workspace)

    @property
    def file(self) -> Path:
        """The session's file."""
        return self.folder / f"{self.session_id}.jsonl"


def fork_session(source: Path, parent: SessionPlace, child: SessionPlace) -> Path:
    """Copies the session in the file `source`, which is the parent's; the copy's file.

    Raises OSError; FileExistsError if the child's id is taken.
    """
    rewriting = _rewriting(source, parent, child)
    child.folder.mkdir(parents=True, exist_ok=True)
    _copy(source, child.file, rewriting)
    own_directory = source.with_suffix("")
    for path in _files_below(own_directory):
        target = child.file.with_suffix("") / path.relative_to(own_directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(path, target, rewriting)
    for name in _BY_SESSION:
        _copy_named(parent.engine_home / name, child.engine_home / name, parent, child)
    return child.file


def _rewriting(source: Path, parent: SessionPlace, child: SessionPlace) -> Rewriting:
    paths = {
        source.parent: child.folder,
        parent.engine_home: child.engine_home,
        parent.home: child.home,
        parent.workspace: child.workspace,
    }
    as_text = {str(old): str(new) for old, new in paths.items()}
    return Rewriting(as_text, {parent.session_id: child.session_id}, untouched=_is_thought)


def _is_thought(value: Mapping[str, Any]) -> bool:
    """Thoughts are signed: the model's API refuses them if a letter is changed."""
    return value.get("type") in ("thinking", "redacted_thinking")


def _copy(source: Path, target: Path, rewriting: Rewriting) -> None:
    """Line by line, rewritten if it is JSON; for its owner only, as claude makes it."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    is_json = source.suffix in (".jsonl", ".json")
    with source.open("rb") as lines, os.fdopen(descriptor, "wb") as copy:
        if is_json:
            copy.writelines(map(rewriting.line, lines))
        else:
            shutil.copyfileobj(lines, copy)


def _copy_named(source: Path, target: Path, parent: SessionPlace, child: SessionPlace) -> None:
    """What is named by the parent's id, under the child's."""
    if not source.is_dir():
        return
    for entry in sorted(source.iterdir()):
        if not entry.name.startswith(parent.session_id):
            continue
        renamed = target / entry.name.replace(parent.session_id, child.session_id)
        target.mkdir(parents=True, exist_ok=True)
        if entry.is_dir():
            shutil.copytree(entry, renamed)
        else:
            shutil.copyfile(entry, renamed)


def _files_below(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        yield from sorted(path for path in directory.rglob("*") if path.is_file())


# A session file of Claude Code that holds a conversation which never ran.

# No model said it. Without any name claude hangs; the name is not sent.
MODEL = "seeded-history"
OPENING = "(The conversation begins with the assistant.)"
CLOSING = "(The history ends here, before an answer.)"
_NO_OUTPUT = "(no output)"


@dataclass(slots=True)
class WrittenSession:
    """The lines of one session, as they are added."""

    session_id: str
    workspace: Path
    version: str
    now: datetime
    """In UTC; the time of the last line, so that the session is one that was just held."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _taken_ids: set[str] = field(default_factory=set)
    _latest_ids: dict[str, str] = field(default_factory=dict)
    """Where a call's id comes again, the results that follow are of the later call."""
    _answers: int = 0

    def add(self, item: HistoryItem) -> None:
        """The lines of one message; none for one that says nothing."""
        if item.role == "user":
            if item.content.strip():
                self.user(item.content)
        elif item.role == "assistant":
            blocks = list(self._blocks_of(item))
            if blocks:
                self.assistant(blocks)
        elif item.tool_result is not None:
            self.user([self._result(item.tool_result)])

    def user(self, content: str | list[dict[str, Any]]) -> None:
        """A line of the user's, or with a tool's result."""
        self._row("user", {"role": "user", "content": content})

    def assistant(self, blocks: Sequence[dict[str, Any]]) -> None:
        """One answer: its lines have one message id, or claude would send the calls scrambled."""
        self._answers += 1
        for block in blocks:
            message = {
                "id": f"msg_{uuid5(UUID(self.session_id), f'answer {self._answers}').hex}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {
                    "input_tokens": 0,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "output_tokens": 0,
                },
            }
            self._row("assistant", message)

    def lines(self) -> Iterator[bytes]:
        """What goes into the file; the lines are a second apart."""
        parent: str | None = None
        for number, row in enumerate(self.rows):
            uuid = str(uuid5(UUID(self.session_id), f"line {number}"))
            time = self.now - timedelta(seconds=len(self.rows) - 1 - number)
            links = {"parentUuid": parent, "uuid": uuid, "timestamp": _timestamp(time)}
            yield _json({**links, **row}) + b"\n"
            parent = uuid

    def _row(self, kind: str, message: dict[str, Any]) -> None:
        self.rows.append(
            {
                "isSidechain": False,
                "userType": "external",
                "cwd": str(self.workspace),
                "sessionId": self.session_id,
                "version": self.version,
                "type": kind,
                "message": message,
            }
        )

    def _blocks_of(self, item: HistoryItem) -> Iterator[dict[str, Any]]:
        if item.content.strip():
            yield {"type": "text", "text": item.content}
        for call in item.tool_calls:
            name, arguments = own_call(call)
            yield {"type": "tool_use", "id": self._new_id(call), "name": name, "input": arguments}

    def _new_id(self, call: ToolCall) -> str:
        """The id under which the call is written; no two calls may share one."""
        wanted = free = api_id(call.id)
        number = 1
        while free in self._taken_ids:
            number += 1
            free = f"{wanted}_{number}"
        self._taken_ids.add(free)
        self._latest_ids[call.id] = free
        return free

    def _result(self, result: ToolResult) -> dict[str, Any]:
        call_id = self._latest_ids.get(result.call_id, api_id(result.call_id))
        block = {"type": "tool_result", "tool_use_id": call_id, "content": result.content}
        if result.status == "error":
            # The API takes no failure without words.
            return {**block, "content": result.content or _NO_OUTPUT, "is_error": True}
        return block


def history_session(
    history: Sequence[HistoryItem], session_id: str, workspace: Path, version: str, now: datetime
) -> WrittenSession:
    """The session that holds `history`, with what claude needs at its two ends.

    `now` is in UTC. Conversations begin with the user, and end with an answer: to one that ends
    with a tool's result claude would add words of its own, the user's too.
    """
    session = WrittenSession(session_id, workspace, version, now)
    for item in history:
        session.add(item)
    if session.rows and not is_user_message(session.rows[0]):
        past, session.rows = session.rows, []
        session.user(OPENING)
        session.rows += past
        session.notices.append(f"before the history, which does not begin with the user: {OPENING}")
    if session.rows and session.rows[-1]["type"] == "user":
        session.assistant([{"type": "text", "text": CLOSING}])
        session.notices.append(f"behind the history, which does not end with an answer: {CLOSING}")
    return session


def write_session(session: WrittenSession, engine_home: Path) -> Path:
    """Writes it where claude looks for it. Raises OSError; FileExistsError if the id is taken."""
    folder = project_folder(engine_home, session.workspace)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session.session_id}.jsonl"
    # As claude makes it: for its owner only.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(session.lines())
    return path


def now() -> datetime:
    """In UTC, to the millisecond that the files tell."""
    return datetime.now(UTC)


def _timestamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def _json(row: dict[str, Any]) -> bytes:
    """In ASCII: what is no valid Unicode in a dataset is then still valid JSON."""
    try:
        text = json.dumps(row, separators=(",", ":"), default=str, allow_nan=False)
    except ValueError:  # a number that JSON does not have becomes a word
        row = json.loads(json.dumps(row, default=str), parse_constant=str)
        text = json.dumps(row, separators=(",", ":"))
    return text.encode("ascii")
