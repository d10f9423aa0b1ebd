"""Real session files, kept beside the repository: nothing lost, nothing told twice.

What must come out is counted here from the rows themselves, by another way than the readers take.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.session_files import read, told

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "compat" / "sessions"
FILES = sorted(CORPUS.rglob("*.jsonl")) if CORPUS.is_dir() else []
needs_corpus = pytest.mark.skipif(not FILES, reason=f"no corpus at {CORPUS}")
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))

NOT_OBJECTS = {"claude/claude-code-log/edge_cases.jsonl": 5}
"""Lines that no reader can understand: three are no objects, two are broken rows."""
_PLACEHOLDER = "[trimmed for fixture]"


@needs_corpus
@each_file
def test_every_row_of_the_conversation_is_told_once(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    rows = list(_distinct(path))
    copy.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    entries, _ = read(copy)
    found: Counter[tuple[int, str]] = Counter((entry.line, entry.role) for entry in entries)
    expected = Counter(_expected(path, rows))
    for key, number in expected.items():
        assert found[key] == number, (key, rows[key[0] - 1])
    surplus = {key for key in found if key[1] != "notice"} - expected.keys()
    assert surplus == set()


@needs_corpus
@each_file
def test_only_what_nobody_can_understand_is_unknown(path: Path) -> None:
    _, summary = read(path)
    assert summary.unknown_lines == NOT_OBJECTS.get(path.relative_to(CORPUS).as_posix(), 0)
    assert not summary.truncated


@needs_corpus
@each_file
def test_any_cut_of_a_file_can_be_read(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for cut in range(first, len(data), max(1, len(data) // 25)):
        part = tmp_path / "cut.jsonl"
        part.write_bytes(data[:cut])
        _, summary = read(part)
        whole = data[:cut].endswith(b"\n") or data[cut : cut + 1] == b"\n"
        assert summary.truncated == (not whole), cut


@needs_corpus
def test_turns_and_words_of_known_sessions() -> None:
    known = {
        "claude/claude-code-log/dag_compact_after_rewind.jsonl": (4, "Start"),
        "claude/happy/rate-limit.jsonl": (1, "what is on my todo list today?"),
        "claude/redacted/happy/1-continue-run-ls-tool.jsonl": (2, "say lol"),
        "claude/takopi/claude_stream_json_session.jsonl": (2, "List the files in the"),
        "codex/claude-code-transcripts/sample_codex_session.jsonl": (1, "can you analyse the MD"),
        "codex/openagent/codex_v0142_edit.jsonl": (1, ""),
        "codex/takopi/codex_exec_json_all_formats.jsonl": (2, ""),
    }
    for name, (turns, words) in known.items():
        _, summary = read(CORPUS / name)
        assert (summary.turns, summary.first_words[: len(words)]) == (turns, words), name


@needs_corpus
def test_the_branch_that_was_gone_back_from() -> None:
    entries, _ = read(CORPUS / "claude/claude-code-log/dag_compact_after_rewind.jsonl")
    assert [told(entry) for entry in entries if entry.left] == [
        ("user", "First attempt"),
        ("assistant", "First answer"),
    ]


def _distinct(path: Path) -> Iterator[Any]:
    """The rows, each placeholder made one of its own: trimmed ids would all be the same call."""
    numbers = count()

    def unique(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: unique(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [unique(inner) for inner in value]
        return f"trimmed {next(numbers)}" if value == _PLACEHOLDER else value

    for line in path.read_bytes().splitlines():
        yield unique(json.loads(line))


def _expected(path: Path, rows: list[Any]) -> Iterator[tuple[int, str]]:
    """Line and role of all that must be told."""
    twins: Counter[tuple[str, str]] = Counter()
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            yield number, "notice"
        elif "claude" in path.relative_to(CORPUS).parts[:1]:
            yield from ((number, role) for role in _of_claude(row))
        elif "item" in row or str(row.get("type", "")).partition(".")[1]:
            yield from ((number, role) for role in _of_exec(row, twins))
        else:
            yield from ((number, role) for role in _of_rollout(row, twins))


def _of_claude(row: dict[str, Any]) -> Iterator[str]:
    if row.get("type") in ("tool_use", "tool_result"):
        yield "tool_call" if row["type"] == "tool_use" else "tool_result"
    if row.get("type") == "attachment" and row["attachment"]["type"] == "queued_command":
        yield "user"
    message = row.get("message")
    if row.get("type") not in ("user", "assistant") or message is None:
        return
    content = message if isinstance(message, str) else message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    by_cli = row.get("isCompactSummary") or (
        isinstance(message, dict) and message.get("model") == "<synthetic>"
    )
    said = 0
    for block in blocks:
        kind = block["type"] if isinstance(block, dict) else "text"
        words = block.get("text", "") if isinstance(block, dict) else block
        if kind in ("tool_use", "tool_result", "thinking", "fallback"):
            yield {"tool_use": "tool_call", "thinking": "reasoning", "fallback": "notice"}.get(
                kind, kind
            )
        elif words.startswith(("<system-reminder>", "<local-command", "Caveat: ")) or by_cli:
            yield "notice"
        else:
            said += row["type"] == "assistant" or not said
    yield from [row["type"]] * said
    if not blocks:
        yield "notice"


def _of_exec(row: dict[str, Any], twins: Counter[tuple[str, str]]) -> Iterator[str]:
    item = row.get("item", {})
    kind, done = item.get("type"), row.get("type") == "item.completed"
    simple = {"agent_message": "assistant", "reasoning": "reasoning", "error": "notice"}
    if kind in simple:
        yield simple[kind]
    elif kind and (kind != "todo_list" or done):
        files = len(item.get("changes", "1"))
        if not twins[("call", item["id"])]:
            twins[("call", item["id"])] = 1
            yield from ["tool_call"] * files
        if done and kind not in ("todo_list", "web_search"):
            yield from ["tool_result"] * files


def _of_rollout(row: dict[str, Any], twins: Counter[tuple[str, str]]) -> Iterator[str]:
    payload = row.get("payload", row)
    kind, item = payload.get("type", ""), payload.get("item") or {}
    content = payload.get("content") or item.get("content") or payload.get("message") or ""
    words = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
    call_id = payload.get("call_id") or payload.get("callId") or item.get("id") or ""
    role = {
        "user_message": "user",
        "UserMessage": "user",
        "agent_message": "assistant",
        "AgentMessage": "assistant",
    }.get(item.get("type", kind))
    if kind == "message":
        role = payload["role"]
    if role == "developer" or words.startswith(("# AGENTS.md", "<environment_context>")):
        yield "notice"
    elif role is not None:
        # Whichever side comes second is no entry of its own.
        twins[(role, words)] += 1
        if twins[(role, words)] == 1:
            yield role
    elif "reasoning" in kind.lower() or item.get("type") == "Reasoning":
        text = payload.get("text") or "".join(p["text"] for p in payload.get("summary") or [])
        twins[("reasoning", text)] += 1
        if twins[("reasoning", text)] == 1 if text else kind == "reasoning":
            yield "reasoning"
    elif kind.endswith(("_call", "_call_request")):
        yield "tool_call"
    elif kind.endswith("_output"):
        yield "tool_result"
    elif kind.endswith("_end") or item.get("type") not in (None, "Plan"):
        assert call_id
        yield "tool_call"
        yield "tool_result"
    elif kind == "dynamic_tool_call_response":
        yield "tool_call"
        yield "tool_result"
