"""What a person sees of a run when it is over, on stderr: a table, why, and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.reports.analysis.render import print_analysis
from skillup.reports.formats import FORMATS, HTML
from skillup.reports.terminal.layout import make_table, print_table
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.reports.view_model import (
    STYLE,
    Row,
    RunView,
    baseline_words,
    count_parts,
    grouped,
    judge_lines,
    simulator_lines,
    stop_lines,
    view_of,
)
from skillup.schema.grade import RunResult

if TYPE_CHECKING:
    from rich.console import Console


def print_result(result: RunResult, where: str, console: Console, *, verbose: bool = False) -> None:
    """The closing table, then one line that counts; `where`: the run's directory.

    Of cases that ran several times only the trials that did not pass have a row, unless it is
    to be `verbose`: what all of them came to stands below.
    """
    view = view_of(result)
    several = view.labels.trial and not verbose
    rows = [row for row in view.rows if not several or row.grade.status != "PASS"]
    if view.rows:
        console.print()
    if rows:
        _print_rows(view, rows, console)
    if len(rows) < len(view.rows):
        count = len(view.rows) - len(rows)
        _print(f"{count} trial{'s' if count != 1 else ''} passed", "dim", console)
    _print_reasons(view, rows, console)
    lines = [(line, row) for row in view.rows for line in dict.fromkeys(judge_lines(row.grade))]
    for alike in grouped(lines, lambda pair: pair[0]):
        _print(f"{view.names(row for _, row in alike)}: {alike[0][0]}", "dim", console)
    for note, style in view.notes():
        _print(f"note: {note}", style, console)
    print_analysis(result.analysis, console)
    console.print()
    _print_counts(result, where, console)


def print_ending(result: RunResult, go_on: str, console: Console) -> None:
    """What was not run, why, and the command `go_on` that runs it.

    Printed also where the rest of the result is not: without it an exit code tells nothing.
    """
    for line in stop_lines(result, go_on):
        _print(line, "yellow", console)


def print_look(written: Sequence[Path], run: str, console: Console) -> None:
    """The reports that were `written`; to a person on a terminal, else the verbs that show `run`.

    `run` is what these verbs call it.
    """
    for path in written:
        _print(f"report: {shown_path(path)}", "dim", console)
    if console.file.isatty() and FORMATS[HTML][0] not in (path.name for path in written):
        _print(f"look: skillup show {run} · skillup view {run}", "dim", console)


def _print(text: str, style: str, console: Console) -> None:
    console.print(plain(text), style=style, markup=False, soft_wrap=True)


def _print_rows(view: RunView, rows: Sequence[Row], console: Console) -> None:
    from rich.text import Text

    with_cost = any(row.grade.cost_usd is not None for row in rows)
    heads = ["", "case", "turns", "checks", "score", "time", "tokens"]
    table = make_table(*heads, *(["cost"] if with_cost else []))
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for row in rows:
        grade = row.grade
        cells: list[Text | str] = [
            Text(grade.status, style=STYLE[grade.status]),
            Text("  ".join(filter(None, (view.labels.of_row(row), row.attempt)))),
            f"{row.turns_done}/{len(grade.turns)}",
            f"{row.passed_checks}/{len(row.checks)}",
            "–" if row.score is None else f"{row.score:.2f}",
            seconds(grade.duration_ms),
            tokens(row.tokens),
        ]
        table.add_row(*cells, *([money(grade.cost_usd)] if with_cost else []))
    print_table(console, table)


def _print_reasons(view: RunView, rows: Sequence[Row], console: Console) -> None:
    """Why each did not pass; once for trials of which it is the same, as of turns they share."""
    from rich.text import Text

    for alike in grouped(
        rows, lambda row: (row.grade.status, _why(row), *simulator_lines(row.grade))
    ):
        grade, names = alike[0].grade, view.names(alike)
        why = _why(alike[0])
        if why:
            line = Text(f"{names}: ", style=STYLE[grade.status]).append(why, style="default")
            console.print(line, soft_wrap=True)
        for line_of_user in simulator_lines(grade):
            _print(f"{'  ' if why else f'{names}: '}{line_of_user}", "dim", console)


def _why(row: Row) -> str:
    """What the numbers do not say: why it did not pass, or which follow-up it took to pass."""
    if row.grade.status != "PASS":
        return one_line(row.grade.reason, 300)
    helped = [f"turn {t.turn_number} ({t.passed_on})" for t in row.grade.turns if t.passed_on]
    return f"passed on {', '.join(helped)}" if helped else ""


def _print_counts(result: RunResult, where: str, console: Console) -> None:
    from rich.text import Text

    parts = count_parts(
        result.summary, not_run=len(result.not_run), not_needed=len(result.not_needed)
    )
    line = Text(", ").join(Text(text, style=style) for text, style in parts)
    line.append(f" in {seconds(result.summary.duration_ms)}")
    baseline = baseline_words(result.summary.baseline)
    line.append(f"; {baseline}" if baseline is not None else "")
    console.print(line.append(f"   {plain(where)}"), soft_wrap=True)
