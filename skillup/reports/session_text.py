"""A session as a transcript that people can read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skillup.engines.session_entries import SessionEntry, SessionSummary
from skillup.reports.text import one_line, plain

_LINES = 6
_CHARACTERS = 600
_ARGUMENT = 120


def head_lines(engine: str, path: Path, summary: SessionSummary) -> Iterator[str]:
    """What stands above the transcript."""
    about = [engine, summary.session_id or path.stem]
    if summary.agent:
        about.append(f"sub-agent {summary.agent}")
    yield one_line(" ".join(about), 200)
    for name, value in (
        ("title", summary.title),
        ("project", summary.cwd),
        ("started", summary.started),
        ("model", summary.model),
        ("version", summary.version),
        ("file", str(path)),
    ):
        if value:
            yield f"  {name:<8} {one_line(value, 300)}"


def transcript_lines(entries: Iterable[SessionEntry], *, full: bool = False) -> Iterator[str]:
    """The transcript, entry by entry: shortened, unless `full`; fit for a terminal."""
    turn = 0
    for entry in entries:
        if entry.left and not full:
            continue
        if entry.turn != turn:
            turn = entry.turn
            yield ""
            yield f"── turn {turn} ── {one_line(entry.timestamp or '', 40)}".rstrip(" ─")
        yield from _entry_lines(entry, full)


def foot_lines(summary: SessionSummary, *, full: bool, sub_agents: Iterable[Path]) -> Iterator[str]:
    """What stands below it: counts, and all that was left out or not understood."""
    yield ""
    yield _count(summary.turns, "turn")
    if summary.left_entries and not full:
        left = _count(summary.left_entries, "entry", "entries")
        yield f"{left} on branches that were gone back from: --full shows them"
    if summary.unknown_lines:
        yield f"{_count(summary.unknown_lines, 'line')} not understood"
    if summary.truncated:
        yield "the last line is cut off: the session is being written, or its writer was stopped"
    for path in sub_agents:
        yield f"a sub-agent's own session: {one_line(str(path), 500)}"


def json_chunks(
    engine: str, path: Path, entries: Iterable[SessionEntry], summary: SessionSummary
) -> Iterator[str]:
    """``{"entries": [...], "session": {...}}`` in pieces; `summary` is read last, when complete."""
    yield '{"entries": ['
    separator = "\n"
    for entry in entries:
        yield separator + json.dumps(entry_as_dict(entry), ensure_ascii=False)
        separator = ",\n"
    session = {"engine": engine, "path": str(path), **asdict(summary)}
    yield f'\n], "session": {json.dumps(session, ensure_ascii=False)}}}\n'


def entry_as_dict(entry: SessionEntry) -> dict[str, Any]:
    """For ``--json``: what does not apply is left out."""
    data: dict[str, Any] = {
        "line": entry.line,
        "timestamp": entry.timestamp,
        "turn": entry.turn,
        "role": entry.role,
    }
    if entry.tool_call is not None:
        data["tool_call"] = entry.tool_call.model_dump()
    elif entry.tool_result is not None:
        data["tool_result"] = entry.tool_result.model_dump()
    else:
        data["text"] = entry.text
    if entry.agent is not None:
        data["agent"] = entry.agent
    if entry.left:
        data["left"] = True
    return data


def _entry_lines(entry: SessionEntry, full: bool) -> Iterator[str]:
    who = f" ({one_line(entry.agent, 40)})" if entry.agent else ""
    who += " (left)" if entry.left else ""
    if entry.tool_call is not None:
        call = entry.tool_call
        given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in call.arguments.items()}
        width = 1 << 30 if full else _ARGUMENT
        said = " ".join(f"{name}={one_line(value, width)}" for name, value in given.items())
        yield f"  →{who} {one_line(call.name)} {plain(said)}".rstrip()
    elif entry.tool_result is not None:
        status = {"success": "", "error": " error:", "unknown": ""}[entry.tool_result.status]
        yield from _block(f"  ←{who}{status} ", entry.tool_result.content, full)
    elif entry.role in ("user", "assistant"):
        # What was said is what one came for: never shortened.
        yield from _block(f"{entry.role}{who}: ", entry.text, full=True)
    elif entry.text:
        mark = "~" if entry.role == "reasoning" else "·"
        yield from _block(
            f"  {mark}{who} ", entry.text if full else one_line(entry.text, 200), full
        )


def _block(prefix: str, text: str, full: bool) -> Iterator[str]:
    """The text after the prefix, its further lines indented."""
    shown = plain(text).rstrip("\n")
    if not full and len(shown) > _CHARACTERS:
        shown = shown[:_CHARACTERS] + "…"
    lines = shown.split("\n")
    left_out = 0 if full else max(0, len(lines) - _LINES)
    kept = lines[: len(lines) - left_out]
    yield f"{prefix}{kept[0]}".rstrip()
    yield from (f"    {line}".rstrip() for line in kept[1:])
    if left_out:
        yield f"    … {_count(left_out, 'more line')} …"


def _count(number: int, word: str, words: str | None = None) -> str:
    return f"{number} {word if number == 1 else words or word + 's'}"
