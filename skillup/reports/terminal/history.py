"""Past runs as text: two beside each other with their gates; how cases fared over many."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from skillup.history.comparison import CaseChange, Change, Comparison, GateResult
from skillup.history.runs import WITH_SKILL, CaseKey, CaseTally, RunOutcomes, State
from skillup.history.series import CaseHistory, SuiteHistory
from skillup.reports.comparison import (
    LEAST_CHANGE,
    changed_cases,
    how_sure,
    in_a_sentence,
    statements,
)
from skillup.reports.terminal.layout import (
    Part,
    make_table,
    print_aligned,
    print_line,
    print_table,
)
from skillup.reports.text import count, money, one_line, p_value, seconds, shown_id
from skillup.stats import percent

_SECTIONS: tuple[tuple[Change, str, str], ...] = (
    ("newly_failing", "newly failing", "red"),
    ("newly_passing", "newly passing", "green"),
    ("unsure", "differ, perhaps by chance", "yellow"),
    ("still_failing", "still failing", "red"),
    ("not_run", "not run in one of them: no verdict to compare", "magenta"),
    ("skipped", "skipped in one of them", "yellow"),
    ("only_in_a", "only in A", "default"),
    ("only_in_b", "only in B", "default"),
)
_WHOLE = ("newly_failing", "newly_passing", "unsure")
MOST_ROWS = 40
"""Of the others: a run that was stopped would bury what changed below all that it did not run. And
of a suite's cases over runs: of more, those that passed every time are only counted."""
_WORDS = {"error": "error", "not_started": "not run", "skip": "skipped", "absent": "–"}


def print_comparison(comparison: Comparison, gates: Sequence[GateResult], console: Console) -> None:
    print_line(console, in_a_sentence(comparison), style="bold")
    edited = changed_cases([case_id for _, case_id in comparison.edited])
    if edited:
        print_line(console, edited)
    console.print()
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        suites = one_line(", ".join(sorted({trial.key.suite for trial in run.trials})), 60)
        ended = "" if run.finished else ", not finished"
        trials = count(len(run.trials), "trial")
        print_line(console, f"{name}  {run.run_id}  {_minute(run)}  {trials}{ended}  {suites}")
    for change, title, style in _SECTIONS:
        cases = comparison.of(change)
        if change == "still_failing":  # without the skill that is no news, though true each night
            cases = [case for case in cases if case in comparison.counted]
        _print_section(comparison, title, f"bold {style}", cases, console)
    moved = [
        case
        for case in (*comparison.of("still_passing"), *comparison.of("still_failing"))
        if abs((case.b.score or 0) - (case.a.score or 0)) >= LEAST_CHANGE
    ]
    _print_section(comparison, "another score, the same verdict", "bold", moved, console)
    console.print()
    for line in (*statements(comparison), *comparison.notes):
        print_line(console, line)
    if gates:
        several = len({gate.suite for gate in gates}) > 1
        console.print()
        rows: list[list[Part]] = []
        for gate in gates:
            suite = f" ({gate.suite})" if several else ""
            verdict = ("passed", "green") if gate.passed else ("FAILED", "bold red")
            rows.append(["gate", f"{gate.gate} {gate.limit:g}{suite}", verdict, gate.finding])
        print_aligned(console, rows)


def _print_section(
    comparison: Comparison, title: str, style: str, cases: Sequence[CaseChange], console: Console
) -> None:
    if not cases:
        return
    console.print()
    print_line(console, f"{title} ({len(cases)})", style=style)
    keys = [case.key for case in comparison.cases]
    most = len(cases) if cases[0].change in _WHOLE else MOST_ROWS
    rows: list[list[Part]] = []
    for case in sorted(cases, key=lambda case: not (case.a.judged or case.b.judged))[:most]:
        earlier = comparison.earlier.get(case.key)
        has_reason = case.change != "only_in_a" and case.b.state not in ("pass", "absent")
        same = case.change.startswith("still_") and case.a.score != case.b.score
        notes = [
            f"no verdict in A: compared with {earlier}" if earlier is not None else "",
            f"score {case.a.score:.2f} → {case.b.score:.2f}" if same else "",
            how_sure(case),
            one_line(case.b.reason, 120) if has_reason else "",
        ]
        suite = f"{case.key.suite} " if len({key.suite for key in keys}) > 1 else ""
        verdicts = f"{_short(case.a)} → {_short(case.b)}"
        rows.append([suite + _name(case.key, keys), verdicts, "; ".join(filter(None, notes))])
    print_aligned(console, rows)
    if len(rows) < len(cases):
        more = f"  … and {len(cases) - len(rows)} more; --json has all"
        print_line(console, more, style="dim")


def _name(key: CaseKey, among: Sequence[CaseKey]) -> str:
    engine = f" {key.engine}" if len({other.engine for other in among}) > 1 else ""
    return shown_id(key.case_id) + engine + " (without skill)" * (key.variant != WITH_SKILL)


def _short(own: CaseTally) -> str:
    """`2/3`, or why there is no verdict; errors among verdicts count, too."""
    if not own.judged:
        return _WORDS[own.state]
    return f"{own.passed}/{own.judged}" + (f" +{own.not_run} not run" if own.not_run else "")


def _minute(run: RunOutcomes) -> str:
    return run.started_at[:16].replace("T", " ")


# Many runs: a line of marks for each case.

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
        if len(cases) > MOST_ROWS and not everything:
            steady = {"pass", "absent"}
            cases = tuple(c for c in cases if not {own.state for own in c.tallies} <= steady)
        _print_cases(suite, cases, console)
        for case in cases:
            since = _since(case)
            if since:
                name = _name(case.key, [other.key for other in suite.cases])
                print_line(console, f"{name}: {since}")
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
    keys = [case.key for case in suite.cases]
    rows = [
        (_name(case.key, keys), [own.state for own in case.tallies], case.total, case.interval)
        for case in cases
    ]
    if len(suite.cases) > 1:
        rows.insert(0, ("(all)", suite.states(), suite.total, suite.interval))
    columns = ["passed", "rate", "95 %", "score", "time"]
    if any(total.not_run for _, _, total, _ in rows):
        columns.insert(3, "not run")
    if any(total.cost_usd is not None for _, _, total, _ in rows):
        columns.append("cost")
    shown: list[list[Part]] = []
    for name, states, total, interval in rows:
        marks = Text.assemble(*(_MARKS[state][:2] for state in states))
        duration = total.duration_ms
        numbers = {
            "passed": f"{total.passed}/{total.judged}" if total.judged else "–",
            "rate": "–" if total.rate is None else percent(total.rate),
            "95 %": "–" if interval is None else "–".join(map(percent, interval)),
            "not run": str(total.not_run or "–"),
            "score": "–" if total.score is None else f"{total.score:.2f}",
            "time": "–" if duration is None else seconds(round(duration)),
            "cost": money(total.cost_usd),
        }
        shown.append([name, marks, *(numbers[column] for column in columns)])
    print_table(console, make_table(["", "runs", *columns], shown, align="ll" + "r" * len(columns)))


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
    return f"{run.run_id} ({_minute(run)})"
