"""Claude Code's session files: `projects/<slug of the working directory>/<session id>.jsonl`."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.created_sessions import SessionPlace, UnwritableError
from skillup.engines.session_files import Rewriting, json_line
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import HistoryItem, ToolCall

_LONGEST_SLUG = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def session_file(engine_home: Path, session_id: str) -> Path | None:
    """The session's file. The slug is not computed: the workspace may have been elsewhere."""
    found = (engine_home / "projects").glob(f"*/{glob.escape(session_id)}.jsonl")
    return min(found, default=None)


def is_user_message(entry: dict[str, Any]) -> bool:
    """Whether a line is a message that somebody sent, not a tool result or the CLI's own text."""
    flags = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
    if entry.get("type") != "user" or any(entry.get(flag) for flag in flags):
        return False
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        content = next((text for text in texts if isinstance(text, str) and text), None)
    return isinstance(content, str) and not content.startswith("[Request interrupted")


def project_folder(engine_home: Path, workspace: Path) -> Path:
    """Where Claude Code looks for sessions held in `workspace`, a real path; it need not exist.

    Its name: whatever is no ASCII letter or digit becomes a dash; long ones are cut and get a hash.
    As claude 2.1 does it, in UTF-16 units: an emoji becomes two dashes.
    """
    data = str(workspace).encode("utf-16-le", "surrogatepass")
    units = [data[n] | data[n + 1] << 8 for n in range(0, len(data), 2)]
    slug = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    if len(slug) > _LONGEST_SLUG:
        # 31 times the hash so far, plus the next unit, in signed 32 bits; its amount in base 36.
        value = 0
        for unit in units:
            value = (value * 31 + unit) & 0xFFFFFFFF
        value = (1 << 32) - value if value >> 31 else value
        digits = "" if value else "0"
        while value:
            value, digit = divmod(value, 36)
            digits = _DIGITS[digit] + digits
        slug = f"{slug[:_LONGEST_SLUG]}-{digits}"
    return engine_home / "projects" / slug


def fork_files(
    source: Path, parent: SessionPlace, child: SessionPlace
) -> Iterator[tuple[Path, Iterable[bytes]]]:
    """Each file of a copy of the session in `source`, and its lines; a file is open meanwhile."""
    folder = project_folder(child.engine_home, child.workspace)
    old_id, new_id = parent.session_id, child.session_id
    paths = {
        source.parent: folder,
        parent.engine_home: child.engine_home,
        parent.home: child.home,
        parent.workspace: child.workspace,
    }
    rewriting = Rewriting(
        {str(old): str(new) for old, new in paths.items()},
        {old_id: new_id},
        # Thoughts are signed: the model's API refuses them if a letter is changed.
        untouched=lambda value: value.get("type") in ("thinking", "redacted_thinking"),
    )
    files = {source: folder / f"{new_id}.jsonl"}
    for path in source.with_suffix("").rglob("*"):
        files[path] = folder / new_id / path.relative_to(source.with_suffix(""))
    for name in ("todos", "tasks", "file-history"):  # something for each session, named by its id
        for path in (parent.engine_home / name).glob(f"{glob.escape(old_id)}*"):
            for each in (path, *path.rglob("*")):
                inner = str(each.relative_to(parent.engine_home)).replace(old_id, new_id, 1)
                files[each] = child.engine_home / inner
    for path, target in files.items():
        if not path.is_file():
            continue
        is_json = path.suffix in (".jsonl", ".json") and path.is_relative_to(source.parent)
        with path.open("rb") as lines:
            yield target, map(rewriting.line, lines) if is_json else lines


# A session file that holds a conversation which never ran.

# No model wrote it. Without any name claude hangs; the name is not sent.
MODEL = "seeded-history"
OPENING = "(The conversation begins with the assistant.)"
CLOSING = "(The history ends here, before an answer.)"
_NO_USAGE = dict.fromkeys(
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"], 0
)


def history_session(
    history: Sequence[HistoryItem], session_id: str, workspace: Path, version: str
) -> WrittenSession:
    """The session that holds `history`, with what claude needs at its two ends.

    Conversations begin with the user, and end with an answer: to one that ends with a tool's result
    claude would add words of its own, the user's too. Raises UnwritableError.
    """
    session = WrittenSession(session_id, workspace, version)
    for item in history:
        session.add(item)
    if not session.rows:
        raise UnwritableError("setup", "it holds no message to begin with")
    if not is_user_message(session.rows[0]):
        past, session.rows = session.rows, []
        session.user(OPENING)
        session.rows += past
        session.notices.append(f"before the history, which does not begin with the user: {OPENING}")
    if session.rows[-1]["type"] == "user":
        session.assistant([{"type": "text", "text": CLOSING}])
        session.notices.append(f"behind the history, which does not end with an answer: {CLOSING}")
    return session


