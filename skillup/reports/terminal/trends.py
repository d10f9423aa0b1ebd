"""How cases fared over runs, as text: a line of marks for each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from skillup.history.runs import WITH_SKILL, CaseTally, RunOutcomes, State
from skillup.history.series import CaseHistory, SuiteHistory
from skillup.reports.sheet import interval as shown_interval
from skillup.reports.sheet import percent
from skillup.reports.terminal.layout import Part, make_table, print_line, print_table
from skillup.reports.text import count, money, p_value, seconds, shown_id
from skillup.stats.intervals import Interval

_MARKS: dict[State, tuple[str, str, str]] = {
    "pass": ("✓", "green", "passed"),
    "mixed": ("~", "yellow", "passed in part"),
    "fail": ("✗", "red", "failed"),
    "error": ("E", "magenta", "error: not run"),
    "not_started": ("?", "magenta", "not run"),
    "skip": ("-", "dim", "skipped"),
    "absent": ("·", "dim", "not in that run"),
}
"""The mark, its style, and what it means."""
MOST_CASES = 40
"""Of a suite; of more, those that passed every time are only counted."""


def print_trends(
    suites: Sequence[SuiteHistory], console: Console, *, everything: bool = False
) -> None:
    """Every suite with its cases; the newest run is the rightmost mark.

    The line of all cases is over those that are not shown, too.
    """
    seen: set[State] = set()
    for suite in suites:
        first, last = suite.runs[0], suite.runs[-1]
        days = f"{first.started_at[:10]} to {last.started_at[:10]}"
        about = f"  {count(len(suite.runs), 'run')}, {days}  newest: {last.run_id}"
        print_line(console, (suite.suite, "bold cyan"), about)
        cases = suite.cases
        if len(cases) > MOST_CASES and not everything:
            steady = {"pass", "absent"}
            cases = tuple(c for c in cases if not {own.state for own in c.tallies} <= steady)
        _print_cases(suite, cases, console)
        for case in cases:
            since = _since(case)
            if since:
                print_line(console, f"{_name(suite, case)}: {since}")
        rest = len(suite.cases) - len(cases)
        if rest:
            more = f"… and {rest} more that always passed; --all shows them"
            print_line(console, more, style="dim")
        console.print()
        seen.update(tally.state for case in cases for tally in case.tallies)
        seen.update(suite.states() if len(suite.cases) > 1 else ())
    legend = [f"{mark} {text}" for state, (mark, _, text) in _MARKS.items() if state in seen]
    print_line(console, "   ".join(legend), style="dim")


def _print_cases(suite: SuiteHistory, cases: Sequence[CaseHistory], console: Console) -> None:
    """All cases together, then `cases`; columns that say something of any of them."""
    rows: list[tuple[Part, Sequence[State], CaseTally, Interval | None]] = [
        (_name(suite, case), [own.state for own in case.tallies], case.total, case.interval)
        for case in cases
    ]
    if len(suite.cases) > 1:
        rows.insert(0, (("(all)", "dim"), suite.states(), suite.total, suite.interval))
    columns = ["passed", "rate", "95 %", "score", "time"]
    if any(total.not_run for _, _, total, _ in rows):
        columns.insert(3, "not run")
    if any(total.cost_usd is not None for _, _, total, _ in rows):
        columns.append("cost")
    shown: list[list[Part]] = []
    for name, states, total, interval in rows:
        line = Text()
        for mark, style, _ in (_MARKS[state] for state in states):
            line.append(mark, style=style)
        low, high = interval or (None, None)
        duration = total.duration_ms
        numbers = {
            "passed": f"{total.passed}/{total.judged}" if total.judged else "–",
            "rate": percent(total.rate).text,
            "95 %": shown_interval(low, high).text,
            "not run": str(total.not_run or "–"),
            "score": "–" if total.score is None else f"{total.score:.2f}",
            "time": "–" if duration is None else seconds(round(duration)),
            "cost": money(total.cost_usd),
        }
        shown.append([name, line, *(numbers[column] for column in columns)])
    print_table(console, make_table(["", "runs", *columns], shown, align="ll" + "r" * len(columns)))


def _name(suite: SuiteHistory, case: CaseHistory) -> str:
    several = len({other.key.engine for other in suite.cases}) > 1
    name = shown_id(case.key.case_id) + (f" {case.key.engine}" if several else "")
    return name + ("" if case.key.variant == WITH_SKILL else " (without skill)")


def _since(case: CaseHistory) -> str:
    """``failing since RUN (time); last passed in RUN (time)``, or where the pass rate fell."""
    failing = case.failing
    if case.fell is not None:
        fall = case.fell.fall
        before, since = (f"{one.passed}/{one.judged}" for one in (fall.before, fall.since))
        where = f"fell at {_run(case.fell.first)}"
        return f"{where}: {before} before, {since} since (p {p_value(fall.p)})"
    if failing is None:
        return ""
    runs = f", {failing.runs} runs" if failing.runs > 1 else ""
    passed = failing.last_pass
    last = f"last passed in {_run(passed)}" if passed else "never passed before"
    return f"{failing.word} since {_run(failing.first)}{runs}; {last}"


def _run(run: RunOutcomes) -> str:
    return f"{run.run_id} ({run.started_at[:16].replace('T', ' ')})"
