"""What a person sees of a run when it is over, on stderr: a table, why, and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from skillup.reports.analysis import sheets_of, trial_sheet
from skillup.reports.formats import FORMATS, HTML
from skillup.reports.terminal.layout import make_text, print_sheet
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import count, one_line, plain, seconds
from skillup.reports.view_model import (
    STYLE,
    Row,
    baseline_words,
    count_parts,
    grouped,
    stop_lines,
    view_of,
)
from skillup.schema.grade import RunResult


def print_result(result: RunResult, where: str, console: Console, *, verbose: bool = False) -> None:
    """The closing table, then one line that counts; `where`: the run's directory.

    Of cases that ran several times only the trials that did not pass have a row, unless it is
    to be `verbose`: what all of them came to stands below.
    """
    view = view_of(result)
    several = view.labels.trial and not verbose
    rows = [row for row in view.rows if not several or row.grade.status != "PASS"]
    if rows:
        print_sheet(console, trial_sheet(view, rows))
    if len(rows) < len(view.rows):
        _print(console, f"{count(len(view.rows) - len(rows), 'trial')} passed", "dim")
    # Why each did not pass; once for trials of which it is the same, as of turns they share.
    for alike in grouped(rows, lambda row: (row.grade.status, _why(row))):
        grade, why = alike[0].grade, _why(alike[0])
        if why:
            line = make_text((f"{view.names(alike)}: ", STYLE[grade.status]), why)
            console.print(line, soft_wrap=True)
    for note, style in view.notes():
        _print(console, f"note: {note}", style)
    for sheet in sheets_of(result.analysis):
        print_sheet(console, sheet)
    console.print()
    parts = count_parts(
        result.summary, not_run=len(result.not_run), not_needed=len(result.not_needed)
    )
    baseline = baseline_words(result.summary.baseline)
    counts = Text(", ").join(Text(text, style=style) for text, style in parts)
    rest = f" in {seconds(result.summary.duration_ms)}{f'; {baseline}' if baseline else ''}"
    console.print(make_text(counts, f"{rest}   {where}"), soft_wrap=True)


def print_ending(result: RunResult, go_on: str, console: Console) -> None:
    """What was not run, why, and the command `go_on` that runs it.

    Printed also where the rest of the result is not: without it an exit code means nothing.
    """
    for line in stop_lines(result, go_on):
        _print(console, line, "yellow")


def print_look(written: Sequence[Path], run: str, console: Console) -> None:
    """The reports that were `written`; to a person on a terminal, else the verbs that show `run`.

    `run` is what these verbs call it.
    """
    for path in written:
        _print(console, f"report: {shown_path(path)}", "dim")
    if console.file.isatty() and FORMATS[HTML] not in (path.name for path in written):
        _print(console, f"look: skillup show {run} · skillup view {run}", "dim")


def _print(console: Console, text: str, style: str) -> None:
    console.print(plain(text), style=style, markup=False, soft_wrap=True)


def _why(row: Row) -> str:
    """What the numbers do not say: why it did not pass, or which follow-up it took to pass."""
    if row.grade.status != "PASS":
        return one_line(row.grade.reason, 300)
    helped = [f"turn {t.turn_number} ({t.passed_on})" for t in row.grade.turns if t.passed_on]
    return f"passed on {', '.join(helped)}" if helped else ""
