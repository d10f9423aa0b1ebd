"""`skillup list`: suites and cases at a glance."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillup.engines.session_entries import SessionEntry, SessionSummary
from skillup.errors import Problem
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.reports.terminal.layout import make_console, print_table
from skillup.reports.text import count, one_line, plain, shown_id
from skillup.schema.suite import lead_of
from skillup.trial.transcript import turns_of

# `skillup session list`: sessions at a glance.


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A row of the list."""

    engine: str
    session_id: str
    path: Path
    modified: float
    """Seconds since 1970."""
    size: int
    summary: SessionSummary
    """Of the file's head, if `whole` is false."""
    whole: bool


_OF_SUMMARY = ("turns", "first_words", "title", "model", "version")


def session_as_dict(row: ListedSession) -> dict[str, Any]:
    """For ``--json``; `turns` are those of the head if `turns_complete` is false."""
    summary = row.summary
    return {
        "engine": row.engine,
        "session_id": row.session_id,
        "modified": datetime.fromtimestamp(row.modified, UTC).isoformat(timespec="seconds"),
        "project": summary.cwd,
        "turns_complete": row.whole,
        **{name: getattr(summary, name) for name in _OF_SUMMARY},
        "size": row.size,
        "path": str(row.path),
    }


def print_sessions(rows: Sequence[ListedSession], *, more: int, at_most: bool = False) -> None:
    """One table to stdout, and how many are not in it: `more`, or no more than that."""
    from rich.table import Table
    from rich.text import Text

    console = make_console(sys.stdout)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("session", style="cyan", no_wrap=True)
    table.add_column("engine", no_wrap=True)
    table.add_column("last change", no_wrap=True)
    table.add_column("turns", justify="right", no_wrap=True)
    table.add_column("project", overflow="fold")
    table.add_column("first words", overflow="fold", ratio=1)
    for row in rows:
        turns = str(row.summary.turns) if row.whole else f"≥{row.summary.turns}"
        words = row.summary.first_words or row.summary.title or ""
        table.add_row(
            Text(one_line(row.session_id, 40)),
            row.engine,
            datetime.fromtimestamp(row.modified).astimezone().strftime("%Y-%m-%d %H:%M"),
            turns,
            Text(_short(row.summary.cwd or "–")),
            Text(one_line(words, 80)),
        )
    console.print(table)
    if more:
        count = f"up to {more}" if at_most else str(more)
        console.print(f"and {count} more: --limit shows them", style="dim")


def _short(directory: str) -> str:
    home = str(Path.home())
    inside = directory == home or directory.startswith(home + "/")
    return one_line("~" + directory[len(home) :] if inside else directory, 60)


# A session as a transcript that people can read, and as JSON.

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
    yield count(summary.turns, "turn")
    if summary.left_entries and not full:
        left = f"{summary.left_entries} entr{'y' if summary.left_entries == 1 else 'ies'}"
        yield f"{left} on branches that were gone back from: --full shows them"
    if summary.unknown_lines:
        yield f"{count(summary.unknown_lines, 'line')} not understood"
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
    fields = ("line", "timestamp", "turn", "role")
    data: dict[str, Any] = {name: getattr(entry, name) for name in fields}
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
        yield f"    … {count(left_out, 'more line')} …"


# Validation problems, for people and for programs.


def shown_path(path: Path) -> str:
    """`path` as short as it can be said from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def problem_line(problem: Problem) -> str:
    """``file:line:column: field: what is wrong; what would be right``."""
    text = str(problem).removeprefix(str(problem.file))
    return plain(shown_path(problem.file) + text)


def problem_as_dict(problem: Problem) -> dict[str, Any]:
    """For ``--json``."""
    fields = ("line", "column", "field", "message", "fix", "severity")
    return {
        "file": shown_path(problem.file),
        **{name: getattr(problem, name) for name in fields},
    }


def print_problems(problems: Sequence[Problem], counts: Mapping[str, int]) -> None:
    """All of them to stderr, then what was looked at (`counts`, by kind) and the verdict."""
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    counted = ", ".join(
        count(number, kind) for kind, number in counts.items() if number or kind != "profile"
    )
    found = f"{count(errors, 'error')}, {count(warnings, 'warning')}"
    verdict = "ok" if not errors else "not valid"
    sys.stderr.write(f"{counted}: {verdict} ({found})\n" if problems else f"{counted}: ok\n")


_MESSAGE = 80
"""Characters of an item's message."""


def case_as_dict(suite: LoadedSuite, loaded: LoadedCase) -> dict[str, Any]:
    """For ``--json``."""
    case = loaded.case
    return {
        "suite": suite.name,
        "id": case.id,
        "branch_of": loaded.branch_of,
        "title": case.title,
        "tags": case.tags,
        "turns": turncount(loaded),
        "trials": case.trials or 1,
        "depends_on": case.depends_on,
        "file": shown_path(loaded.path),
    }


def turncount(loaded: LoadedCase) -> int | None:
    """How many turns the case has; None if a simulated user decides."""
    if lead_of(loaded.case) is not None:
        return None
    given = loaded.case.input
    if given.transcript is not None:
        return len(turns_of(given.transcript))
    return len(given.all_turns()) or None


def print_listing(suites: Sequence[tuple[LoadedSuite, Sequence[LoadedCase]]]) -> None:
    """One table for all suites, to stdout."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("suite", style="cyan", no_wrap=True)
    table.add_column("case", no_wrap=True)
    table.add_column("turns", justify="right")
    table.add_column("tags", style="dim")
    table.add_column("title")
    for suite, cases in suites:
        for loaded in cases:
            turns = turncount(loaded)
            table.add_row(
                Text(one_line(suite.name)),
                Text(shown_id(loaded.case.id)),
                str(turns) if turns else "?",
                Text(one_line(", ".join(loaded.case.tags))),
                Text(_title(loaded)),
            )
    print_table(make_console(sys.stdout), table)


def _title(loaded: LoadedCase) -> str:
    """An item of a dataset seldom has one: what it asks tells it from the others."""
    if loaded.case.title or loaded.item is None:
        return one_line(loaded.case.title or "")
    return one_line(loaded.item.removeprefix(f"{loaded.family} "), _MESSAGE)
