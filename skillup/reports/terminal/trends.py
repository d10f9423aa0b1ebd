"""How cases fared over runs, as text: a line of marks for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillup.history.index import RunHead
from skillup.history.runs import WITH_SKILL, CaseTally
from skillup.history.series import (
    CaseHistory,
    ChangePoint,
    FailingSince,
    SuiteHistory,
    SuiteState,
    most_telling,
)
from skillup.reports.terminal.comparison import p_value
from skillup.reports.terminal.layout import MarkedRow, print_at_words, print_marked
from skillup.reports.text import money, plain, seconds, shown_id
from skillup.stats.change_point import Passes
from skillup.stats.proportions import Interval, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_MARKS: dict[SuiteState, tuple[str, str, str, str]] = {
    "pass": ("✓", "+", "green", "passed"),
    "pass_of_some": ("◐", "o", "green", "passed, but not all cases were in it"),
    "mixed": ("~", "~", "yellow", "passed in part"),
    "fail": ("✗", "x", "red", "failed"),
    "fail_and_not_run": ("!", "!", "red", "failed, and not all was run"),
    "error": ("E", "E", "magenta", "error: not run"),
    "not_held": ("?", "?", "magenta", "not held"),
    "skip": ("-", "-", "dim", "skipped"),
    "absent": ("·", ".", "dim", "not in that run"),
}
"""The mark, the same for terminals without it, its style, and what it means."""
MOST_CASES = 40
"""Of a suite; what is worth a look would be lost among hundreds that pass every night."""


def print_trends(
    suites: Sequence[SuiteHistory], console: Console, most: int | None = MOST_CASES
) -> None:
    """Every suite with its cases, `most` of each (None: all); the newest run is the rightmost mark.

    The line of all cases is over those that are not shown, too.
    """
    from rich.text import Text

    fancy = _can_show(console)
    seen: set[SuiteState] = set()
    for suite in suites:
        first, last = suite.runs[0], suite.runs[-1]
        count = f"{len(suite.runs)} run{'s' if len(suite.runs) != 1 else ''}"
        head = Text.assemble(
            (plain(suite.suite), "bold cyan"),
            f"  {count}, {_day(first)} to {_day(last)}  newest: {plain(last.run_id)}",
        )
        print_at_words(console, head)
        cases = most_telling(suite.cases, len(suite.cases) if most is None else most)
        print_marked(console, *_table(suite, cases, fancy))
        for case in cases:
            said = _since(case.failing) if case.failing else _fell(case.fell) if case.fell else ""
            if said:
                print_at_words(console, Text(f"{_name(suite, case)}: {said}"))
        rest = len(suite.cases) - len(cases)
        if rest:
            more = f"… and {rest} more, none of them worse; --all shows them, -k GLOB some"
            print_at_words(console, Text(more, style="dim"))
        console.print()
        seen.update(state for case in cases for state in _states(case))
        seen.update(suite.states() if len(suite.cases) > 1 else ())
    legend = [
        f"{mark if fancy else plain_mark} {meaning}"
        for state, (mark, plain_mark, _, meaning) in _MARKS.items()
        if state in seen
    ]
    print_at_words(console, Text("   ".join(legend), style="dim"))


def _can_show(console: Console) -> bool:
    try:
        "✓✗·◐".encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True


def _states(case: CaseHistory) -> list[SuiteState]:
    return [tally.state for tally in case.tallies]


def _table(
    suite: SuiteHistory, cases: Sequence[CaseHistory], fancy: bool
) -> tuple[list[str], list[MarkedRow]]:
    """The numbers' headers, and the rows: all cases together, then `cases`."""
    from rich.text import Text

    totals = [case.total for case in cases]
    if len(suite.cases) > 1:
        totals.append(suite.total)
    columns = ["passed", "rate", "95 %", "score", "time"]
    if any(total.not_run for total in totals):
        columns.insert(3, "not run")
    if any(total.cost_usd is not None for total in totals):
        columns.append("cost")
    rows = []
    if len(suite.cases) > 1:
        numbers = _numbers(suite.total, suite.interval, columns)
        rows.append(MarkedRow(Text("(all)", style="dim"), _line(suite.states(), fancy), numbers))
    for case, total in zip(cases, totals, strict=False):
        numbers = _numbers(total, case.interval, columns)
        rows.append(MarkedRow(Text(_name(suite, case)), _line(_states(case), fancy), numbers))
    return columns, rows


def _numbers(total: CaseTally, interval: Interval | None, columns: Sequence[str]) -> list[str]:
    """What is in each of the columns; a dash where there is nothing to tell."""
    rate, score, duration = total.rate, total.score, total.duration_ms
    cells = {
        "passed": "–" if rate is None else f"{total.passed}/{total.judged}",
        "rate": "–" if rate is None else percent(rate),
        "95 %": "–" if interval is None else f"{percent(interval.low)}–{percent(interval.high)}",
        "not run": str(total.not_run or "–"),
        "score": "–" if score is None else f"{score:.2f}",
        "time": "–" if duration is None else seconds(round(duration)),
        "cost": money(total.cost_usd),
    }
    return [cells[column] for column in columns]


def _name(suite: SuiteHistory, case: CaseHistory) -> str:
    """The case, with what tells it from the others of the suite."""
    parts = [shown_id(case.key.case_id)]
    if len({other.key.engine for other in suite.cases}) > 1:
        parts.append(case.key.engine)
    if case.key.variant != WITH_SKILL:
        parts.append("(without skill)")
    return plain(" ".join(parts))


def _line(states: Sequence[SuiteState], fancy: bool) -> Text:
    from rich.text import Text

    line = Text()
    for state in states:
        mark, plain_mark, style, _ = _MARKS[state]
        line.append(mark if fancy else plain_mark, style=style)
    return line


def _day(run: RunHead) -> str:
    return plain(run.started_at[:10])


def _since(failing: FailingSince) -> str:
    """`failing since RUN (time); last passed in RUN (time)`."""
    first, passed = failing.first, failing.last_pass
    runs = f", {failing.runs} runs" if failing.runs > 1 else ""
    said = f"failing since {_run(first)}{runs}; "
    said += f"last passed in {_run(passed)}" if passed else "never passed before"
    if failing.unknown:
        runs = "a run" if failing.unknown == 1 else f"{failing.unknown} runs"
        said += f"; {runs} between them gave no verdict"
    return plain(said)


def _fell(fall: ChangePoint) -> str:
    """`fell at RUN (time): 18/20 before, 3/50 since`, and if the newest run shows nothing of it."""
    said = f"fell at {_run(fall.first)}: {_passes(fall.before)} before, {_passes(fall.since)} since"
    said += f" (p {p_value(fall.p)})"
    if fall.newest.passed == fall.newest.judged:
        said += f"; the newest run passed {_passes(fall.newest)}"
    return plain(said)


def _passes(counts: Passes) -> str:
    return f"{counts.passed}/{counts.judged}"


def _run(run: RunHead) -> str:
    return f"{run.run_id} ({run.started_at[:16].replace('T', ' ')})"
