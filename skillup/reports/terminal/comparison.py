"""Two runs beside each other, as text: what changed, the numbers, and the gates."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from skillup.history.comparison import CaseChange, Change, Comparison
from skillup.history.gates import GateResult
from skillup.history.runs import WITH_SKILL, CaseTally, by_case
from skillup.reports.comparison import (
    LEAST_CHANGE,
    changed_cases,
    how_sure,
    in_a_sentence,
    statements,
    totals,
)
from skillup.reports.terminal.layout import (
    Part,
    make_table,
    print_aligned,
    print_line,
    print_table,
)
from skillup.reports.text import count, one_line, shown_id

_SECTIONS: tuple[tuple[Change, str, str], ...] = (
    ("newly_failing", "newly failing", "red"),
    ("newly_passing", "newly passing", "green"),
    ("unsure", "differ, cannot tell", "yellow"),
    ("still_failing", "still failing", "red"),
    ("not_run", "not run in one of them: no verdict to compare", "magenta"),
    ("skipped", "skipped in one of them", "yellow"),
    ("only_in_a", "only in A", "default"),
    ("only_in_b", "only in B", "default"),
)
_SHORTENED: tuple[Change, ...] = ("still_failing", "not_run", "skipped", "only_in_a", "only_in_b")
_MAX_ROWS = 40
"""Of those: a run that was stopped would bury what changed below all that it did not run."""
_WORDS = {"error": "error", "not_held": "not run", "skip": "skipped", "absent": "–"}


def print_comparison(comparison: Comparison, gates: Sequence[GateResult], console: Console) -> None:
    print_line(console, in_a_sentence(comparison), style="bold")
    edited = changed_cases([case_id for _, case_id in comparison.edited])
    if edited:
        print_line(console, edited)
    console.print()
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        suites = one_line(", ".join(sorted({trial.key.suite for trial in run.trials})), 60)
        ended = "" if run.finished else ", not finished"
        started = run.started_at[:16].replace("T", " ")
        trials = count(len(run.trials), "trial")
        print_line(console, f"{name}  {run.run_id}  {started}  {trials}{ended}  {suites}")
    # Cases without the skill that fail as often as ever: no news, though true each night.
    counted = {case.key for case in comparison.counted}
    as_before = {c.key for c in comparison.of("still_failing") if c.key not in counted}
    for change, title, style in _SECTIONS:
        cases = [case for case in comparison.of(change) if case.key not in as_before]
        shown = cases
        if change in _SHORTENED:
            shown = sorted(cases, key=lambda case: not (case.a.judged or case.b.judged))[:_MAX_ROWS]
        if cases:
            _print_section(comparison, f"{title} ({len(cases)})", f"bold {style}", shown, console)
        if len(shown) < len(cases):
            more = f"  … and {len(cases) - len(shown)} more; --json has all"
            print_line(console, more, style="dim")
    moved = [
        case
        for case in (*comparison.of("still_passing"), *comparison.of("still_failing"))
        if abs((case.b.score or 0) - (case.a.score or 0)) >= LEAST_CHANGE
    ]
    if moved:
        title = f"another score, the same verdict ({len(moved)})"
        _print_section(comparison, title, "bold", moved, console, with_score=True)
    console.print()
    print_table(console, make_table([" ", "A", "B", "difference"], totals(comparison)), indent=2)
    console.print()
    if as_before:
        cases_before = count(len(as_before), "case")
        print_line(
            console, f"without the skill, {cases_before} passed as often as before, and not always"
        )
    for line in (*statements(comparison), *comparison.notes):
        print_line(console, line)
    if gates:
        several = len({gate.suite for gate in gates}) > 1
        console.print()
        rows: list[list[Part]] = []
        for gate in gates:
            suite = f" ({gate.suite})" if several else ""
            verdict = ("passed", "green") if gate.met else ("FAILED", "bold red")
            rows.append(["gate", f"{gate.gate} {gate.limit:g}{suite}", verdict, gate.said])
        print_aligned(console, rows)


def _print_section(
    comparison: Comparison,
    title: str,
    style: str,
    cases: Sequence[CaseChange],
    console: Console,
    *,
    with_score: bool = False,
) -> None:
    keys = [case.key for case in comparison.cases]
    skipped = {k for k, own in by_case(comparison.a.trials).items() if own.state == "skip"}
    several_suites = len({key.suite for key in keys}) > 1
    several_engines = len({key.engine for key in keys}) > 1
    rows: list[list[Part]] = []
    for case in cases:
        key, earlier = case.key, comparison.earlier.get(case.key)
        name = [key.suite] * several_suites + [shown_id(key.case_id)]
        name += [key.engine] * several_engines
        name += ["(without skill)"] * (key.variant != WITH_SKILL)
        what = "skipped" if key in skipped else "not run"
        has_reason = case.change != "only_in_a" and case.b.state not in ("pass", "absent")
        notes = [
            f"{what} in A: compared with {earlier}" if earlier is not None else "",
            f"score {case.a.score:.2f} → {case.b.score:.2f}" if with_score else "",
            how_sure(comparison, case),
            one_line(case.b.reason, 120) if has_reason else "",
        ]
        verdicts = f"{_short(case.a)} → {_short(case.b)}"
        rows.append([" ".join(name), verdicts, "; ".join(filter(None, notes))])
    console.print()
    print_line(console, title, style=style)
    print_aligned(console, rows)


def _short(own: CaseTally) -> str:
    """`2/3`, or why there is no verdict; errors among verdicts count, too."""
    if not own.judged:
        return _WORDS[own.state]
    return f"{own.passed}/{own.judged}" + (f" +{own.not_run} not run" if own.not_run else "")
