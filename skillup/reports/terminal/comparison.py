"""Two runs beside each other, as text: what changed, the numbers, and the gates."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from skillup.history.comparison import CaseChange, Change, Comparison
from skillup.history.gates import GateResult
from skillup.history.runs import WITH_SKILL, CaseTally
from skillup.reports.comparison import (
    LEAST_CHANGE,
    changed_cases,
    how_sure,
    in_a_sentence,
    statements,
)
from skillup.reports.terminal.layout import Part, print_aligned, print_line
from skillup.reports.text import count, one_line, shown_id

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
_MAX_ROWS = 40
"""Of the others: a run that was stopped would bury what changed below all that it did not run."""
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
        started = run.started_at[:16].replace("T", " ")
        trials = count(len(run.trials), "trial")
        print_line(console, f"{name}  {run.run_id}  {started}  {trials}{ended}  {suites}")
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
    several_suites = len({key.suite for key in keys}) > 1
    several_engines = len({key.engine for key in keys}) > 1
    most = len(cases) if cases[0].change in _WHOLE else _MAX_ROWS
    rows: list[list[Part]] = []
    for case in sorted(cases, key=lambda case: not (case.a.judged or case.b.judged))[:most]:
        key, earlier = case.key, comparison.earlier.get(case.key)
        name = [key.suite] * several_suites + [shown_id(key.case_id)]
        name += [key.engine] * several_engines
        name += ["(without skill)"] * (key.variant != WITH_SKILL)
        has_reason = case.change != "only_in_a" and case.b.state not in ("pass", "absent")
        same = case.change.startswith("still_") and case.a.score != case.b.score
        notes = [
            f"no verdict in A: compared with {earlier}" if earlier is not None else "",
            f"score {case.a.score:.2f} → {case.b.score:.2f}" if same else "",
            how_sure(case),
            one_line(case.b.reason, 120) if has_reason else "",
        ]
        verdicts = f"{_short(case.a)} → {_short(case.b)}"
        rows.append([" ".join(name), verdicts, "; ".join(filter(None, notes))])
    print_aligned(console, rows)
    if len(rows) < len(cases):
        more = f"  … and {len(cases) - len(rows)} more; --json has all"
        print_line(console, more, style="dim")


def _short(own: CaseTally) -> str:
    """`2/3`, or why there is no verdict; errors among verdicts count, too."""
    if not own.judged:
        return _WORDS[own.state]
    return f"{own.passed}/{own.judged}" + (f" +{own.not_run} not run" if own.not_run else "")
