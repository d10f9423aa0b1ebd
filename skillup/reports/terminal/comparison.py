"""Two runs beside each other, as text: what changed, the numbers, and the gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from skillup.history.comparison import CaseChange, Change, Comparison, Means, could_be_sure
from skillup.history.gates import GateResult
from skillup.history.runs import (
    WITH_SKILL,
    CaseKey,
    CaseTally,
    RunOutcomes,
    by_case,
    tally,
    together,
)
from skillup.reports.comparison_text import LEAST_CHANGE, edited_in_a_sentence, in_a_sentence
from skillup.reports.terminal.layout import print_aligned, print_at_words, print_table
from skillup.reports.text import money, one_line, plain, seconds, shown_id
from skillup.stats.exact import ExactTest
from skillup.stats.proportions import percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


# The numbers over all cases of two runs, and what they mean, in a sentence each.

_LEAST_CHANGE = 0.0005
"""Of a mean score; less is shown as none."""


def totals_table(comparison: Comparison) -> Table:
    """What each run came to."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for header in ("A", "B", "difference"):
        table.add_column(header, justify="right")
    both = [case for case in comparison.counted if case.a.judged and case.b.judged]
    passed = [together(case.a for case in both), together(case.b for case in both)]
    of = "" if len(both) == len(comparison.counted) else f" in {_cases(len(both))} of both"
    baseline = "" if len(comparison.counted) == len(comparison.cases) else ", with the skill"
    if both:
        shown = [f"{side.passed}/{side.judged}" for side in passed]
        table.add_row(f"trials passed{of}{baseline}", *shown, "")
    paired = _planned_by_both(comparison)
    sides = [
        tally(trial for trial in run.trials if trial.key in paired)
        for run in (comparison.a, comparison.b)
    ]
    for word, name in (("not run", "not_run"), ("skipped", "skipped")):
        values = [getattr(side, name) for side in sides]
        if any(values):
            table.add_row(f"trials {word}", *map(str, values), f"{values[1] - values[0]:+d}")
    lost = [_unanswered(run, comparison) for run in (comparison.a, comparison.b)]
    if any(lost):
        table.add_row("cases not run", *map(str, lost), f"{lost[1] - lost[0]:+d}")
    scores = comparison.scores
    if scores is not None:
        values = [f"{scores.mean_a:.3f}", f"{scores.mean_b:.3f}", f"{scores.difference:+.3f}"]
        table.add_row("mean score", *values)
    if comparison.cost is not None:
        shown = [money(comparison.cost.a), money(comparison.cost.b)]
        table.add_row("cost a trial", *shown, _increase(comparison.cost))
    if comparison.duration is not None:
        shown = [seconds(round(comparison.duration.a)), seconds(round(comparison.duration.b))]
        table.add_row("time a trial", *shown, _increase(comparison.duration))
    for change, name in (("only_in_a", "A"), ("only_in_b", "B")):
        alone = [case for case in comparison.counted if case.change == change]
        if alone:
            own = together(case.a if name == "A" else case.b for case in alone)
            _add_alone(table, name, own, _cases(len(alone)))
    return table


def _add_alone(table: Table, name: str, own: CaseTally, cases: str) -> None:
    """What only one of the runs planned: beside the paired numbers, not among them."""
    shown = {
        "passed": f"{own.passed}/{own.judged}" if own.judged else "",
        "not run": str(own.not_run or ""),
        "skipped": str(own.skipped or ""),
    }
    for word, value in shown.items():
        if value:
            values = (value, "–") if name == "A" else ("–", value)
            table.add_row(f"trials {word} in {cases} of {name} alone", *values, "")


def baseline_as_before(comparison: Comparison) -> list[CaseKey]:
    """Cases without the skill that fail as often as ever: no news, though true each night."""
    counted = {case.key for case in comparison.counted}
    return [case.key for case in comparison.of("still_failing") if case.key not in counted]


def _planned_by_both(comparison: Comparison) -> set[CaseKey]:
    alone = ("only_in_a", "only_in_b")
    return {case.key for case in comparison.counted if case.change not in alone}


def _cases(count: int) -> str:
    return f"{count} case{'s' if count != 1 else ''}"


def _unanswered(run: RunOutcomes, comparison: Comparison) -> int:
    paired = _planned_by_both(comparison)
    tallies = by_case(run.trials).items()
    return sum(own.state in ("error", "not_held") for key, own in tallies if key in paired)


def _increase(means: Means) -> str:
    return "–" if means.increase is None else f"{means.increase:+.0%}"


def statements(comparison: Comparison) -> Iterator[str]:
    """What the numbers over all cases mean, in a sentence each."""
    verdicts, alpha = comparison.verdicts, 1 - comparison.confidence
    if not verdicts.cases:
        yield "no case has a verdict in both runs: there is nothing to compare"
        return
    cases = f"{verdicts.cases} case{'s' if verdicts.cases != 1 else ''}"
    if not verdicts.worse and not verdicts.better:
        yield f"pass rate: the same in all of {cases}"
    else:
        said = f"pass rate: lower in {verdicts.worse}, higher in {verdicts.better} of {cases}"
        yield f"{said}; all together {_meaning(verdicts.test, alpha, verdicts.name)}"
    scores = comparison.scores
    if scores is not None and abs(scores.difference) >= _LEAST_CHANGE:
        within = ""
        if scores.interval is not None:
            low, high = scores.interval
            within = f", {percent(comparison.confidence)} between {low:+.3f} and {high:+.3f}"
        mean = f"scores: {scores.difference:+.3f} on average{within}"
        yield f"{mean}; {_meaning(scores.test, alpha, 'runs exchanged case by case')}"


def taken(comparison: Comparison) -> Iterator[str]:
    """What an average trial took, in a sentence for what both runs tell."""
    for verb, means, show in (
        ("cost", comparison.cost, money),
        ("took", comparison.duration, lambda taken: seconds(round(taken))),
    ):
        if means is not None:
            yield f"a trial {verb} {show(means.a)} in A, {show(means.b)} in B{_more(means)}"


def _more(means: Means) -> str:
    return "" if means.increase is None else f" ({_increase(means)})"


def _meaning(test: ExactTest | None, alpha: float, name: str) -> str:
    if test is None:
        return "not tested"
    if test.p <= alpha + 1e-9:
        meaning = "more than chance"
    else:
        meaning = "too little data to tell" if test.least > alpha else "may be chance"
    return f"{meaning}, p {p_value(test.p)} ({name})"


def p_value(p: float) -> str:
    """`0.012`, or that it is too small to be worth its digits."""
    return "< 0.0001" if p < 0.0001 else f"{p:.3g}"


# Whether a case's change is more than chance, in words.


def how_sure(comparison: Comparison, case: CaseChange) -> str:
    """``surely (p 0.0143)``, ``2 trials each: cannot tell``; nothing where nothing was tested."""
    if case.p is None or not case.a.judged or not case.b.judged:
        return ""
    if case.sure:
        return f"surely (p {p_value(case.p)})"
    held = f"{case.a.judged} and {case.b.judged} trials"
    if case.a.judged == case.b.judged:
        held = f"{case.a.judged} trials each"
    until_decided = comparison.until_decided
    if not could_be_sure(case.a, case.b, comparison.confidence, until_decided=until_decided):
        told = "too few to be sure" if case.change != "unsure" else "cannot tell"
        return f"{held}: {told}"
    if case.change != "unsure":
        return f"p {p_value(case.p)}: among so many changes not sure by itself"
    return f"{held}, p {p_value(case.p)}: may be chance"


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


def _short(own: CaseTally) -> str:
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
