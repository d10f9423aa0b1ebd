"""Tokens of each turn, as the rows of a session file tell them.

Claude Code's messages carry the tokens of one request each, on every row of the message; Codex
tells the sum of the whole thread again and again. Formats: Claude Code 1.0 to 2.1, Codex 0.20 to
0.169.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skillup.engines.cli_runner import as_count, as_dict, as_text
from skillup.engines.session_entries import SessionFormat
from skillup.engines.session_files import lines_of
from skillup.schema.record import Usage

_Told = tuple[int, str, dict[str, int]]
"""A line, what its counts are of, and the counts by the names of :class:`Usage`."""

_CODEX = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}


def usage_of_turns(
    path: Path, format_: SessionFormat, first_lines: Sequence[int], counted: frozenset[int]
) -> list[Usage | None]:
    """For each turn, by its first line; None where the file does not tell.

    Of a session of Claude Code only the rows in `counted` count: others are on branches that were
    left. Raises OSError.
    """
    if not first_lines:
        return []
    turns: list[dict[str, dict[str, int]]] = [{} for _ in first_lines]
    is_claude = format_.startswith("claude")
    for line, key, counts in _claude(path, format_) if is_claude else _codex(path):
        turn = bisect_right(first_lines, line) - 1
        if turn >= 0 and (format_ != "claude_session" or line in counted):
            turns[turn][key] = counts
    if is_claude:
        return [_usage(list(messages.values())) for messages in turns]
    return list(_differences(turns))


def _claude(path: Path, format_: SessionFormat) -> Iterator[_Told]:
    for line in lines_of(path):
        row = line.row if isinstance(line.row, dict) else {}
        kind = "result" if format_ == "claude_stream" else "assistant"
        if row.get("type") != kind:
            continue
        message = row if kind == "result" else as_dict(row.get("message"))
        given = as_dict(message.get("usage"))
        counts = {
            "plain": as_count(given.get("input_tokens")),
            "cached_input_tokens": as_count(given.get("cache_read_input_tokens")),
            "cache_write_tokens": as_count(given.get("cache_creation_input_tokens")),
            "output_tokens": as_count(given.get("output_tokens")),
        }
        told = {name: count for name, count in counts.items() if count is not None}
        if told and message.get("model") != "<synthetic>":
            plain = told.pop("plain", 0)
            told["input_tokens"] = sum(told.values()) - told.get("output_tokens", 0) + plain
            yield line.number, as_text(message.get("id")) or str(line.number), told


def _codex(path: Path) -> Iterator[_Told]:
    for line in lines_of(path):
        row = line.row if isinstance(line.row, dict) else {}
        payload = as_dict(row.get("payload"))
        if payload.get("type") == "token_count":
            given = as_dict(as_dict(payload.get("info")).get("total_token_usage"))
        elif row.get("type") == "turn.completed":
            given = as_dict(row.get("usage"))
        else:
            continue
        counts = {ours: as_count(given.get(theirs)) for theirs, ours in _CODEX.items()}
        told = {name: count for name, count in counts.items() if count is not None}
        if told:
            yield line.number, "thread", told


def _differences(turns: Sequence[dict[str, Any]]) -> Iterator[Usage | None]:
    before: dict[str, int] = {}
    for turn in turns:
        total: dict[str, int] | None = turn.get("thread")
        if total is None:
            yield None
            continue
        # After a compaction, or in a thread of another process, it may begin again.
        own = {name: count - before.get(name, 0) for name, count in total.items()}
        yield _usage([total if any(count < 0 for count in own.values()) else own])
        before = total


def _usage(parts: Sequence[dict[str, int]]) -> Usage | None:
    if not parts:
        return None
    names = {name for part in parts for name in part}
    return Usage(**{name: sum(part.get(name, 0) for part in parts) for name in names})
