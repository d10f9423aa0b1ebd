"""Two runs beside each other, as text: what changed, the numbers, and the gates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skillup.reports.compare_totals import grid, p_value, statements, totals_table
from skillup.reports.text import one_line, plain, shown_id
from skillup.trends.changes import CaseChange, Change, could_be_sure
from skillup.trends.comparison import Comparison
from skillup.trends.gates import GateResult
from skillup.trends.outcomes import WITH_SKILL, RunOutcomes
from skillup.trends.tallies import Tally

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

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
_LEAST_CHANGE = 0.005
"""Of a score; less is shown as none."""
_WORDS = {"error": "error", "not_held": "not held", "skip": "skipped", "absent": "–"}


def print_comparison(comparison: Comparison, gates: Sequence[GateResult], console: Console) -> None:
    """All of it; a section is left out where it is empty."""
    from rich.text import Text

    for name, run in (("A", comparison.a), ("B", comparison.b)):
        console.print(Text(_head(name, run)), soft_wrap=True)
    for change, title, style in _SECTIONS:
        cases = comparison.of(change)
        if cases:
            console.print()
            console.print(Text(f"{title} ({len(cases)})", style=f"bold {style}"))
            _print_table(_changes(comparison, cases), console)
    moved = [case for case in comparison.of("still_passing") if _score_change(case)]
    moved += [case for case in comparison.of("still_failing") if _score_change(case)]
    if moved:
        console.print()
        console.print(Text(f"another score, the same verdict ({len(moved)})", style="bold"))
        _print_table(_changes(comparison, moved, with_score=True), console)
    console.print()
    _print_table(totals_table(comparison), console)
    console.print()
    for line in statements(comparison):
        console.print(Text(line), soft_wrap=True)
    if gates:
        console.print()
        _print_table(_gates(gates), console)


def _head(name: str, run: RunOutcomes) -> str:
    suites = ", ".join(sorted({trial.key.suite for trial in run.trials}))
    ended = "" if run.finished else ", not finished"
    count = f"{len(run.trials)} trial{'s' if len(run.trials) != 1 else ''}"
    started = run.started_at[:16].replace("T", " ")
    return plain(f"{name}  {run.run_id}  {started}  {count}{ended}  {one_line(suites, 60)}")


def _print_table(table: Table, console: Console) -> None:
    from rich.padding import Padding

    console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _changes(
    comparison: Comparison, cases: Iterable[CaseChange], *, with_score: bool = False
) -> Table:
    from rich.text import Text

    keys = [case.key for case in comparison.cases]
    show_suite = len({key.suite for key in keys}) > 1
    show_engine = len({key.engine for key in keys}) > 1
    table = grid()
    for case in cases:
        name = [case.key.suite] if show_suite else []
        name.append(shown_id(case.key.case_id))
        if show_engine:
            name.append(case.key.engine)
        if case.key.variant != WITH_SKILL:
            name.append("(without skill)")
        score = f"score {case.a.score:.2f} → {case.b.score:.2f}" if with_score else ""
        notes = [score, _sureness(comparison, case), _why(case)]
        earlier = comparison.earlier.get(case.key)
        if earlier is not None:
            notes.insert(0, f"not run in A: compared with {earlier}")
        table.add_row(
            Text(plain(" ".join(name))),
            f"{_short(case.a)} → {_short(case.b)}",
            Text("; ".join(note for note in notes if note)),
        )
    return table


def _short(own: Tally) -> str:
    """`2/3`, or why there is no verdict; errors among verdicts are said, too."""
    if not own.judged:
        return _WORDS[own.state]
    lost = f" +{own.not_run} not run" if own.not_run else ""
    return f"{own.passed}/{own.judged}{lost}"


def _sureness(comparison: Comparison, case: CaseChange) -> str:
    if case.p is None or not case.a.judged or not case.b.judged:
        return ""
    if case.sure:
        return f"surely (p {p_value(case.p)})"
    held = f"{case.a.judged} and {case.b.judged} trials"
    if case.a.judged == case.b.judged:
        held = f"{case.a.judged} trials each"
    if not could_be_sure(case.a, case.b, comparison.confidence):
        told = "too few to be sure" if case.change != "unsure" else "cannot tell"
        return f"{held}: {told}"
    if case.change != "unsure":
        return f"p {p_value(case.p)}: among so many changes not sure by itself"
    return f"{held}, p {p_value(case.p)}: may be chance"


def _why(case: CaseChange) -> str:
    """The reason of what is not a pass in B."""
    if case.change == "only_in_a" or case.b.state in ("pass", "absent"):
        return ""
    return one_line(case.b.reason, 120)


def _score_change(case: CaseChange) -> bool:
    return abs((case.b.score or 0) - (case.a.score or 0)) >= _LEAST_CHANGE


def _gates(gates: Sequence[GateResult]) -> Table:
    from rich.text import Text

    table = grid()
    several = len({gate.suite for gate in gates}) > 1
    for gate in gates:
        verdict = Text("met" if gate.met else "NOT MET", style="green" if gate.met else "bold red")
        name = f"{gate.gate} {gate.limit:g}" + (f" ({gate.suite})" if several else "")
        table.add_row("gate", Text(plain(name)), verdict, Text(gate.said))
    return table
