"""Lists: suites and cases, problems of files, sessions and the transcript of one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from skillup.engines.session_files import SessionEntry, SessionSummary
from skillup.errors import Problem
from skillup.frozen import frozen
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.reports.terminal.conversation import ConversationStream
from skillup.reports.terminal.layout import Part, make_console, print_table
from skillup.reports.text import count, one_line, plain, shown_id
from skillup.schema.suite import lead_of
from skillup.trial.history import turns_of
from skillup.trial.request import TrialEvent


def shown_path(path: Path) -> str:
    """`path` as short as it can be from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def problem_line(problem: Problem) -> str:
    """``file:line:column: field: what is wrong; what would be right``."""
    text = str(problem).removeprefix(str(problem.file))
    return plain(shown_path(problem.file) + text)


def problem_as_dict(problem: Problem) -> dict[str, Any]:
    return {**asdict(problem), "file": shown_path(problem.file)}


def print_problems(problems: Sequence[Problem], counts: Mapping[str, int]) -> None:
    """All of them to stderr, then what was checked (`counts`, by kind) and the verdict."""
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")
    errors = sum(problem.severity == "error" for problem in problems)
    counted = ", ".join(
        count(number, kind) for kind, number in counts.items() if number or kind != "profile"
    )
    found = f"{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}"
    verdict = "not valid" if errors else "ok"
    sys.stderr.write(f"{counted}: {verdict}{f' ({found})' if problems else ''}\n")


def case_as_dict(suite: LoadedSuite, loaded: LoadedCase) -> dict[str, Any]:
    case = loaded.case
    return {
        "suite": suite.name,
        "id": case.id,
        "branch_of": loaded.branch_of,
        "title": case.title,
        "tags": case.tags,
        "turns": _turn_count(loaded),
        "trials": case.trials or 1,
        "depends_on": case.depends_on,
        "file": shown_path(loaded.path),
    }


def _turn_count(loaded: LoadedCase) -> int | None:
    """How many turns the case has; None if a simulated user decides."""
    if lead_of(loaded.case) is not None:
        return None
    given = loaded.case.input
    if given.transcript is not None:
        return len(turns_of(given.transcript))
    return len(given.all_turns()) or None


def print_listing(suites: Sequence[tuple[LoadedSuite, Sequence[LoadedCase]]]) -> None:
    rows: list[list[Part]] = []
    for suite, cases in suites:
        for loaded in cases:
            title = one_line(loaded.case.title or "")
            if not title and loaded.item is not None:
                # An item of a dataset seldom has one: what it asks tells it from the others.
                title = one_line(loaded.item.removeprefix(f"{loaded.family} "), 80)
            tags = one_line(", ".join(loaded.case.tags))
            turns = str(_turn_count(loaded) or "?")
            name = (one_line(suite.name), "cyan")
            rows.append([name, shown_id(loaded.case.id), turns, (tags, "dim"), title])
    heads = ["suite", "case", "turns", "tags", "title"]
    print_table(make_console(sys.stdout), rows, heads, align="nnrll", style="bold")


@frozen
class ListedSession:
    engine: str
    session_id: str
    path: Path
    modified: float  # Seconds since 1970
    size: int
    summary: SessionSummary  # Of the file's head, if `whole` is false
    whole: bool


def session_as_dict(row: ListedSession) -> dict[str, Any]:
    """For ``--json``; `turns` are those of the head if `turns_complete` is false."""
    summary = row.summary
    of_summary = ("turns", "first_words", "title", "model", "version")
    return {
        "engine": row.engine,
        "session_id": row.session_id,
        "modified": datetime.fromtimestamp(row.modified, UTC).isoformat(timespec="seconds"),
        "project": summary.cwd,
        "turns_complete": row.whole,
        **{name: getattr(summary, name) for name in of_summary},
        "size": row.size,
        "path": str(row.path),
    }


def print_sessions(rows: Sequence[ListedSession], *, more: bool) -> None:
    """One table to stdout, and whether there may be more."""
    console = make_console(sys.stdout)
    home = str(Path.home())
    cells: list[list[Part]] = []
    for row in rows:
        summary, project = row.summary, row.summary.cwd or "–"
        if project == home or project.startswith(home + "/"):
            project = "~" + project[len(home) :]
        changed = datetime.fromtimestamp(row.modified).astimezone()
        cells.append(
            [
                (one_line(row.session_id, 40), "cyan"),
                row.engine,
                changed.strftime("%Y-%m-%d %H:%M"),
                f"{'' if row.whole else '≥'}{summary.turns}",
                one_line(project, 60),
                one_line(summary.first_words or summary.title or "", 80),
            ]
        )
    heads = ["session", "engine", "last change", "turns", "project", "first words"]
    print_table(console, cells, heads, align="nnnrll", style="bold")
    if more:
        console.print("there may be more: --limit shows them", style="dim")


def head_lines(engine: str, path: Path, summary: SessionSummary) -> Iterator[str]:
    yield one_line(f"{engine} {summary.session_id or path.stem}", 200)
    fields = {"title": summary.title, "project": summary.cwd, "started": summary.started}
    fields |= {"model": summary.model, "version": summary.version, "file": str(path)}
    for name, value in fields.items():
        if value:
            yield f"  {name:<8} {one_line(value, 300)}"


def print_entries(entries: Iterable[SessionEntry], console: Console, *, full: bool = False) -> None:
    """As conversations of a run are printed: shortened, unless `full`."""
    stream = ConversationStream(console, full=full)
    for entry in entries:
        if entry.role == "user":
            sent = TrialEvent("", "message_sent", entry.turn, text=entry.item.text or "")
            stream.add(sent, "")
        elif entry.item.text or entry.role.startswith("tool_"):
            stream.add(TrialEvent("", "item", entry.turn, item=entry.item), "")


def foot_lines(summary: SessionSummary, *, sub_agents: Iterable[Path]) -> Iterator[str]:
    """What stands below it: counts, and all that was left out or not understood."""
    yield ""
    yield count(summary.turns, "turn")
    if summary.unknown_lines:
        yield f"{count(summary.unknown_lines, 'line')} not understood"
    if summary.truncated:
        yield "the last line is cut off: the session is being written, or its writer was stopped"
    for path in sub_agents:
        yield f"a sub-agent's own session: {one_line(str(path), 500)}"


def session_json(
    engine: str, path: Path, entries: Iterable[SessionEntry], summary: SessionSummary
) -> str:
    """``{"entries": [...], "session": {...}}``; `summary` is complete when all have been read."""
    rows = [
        {
            **{name: getattr(entry, name) for name in ("line", "timestamp", "turn", "role")},
            **entry.item.model_dump(exclude_none=True, exclude={"type"}),
        }
        for entry in entries
    ]
    session = {"engine": engine, "path": str(path), **asdict(summary)}
    return json.dumps({"entries": rows, "session": session}, ensure_ascii=False, indent=1) + "\n"