class WrittenSession:
    """The rows of one session, as they are added."""

    def __init__(self, session_id: str, workspace: Path, version: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self.notices: list[str] = []
        self._id = session_id
        self._common = {
            "isSidechain": False,
            "userType": "external",
            "cwd": str(workspace),
            "sessionId": session_id,
            "version": version,
        }
        self._taken_ids: set[str] = set()
        # Where a call's id comes again, the results that follow are of the later call.
        self._latest_ids: dict[str, str] = {}
        self._answers = 0

    def add(self, item: HistoryItem) -> None:
        """The rows of one message; none for one that is empty."""
        if item.role == "user" and item.content.strip():
            self.user(item.content)
        elif item.role == "assistant":
            blocks = [{"type": "text", "text": item.content}] if item.content.strip() else []
            self.assistant([*blocks, *map(self._call, item.tool_calls)])
        elif item.tool_result is not None:
            result = item.tool_result
            call_id = self._latest_ids.get(result.call_id, _api_id(result.call_id))
            block: dict[str, Any] = {
                "type": "tool_result",
                "tool_use_id": call_id,
                "content": result.content,
            }
            if result.status == "error":  # the API takes no failure without words
                block |= {"content": result.content or "(no output)", "is_error": True}
            self.user([block])

    def user(self, content: str | list[dict[str, Any]]) -> None:
        """A row of the user's, or with a tool's result."""
        message = {"role": "user", "content": content}
        self.rows.append({**self._common, "type": "user", "message": message})

    def assistant(self, blocks: Iterable[Mapping[str, Any]]) -> None:
        """One answer: its rows have one message id, or claude would send the calls scrambled."""
        self._answers += 1
        for block in blocks:
            message = {
                "id": f"msg_{uuid5(UUID(self._id), f'answer {self._answers}').hex}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": _NO_USAGE,
            }
            self.rows.append({**self._common, "type": "assistant", "message": message})

    def lines(self) -> Iterator[bytes]:
        """What goes into the file; the rows are a second apart, the last one now."""
        now, parent = datetime.now(UTC), None
        for number, row in enumerate(self.rows):
            uuid = str(uuid5(UUID(self._id), f"line {number}"))
            time = now - timedelta(seconds=len(self.rows) - 1 - number)
            timestamp = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            yield json_line({"parentUuid": parent, "uuid": uuid, "timestamp": timestamp, **row})
            parent = uuid

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """No two calls may have one id."""
        given = free = _api_id(call.id)
        number = 1
        while free in self._taken_ids:
            number += 1
            free = f"{given}_{number}"
        self._taken_ids.add(free)
        self._latest_ids[call.id] = free
        name, arguments = own_call(call)
        return {"type": "tool_use", "id": free, "name": name, "input": arguments}


# Claude's tool of each kind, and what other engines and cases call its arguments.
_PATH = ("path", "filename")
_TOOLS: Mapping[ToolKind, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "shell": ("Bash", {"command": ("cmd", "script")}),
    "read": ("Read", {"file_path": _PATH}),
    "write": ("Write", {"file_path": _PATH, "content": ("text", "file_text")}),
    "edit": (
        "Edit",
        {
            "file_path": (*_PATH, "notebook_path"),
            "old_string": ("old", "old_str"),
            "new_string": ("new", "new_str"),
        },
    ),
    "search": ("Grep", {"pattern": ("query", "regex")}),
    "web": ("WebFetch", {"url": ("uri",)}),
    "skill": ("Skill", {"skill": ("name", "command")}),
    "agent": ("Agent", {}),
    # Nothing says which one: names that the model's API takes, and that no tool has.
    "mcp": ("mcp__unknown__tool", {}),
    "other": ("other", {}),
}
_WEB_SEARCH: tuple[str, Mapping[str, tuple[str, ...]]] = ("WebSearch", {"query": ("q",)})

# What the API takes as the name of a tool, and as the id of a call.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128


def own_call(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The tool's name and its input, as claude has them.

    A call with a name keeps it, and its arguments; MCP's `server::tool` becomes
    `mcp__server__tool`. Without a name it is claude's tool of the call's kind, and each argument
    gets the name that this tool has for it, unless one stands there under that name already.
    """
    given = call.arguments
    if call.name:
        server, separator, tool = call.name.partition("::")
        own = f"mcp__{server or 'unknown'}__{tool or 'tool'}" if separator else call.name
        return _NOT_IN_NAMES.sub("_", own)[:_LONGEST_NAME], dict(given)
    name, names = _TOOLS[call.kind]
    if call.kind == "web" and not given.keys() & {"url", "uri"} and given.keys() & {"query", "q"}:
        name, names = _WEB_SEARCH
    targets = {other: own for own, others in names.items() for other in others}
    arguments: dict[str, Any] = {}
    for key, value in given.items():
        target = targets.get(key, key)
        arguments[key if target in given or target in arguments else target] = value
    command = arguments.get("command")
    if name == "Bash" and isinstance(command, list):
        arguments["command"] = shlex.join(map(str, command))
    return name, arguments


def _api_id(call_id: str) -> str:
    return _NOT_IN_NAMES.sub("_", call_id) or "_"
