"""A run when it is over: the tables, what did not pass and why, and a line that counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skillup.reports.result import STYLE, Row, RunView, baseline_words, count_parts, is_bad
from skillup.reports.text import count, one_line, seconds
from skillup.schema.grade import RunResult
from skillup.schema.line import grouped

if TYPE_CHECKING:
    from rich.console import Console

_ALL_ROWS = 50  # Of more trials, only those that did not pass are listed


def print_result(
    result: RunResult,
    where: str,
    make_console: Callable[[], Console],
    say: Callable[..., None],
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """The tables, what did not pass and why, then one line that counts; `where`: the run's
    directory. Of many trials, and of cases that ran several times, only those that did not pass,
    unless `verbose`. If `quiet`, no tables. `say` prints a line of its arguments, each a text or a
    text and its style.
    """
    view = RunView(result)
    lines = view.lines
    many = quiet or len(lines) > _ALL_ROWS or any(line.trial > 1 for line in lines)
    rows = list(view.rows(lambda line: verbose or not many or line.status != "PASS"))
    if not quiet:
        from skillup.reports.tables import sheets_of, trial_sheet
        from skillup.reports.terminal.layout import print_sheets

        console, listed = make_console(), verbose or not view.side_by_side
        if rows and listed:
            print_sheets(console, [trial_sheet(view, rows)])
        if listed and (passed := len(lines) - len(rows)):
            say((f"{count(passed, 'trial')} passed", "dim"))
        print_sheets(console, sheets_of(result.analysis, lines))
        console.print()
    for note, style in view.notes():
        if not quiet or style != "dim":
            say((f"note: {note}", style))
    # Why each did not pass; once for trials of which it is the same, as of turns they share.
    for (status, why), alike in grouped(rows, lambda row: (row.grade.status, _why(row))).items():
        if why and not (quiet and status == "FAIL" and not is_bad(alike[0].grade)):
            say((f"{view.names(alike)}: ", STYLE[status]), why)
    counts = count_parts(
        result.summary, not_run=len(result.not_run), not_needed=len(result.not_needed)
    )
    baseline = baseline_words(result.summary.baseline)
    rest = f" in {seconds(result.summary.duration_ms)}{f'; {baseline}' if baseline else ''}"
    say(*[part for one in counts for part in (", ", one)][1:], f"{rest}   {where}")


def _why(row: Row) -> str:
    """What the numbers do not say: why it did not pass, or which follow-up it took to pass."""
    if row.grade.status != "PASS":
        return one_line(row.grade.reason, 300)
    helped = [f"turn {t.turn_number} ({t.passed_on})" for t in row.grade.turns if t.passed_on]
    return f"passed on {', '.join(helped)}" if helped else ""
