"""How cases fared over runs, as text: a line of marks for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillup.history.index import RunHead
from skillup.history.runs import WITH_SKILL, CaseTally
from skillup.history.series import CaseHistory, SuiteHistory, SuiteState, most_telling
from skillup.reports.terminal.layout import make_table, print_sentence, print_table
from skillup.reports.text import money, p_value, plain, seconds, shown_id
from skillup.stats.change_point import Passes
from skillup.stats.proportions import Interval, percent

if TYPE_CHECKING:
    from rich.console import Console

_MARKS: dict[SuiteState, tuple[str, str, str, str]] = {
    "pass": ("✓", "+", "green", "passed"),
    "pass_of_some": ("◐", "o", "green", "passed, but not all cases were in it"),
    "mixed": ("~", "~", "yellow", "passed in part"),
    "fail": ("✗", "x", "red", "failed"),
    "fail_and_not_run": ("!", "!", "red", "failed, and not all was run"),
    "error": ("E", "E", "magenta", "error: not run"),
    "not_held": ("?", "?", "magenta", "not run"),
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

    try:
        "✓✗·◐".encode(console.encoding)
        fancy = True
    except UnicodeEncodeError:
        fancy = False
    seen: set[SuiteState] = set()
    for suite in suites:
        first, last = suite.runs[0], suite.runs[-1]
        count = f"{len(suite.runs)} run{'s' if len(suite.runs) != 1 else ''}"
        days = plain(f"{first.started_at[:10]} to {last.started_at[:10]}")
        about = f"  {count}, {days}  newest: {plain(last.run_id)}"
        print_sentence(console, Text.assemble((plain(suite.suite), "bold cyan"), about))
        cases = most_telling(suite.cases, len(suite.cases) if most is None else most)
        _print_cases(suite, cases, console, fancy)
        for case in cases:
            since = _since(case)
            if since:
                print_sentence(console, Text(plain(f"{_name(suite, case)}: {since}")))
        rest = len(suite.cases) - len(cases)
        if rest:
            more = f"… and {rest} more, none of them worse; --all shows them, -k GLOB some"
            print_sentence(console, Text(more, style="dim"))
        console.print()
        seen.update(tally.state for case in cases for tally in case.tallies)
        seen.update(suite.states() if len(suite.cases) > 1 else ())
    legend = [
        f"{mark if fancy else simple} {meaning}"
        for state, (mark, simple, _, meaning) in _MARKS.items()
        if state in seen
    ]
    print_sentence(console, Text("   ".join(legend), style="dim"))


def _print_cases(
    suite: SuiteHistory, cases: Sequence[CaseHistory], console: Console, fancy: bool
) -> None:
    """All cases together, then `cases`; columns that say something of any of them."""
    from rich.text import Text

    rows: list[tuple[Text, Sequence[SuiteState], CaseTally, Interval | None]] = [
        (Text(_name(suite, case)), [own.state for own in case.tallies], case.total, case.interval)
        for case in cases
    ]
    if len(suite.cases) > 1:
        rows.insert(0, (Text("(all)", style="dim"), suite.states(), suite.total, suite.interval))
    columns = ["passed", "rate", "95 %", "score", "time"]
    if any(total.not_run for _, _, total, _ in rows):
        columns.insert(3, "not run")
    if any(total.cost_usd is not None for _, _, total, _ in rows):
        columns.append("cost")
    table = make_table("", "runs", *columns)
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for name, states, total, interval in rows:
        line = Text()
        for mark, simple, style, _ in (_MARKS[state] for state in states):
            line.append(mark if fancy else simple, style=style)
        numbers = _numbers(total, interval)
        table.add_row(name, line, *(numbers[column] for column in columns))
    print_table(console, table)


def _numbers(total: CaseTally, interval: Interval | None) -> dict[str, str]:
    """A dash where nothing is known."""
    rate, score, duration = total.rate, total.score, total.duration_ms
    return {
        "passed": "–" if rate is None else f"{total.passed}/{total.judged}",
        "rate": "–" if rate is None else percent(rate),
        "95 %": "–" if interval is None else f"{percent(interval.low)}–{percent(interval.high)}",
        "not run": str(total.not_run or "–"),
        "score": "–" if score is None else f"{score:.2f}",
        "time": "–" if duration is None else seconds(round(duration)),
        "cost": money(total.cost_usd),
    }


def _name(suite: SuiteHistory, case: CaseHistory) -> str:
    """The case, with what tells it from the others of the suite."""
    parts = [shown_id(case.key.case_id)]
    if len({other.key.engine for other in suite.cases}) > 1:
        parts.append(case.key.engine)
    if case.key.variant != WITH_SKILL:
        parts.append("(without skill)")
    return plain(" ".join(parts))


def _since(case: CaseHistory) -> str:
    """``failing since RUN (time); last passed in RUN (time)``, or where the pass rate fell."""
    failing, fall = case.failing, case.fell
    if failing is not None:
        runs = f", {failing.runs} runs" if failing.runs > 1 else ""
        passed = failing.last_pass
        before = f"last passed in {_run(passed)}" if passed else "never passed before"
        text = f"failing since {_run(failing.first)}{runs}; {before}"
        if failing.unknown:
            runs = "a run" if failing.unknown == 1 else f"{failing.unknown} runs"
            text += f"; {runs} between them gave no verdict"
        return text
    if fall is None:
        return ""
    text = f"fell at {_run(fall.first)}: {_passes(fall.before)} before, {_passes(fall.since)} since"
    text += f" (p {p_value(fall.p)})"
    if fall.newest.passed == fall.newest.judged:
        text += f"; the newest run passed {_passes(fall.newest)}"
    return text


def _passes(counts: Passes) -> str:
    return f"{counts.passed}/{counts.judged}"


def _run(run: RunHead) -> str:
    return f"{run.run_id} ({run.started_at[:16].replace('T', ' ')})"
