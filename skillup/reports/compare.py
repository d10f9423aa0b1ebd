"""Two runs beside each other, as text: what changed, the numbers, and the gates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skillup.reports.aligned import print_aligned, print_at_words
from skillup.reports.compare_sentence import LEAST_CHANGE, edited_in_a_sentence, in_a_sentence
from skillup.reports.compare_totals import baseline_as_before, statements, totals_table
from skillup.reports.how_sure import how_sure
from skillup.reports.table import print_table
from skillup.reports.text import one_line, plain, shown_id
from skillup.trends.changes import CaseChange, Change
from skillup.trends.comparison import Comparison
from skillup.trends.gates import GateResult
from skillup.trends.outcomes import WITH_SKILL, RunOutcomes
from skillup.trends.tallies import Tally, by_case

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
_MOST_ROWS = 40
"""Of those: a run that was stopped would bury what changed below all that it did not hold."""
_WORDS = {"error": "error", "not_held": "not held", "skip": "skipped", "absent": "–"}


def print_comparison(comparison: Comparison, gates: Sequence[GateResult], console: Console) -> None:
    """All of it; a section is left out where it is empty."""
    from rich.text import Text

    print_at_words(console, Text(plain(in_a_sentence(comparison)), style="bold"))
    edited = edited_in_a_sentence(comparison)
    if edited:
        print_at_words(console, Text(plain(edited)))
    console.print()
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        print_at_words(console, Text(_head(name, run)))
    as_before = set(baseline_as_before(comparison))
    for change, title, style in _SECTIONS:
        cases = [case for case in comparison.of(change) if case.key not in as_before]
        if cases:
            console.print()
            console.print(Text(f"{title} ({len(cases)})", style=f"bold {style}"))
            if change in _SHORTENED:
                cases.sort(key=lambda case: not (case.a.judged or case.b.judged))
            shown = cases[:_MOST_ROWS] if change in _SHORTENED else cases
            print_aligned(console, _changes(comparison, shown))
            if len(cases) > len(shown):
                more = f"  … and {len(cases) - len(shown)} more; --json has all"
                console.print(Text(more, style="dim"))
    moved = [case for case in comparison.of("still_passing") if _score_change(case)]
    moved += [case for case in comparison.of("still_failing") if _score_change(case)]
    if moved:
        console.print()
        console.print(Text(f"another score, the same verdict ({len(moved)})", style="bold"))
        print_aligned(console, _changes(comparison, moved, with_score=True))
    console.print()
    print_table(console, totals_table(comparison), indent=2)
    console.print()
    if as_before:
        count = f"{len(as_before)} case{'s' if len(as_before) != 1 else ''}"
        said = f"without the skill, {count} passed as often as before, and not always"
        print_at_words(console, Text(said))
    for line in (*statements(comparison), *comparison.notes):
        print_at_words(console, Text(plain(line)))
    if gates:
        console.print()
        print_aligned(console, _gates(gates))


def _head(name: str, run: RunOutcomes) -> str:
    suites = ", ".join(sorted({trial.key.suite for trial in run.trials}))
    ended = "" if run.finished else ", not finished"
    count = f"{len(run.trials)} trial{'s' if len(run.trials) != 1 else ''}"
    started = run.started_at[:16].replace("T", " ")
    return plain(f"{name}  {run.run_id}  {started}  {count}{ended}  {one_line(suites, 60)}")


def _changes(
    comparison: Comparison, cases: Iterable[CaseChange], *, with_score: bool = False
) -> list[list[Text]]:
    from rich.text import Text

    keys = [case.key for case in comparison.cases]
    skipped = {k for k, own in by_case(comparison.a.trials).items() if own.state == "skip"}
    show_suite = len({key.suite for key in keys}) > 1
    show_engine = len({key.engine for key in keys}) > 1
    rows = []
    for case in cases:
        name = [case.key.suite] if show_suite else []
        name.append(shown_id(case.key.case_id))
        if show_engine:
            name.append(case.key.engine)
        if case.key.variant != WITH_SKILL:
            name.append("(without skill)")
        score = f"score {case.a.score:.2f} → {case.b.score:.2f}" if with_score else ""
        notes = [score, how_sure(comparison, case), _why(case)]
        earlier = comparison.earlier.get(case.key)
        if earlier is not None:
            what = "skipped" if case.key in skipped else "not run"
            notes.insert(0, f"{what} in A: compared with {earlier}")
        cells = [
            plain(" ".join(name)),
            f"{_short(case.a)} → {_short(case.b)}",
            "; ".join(note for note in notes if note),
        ]
        rows.append([Text(cell) for cell in cells])
    return rows


def _short(own: Tally) -> str:
    """`2/3`, or why there is no verdict; errors among verdicts are said, too."""
    if not own.judged:
        return _WORDS[own.state]
    lost = f" +{own.not_run} not run" if own.not_run else ""
    return f"{own.passed}/{own.judged}{lost}"


def _why(case: CaseChange) -> str:
    """The reason of what is not a pass in B."""
    if case.change == "only_in_a" or case.b.state in ("pass", "absent"):
        return ""
    return one_line(case.b.reason, 120)


def _score_change(case: CaseChange) -> bool:
    return abs((case.b.score or 0) - (case.a.score or 0)) >= LEAST_CHANGE


def _gates(gates: Sequence[GateResult]) -> list[list[Text]]:
    from rich.text import Text

    rows = []
    several = len({gate.suite for gate in gates}) > 1
    for gate in gates:
        verdict = Text("met" if gate.met else "NOT MET", style="green" if gate.met else "bold red")
        name = f"{gate.gate} {gate.limit:g}" + (f" ({gate.suite})" if several else "")
        rows.append([Text("gate"), Text(plain(name)), verdict, Text(gate.said)])
    return rows
