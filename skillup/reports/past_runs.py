"""A run beside its reference, and cases over many runs: as text, and all of it as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

from skillup import stats
from skillup.errors import SkillupError
from skillup.history.comparison import CaseChange, CaseState, Comparison
from skillup.history.counts import Measured
from skillup.history.gates import GateResult, compared
from skillup.history.index import index_url
from skillup.history.regressions import Statement
from skillup.history.runs import (
    CaseTally,
    RunOutcomes,
    fields_of,
    key_of,
    read_run,
    together,
    workspace_of,
)
from skillup.history.trends import changed_over
from skillup.reports.tables import NONE, CaseNames, Cell, Sheet, interval, known, percent
from skillup.reports.terminal.layout import print_line, print_table
from skillup.reports.text import count, listed_ids, money, one_line, p_value, seconds
from skillup.schema.grade import RunResult
from skillup.schema.past_runs import (
    CaseHistoryData,
    Change,
    ComparisonData,
    HistoryData,
    RunHead,
    SuiteHistoryData,
)

Compared = tuple[Comparison, Sequence[GateResult]]
_MAX_NAMED = 5


def index_of(run: Path, given: str | None) -> str:
    """The index that knows the run, as ``--index``: by default that of its own workspace."""
    return index_url(given, os.environ, workspace_of(run), write=False)


def beside_its_nights(
    run: Path, index: str | None, result: RunResult | None = None
) -> Compared | None:
    """None: there is nothing yet to compare it with, or no index that can be read."""
    with suppress(SkillupError):
        found = compared(read_run(run, result), index_of(run, index))
        return found if found[0].nights else None
    return None


def _verb(change: Change) -> str:
    return "changed" if change.before and change.after else "added" if change.after else "removed"


def change_lines(found: Iterable[Change]) -> Iterator[str]:
    """``The model of claude_code changed from a to b``, ``skill logs changed (SKILL.md)``, …"""
    for kind, group in groupby(found, key=lambda change: change.kind):
        several = list(group)
        if kind == "case":
            for verb, own in groupby(sorted(several, key=_verb), _verb):
                names = [one.name for one in own]
                yield f"{count(len(names), 'case')} {verb}: {listed_ids(names, _MAX_NAMED)}"
            continue
        for change in several:
            name, before, after = map(one_line, (change.name, change.before, change.after))
            if kind == "model":
                yield f"The model of {name} changed from {before} to {after}"
            elif kind in ("skill", "profile"):
                files = f" ({listed_ids(change.files, _MAX_NAMED)})" if change.files else ""
                yield f"{kind} {name} {_verb(change)}{files}"
            else:
                yield f"{kind} {name}".strip() + f": {before} → {after}"


def changed_lines(comparison: Comparison) -> list[str]:
    """Under `What changed`."""
    return [*change_lines(comparison.changed)] or ["nothing that skillup records"]


def headline(comparison: Comparison) -> list[str]:
    """A model that changed, above all that is said of the skill; and then that."""
    models = [change for change in comparison.changed if change.kind == "model"]
    return [*(f"{line}." for line in change_lines(models)), in_a_sentence(comparison)]


def in_a_sentence(comparison: Comparison) -> str:
    """``1 case regressed (asks); 1 case is slower (asks +205%); the agent cost $1.23; …``"""
    sentence = "; ".join([*news(comparison), _cost(comparison), *_missing(comparison)])
    return sentence[0].upper() + sentence[1:] + "."


_FEWER = "fewer passes, not significant"
_KINDS = {"slower": "slower", "dearer": "dearer", "more_errors": "with more errors"}


def news(comparison: Comparison) -> Iterator[str]:
    """What became of the cases: what is significant first, and no surer than it is."""
    if not comparison.nights:
        all_of_it = together(case.b for case in comparison.counted)
        passed = f"{all_of_it.passed} of {all_of_it.judged} trials passed"
        why = f": {comparison.reference.why}" if comparison.reference.why else ""
        yield f"nothing to compare with yet{why}; {passed}"
        return
    both = comparison.judged_in_both
    if not both:
        yield "cannot tell what got worse: no case has a verdict in both"
        return
    several = len({case.key.engine for case in comparison.counted}) > 1

    def named(cases: Iterable[CaseChange], verb: str, more: str = "") -> Iterator[str]:
        ids = [
            case.key.case_id + (f" on {one_line(case.key.engine)}" if several else "")
            for case in cases
        ]
        if ids:
            yield f"{count(len(ids), 'case')} {verb} ({listed_ids(ids, _MAX_NAMED)}){more}"

    red = [case for case in comparison.counted if case.change == "regressed"]
    said = comparison.assessment.red
    stay = [case for case in red if said[case.key].run_id != comparison.b.run_id]
    yield from named((case for case in red if case not in stay), "regressed")
    yield from named(stay, "stayed red")
    for one in comparison.of_suites:
        who = (
            one_line(one.key.case_id) if one.key else f"all cases of {one_line(one.suite)} together"
        )
        yield f"{who} {how_sure(one)}"
    for kind, words in _KINDS.items():
        own = [c for c in both if any(s.kind == kind and s.significant for s in c.statements)]
        yield from named(own, f"{words}, significantly")
    if not comparison.assessment.regressed:
        yield f"no case regressed, of {count(len(both), 'case')} with a verdict in both"
    yield from named((c for c in both if c.change == "recovered"), "recovered")
    fewer = [c for c in both if c.change == "fewer_passes"]
    yield from named(fewer, f"with {_FEWER}")


def _cost(comparison: Comparison) -> str:
    ran = [trial for trial in comparison.b.trials if trial.status not in ("SKIP", "NOT_RUN")]
    known = [trial.cost_usd for trial in ran if trial.cost_usd is not None]
    if not known:
        return "what the agent cost is not known"
    text = f"the agent cost {money(sum(known))}"
    if len(known) < len(ran):
        text += f" as far as {len(known)} of {len(ran)} trials tell"
    more = comparison.cost_increase
    return text if more is None else f"{text}, {more:+.0%} a trial"


def _missing(comparison: Comparison) -> Iterator[str]:
    total = CaseTally(comparison.b.trials)
    lost = {"met an error": total.errors, "not run": total.not_started, "skipped": total.skipped}
    yield from (f"{count(number, 'trial')} {what}" for what, number in lost.items() if number)
    if not any(lost.values()):
        yield "all of it was run"


def how_sure(one: Statement, *, beside_counts: bool = False) -> str:
    """``regressed: 58/60 → 1/3 (p 0.0004)``; beside the counts of a case, what they do not say."""
    words = f"p {p_value(one.p)}"
    if one.since:
        words = f"since {one.since}, {words}"
    before, after = (_measured(one, side) for side in (one.before, one.after))
    nights = f" in {one.nights} nights" if one.nights > 1 else ""
    more = f", {one.increase:+.0%}" if one.kind in ("slower", "dearer") and one.increase else ""
    verb = _KINDS.get(one.kind) or "regressed" if one.significant else _FEWER
    if beside_counts and one.kind == "fewer_passes":
        known = "" if one.significant else "not significant"
        return ", ".join(filter(None, [after + nights if nights else "", known, words]))
    return f"{verb}: {before} → {after}{nights}{more} ({words})"


def _measured(one: Statement, side: Measured) -> str:
    if one.kind == "slower":
        return seconds(round(side.value))
    if one.kind == "dearer":
        return money(side.value)
    return f"{side.count}/{side.trials}"


# `skillup compare`, for people.

TITLES: dict[CaseState, str] = {
    "regressed": "regressed",
    "recovered": "recovered",
    "fewer_passes": "fewer passes",
    "not_run": "not run",
    "more_passes": "more passes",
    "skipped": "skipped",
    "only_in_a": "only in A",
    "only_in_b": "only in B",
    "same": "",
}
"""What a case may have become, in the order in which it is told."""
_STYLES = {"regressed": "bold red", "recovered": "green", "fewer_passes": "yellow"}
_MOST_ROWS = 40
"""Of the others: a run that was stopped would bury what changed below all that it did not run. And
of a suite's cases over runs: of more, those that passed every time are only counted."""
_WORDS = {"error": "error", "not_started": "not run", "skip": "skipped", "absent": "–"}


def comparison_sheets(
    comparison: Comparison, gates: Sequence[GateResult], most: int = _MOST_ROWS
) -> Iterator[Sheet]:
    """What changed; what became of the cases, in a sentence and case by case (`most` of those of
    which nothing is sure); and the gates.
    """
    if comparison.nights:
        since = comparison.base is not comparison.nights[-1]
        changed = Sheet("What changed" + (f" since {comparison.base.run_id}" if since else ""))
        for line in changed_lines(comparison):
            model = line.startswith("The model of ")
            changed.lines.append(Cell(f"  {line}", "bold yellow" if model else "default"))
        yield changed
    yield Sheet("", lines=[Cell(in_a_sentence(comparison), "bold")])
    reference = [Cell(f"A  {reference_words(comparison)}")] if comparison.nights else []
    run = comparison.b
    suites = one_line(", ".join(sorted({trial.key.suite for trial in run.trials})), 60)
    ended = "" if run.finished else ", not finished"
    trials = count(len(run.trials), "trial")
    words = f"B  {run.run_id}  {_minute(run)}  {trials}{ended}  {suites}"
    yield Sheet("", lines=[*reference, Cell(words)])
    cases, names = worst_first(comparison), CaseNames([case.key for case in comparison.cases])
    most = max(most, sum(any(s.significant for s in case.statements) for case in cases))
    sheet = Sheet("", indent=2)
    for case in cases[:most]:
        change = Cell(TITLES[case.change], _STYLES.get(case.change, ""))
        notes = Cell(case_counts(case)), Cell(case_notes(case))
        sheet.add([Cell(names.row(case.key)), change, *notes])
    if len(cases) > most:
        sheet.lines.append(Cell(f"  … and {len(cases) - most} more; --json has all", "dim"))
    met = Sheet("", indent=2)
    for gate in gates:
        verdict = Cell("passed", "green") if gate.passed else Cell("FAILED", "bold red")
        limit = Cell(f"{gate_name(gate)} {gate.limit:g}")
        met.add([Cell("gate"), limit, verdict, Cell(gate.finding)])
    yield from (one for one in (sheet, met) if one.rows)


def gate_name(gate: GateResult) -> str:
    return f"{gate.gate} ({gate.suite})" if gate.suite else gate.gate


def worst_first(comparison: Comparison) -> list[CaseChange]:
    """The cases of which something is said, as TITLES has them; in a first night what failed."""
    order = [*TITLES]

    def place(case: CaseChange) -> tuple[int, bool, bool, float]:
        p = min((one.p for one in case.statements), default=1.0)
        sure = any(one.significant for one in case.statements)
        judged = case.a.judged or case.b.judged
        return (0 if sure else order.index(case.change), not sure, not judged, p)

    # That an unsteady case passed more often this time is no news.
    quiet = ("same", "more_passes")
    told = [case for case in comparison.cases if case.change not in quiet or case.statements]
    if not comparison.nights:
        told = [case for case in told if case.b.state != "pass"]
    return sorted(told, key=place)


def reference_words(comparison: Comparison) -> str:
    """``the last 12 nights on main: 20261101… to 20261120…``."""
    first, last = comparison.nights[0], comparison.nights[-1]
    ids = last.run_id if first is last else f"{first.run_id} to {last.run_id}"
    why = comparison.reference.why
    return f"{why}: {ids}" if why else ids


def case_counts(case: CaseChange) -> str:
    """``58/60 → 1/3``."""

    def short(own: CaseTally) -> str:  # errors among verdicts count, too
        if not own.judged:
            return _WORDS[own.state]
        return f"{own.passed}/{own.judged}" + (f" +{own.not_run} not run" if own.not_run else "")

    return f"{short(case.a)} → {short(case.b)}"


def case_notes(case: CaseChange) -> str:
    """What is said of it, and why it did not pass."""
    reason = case.change != "only_in_a" and case.b.state not in ("pass", "absent")
    notes = [
        "in quarantine" if case.quarantined else "",
        *(how_sure(one, beside_counts=True) for one in case.statements),
        one_line(case.b.reason, 120) if reason else "",
    ]
    return "; ".join(filter(None, notes))


def _minute(run: RunOutcomes | RunHead) -> str:
    return run.started_at[:16].replace("T", " ")


# Many runs: a line of marks for each case.

_MARKS = {
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
    history: HistoryData, runs: Iterable[RunOutcomes], console: Console, *, everything: bool = False
) -> None:
    """Every suite with its cases, of `runs`; the line of all cases is over those not shown, too."""
    seen, ids, every = set[str](), set[str](), list(runs)
    for suite in history.suites:
        first, last = suite.runs[0], suite.runs[-1]
        days = f"{first.started_at[:10]} to {last.started_at[:10]}"
        about = f"  {count(len(suite.runs), 'run')}, {days}  newest: {last.run_id}"
        print_line(console, (suite.suite, "bold cyan"), about)
        cases, names = suite.cases, CaseNames(suite.cases)
        if len(cases) > _MOST_ROWS and not everything:
            steady = {"pass", "absent"}
            cases = [c for c in cases if not {own.state for own in c.runs} <= steady]
        _print_cases(suite, cases, names, console)
        for case in cases:
            if since := _since(case, every):
                print_line(console, f"{names.row(case)}: {since}")
        rest = len(suite.cases) - len(cases)
        if rest:
            more = f"… and {rest} more that always passed; --all shows them"
            print_line(console, more, style="dim")
        console.print()
        seen.update(own.state for case in cases for own in case.runs)
        seen.update(run.state for run in suite.runs if len(suite.cases) > 1)
        ids.update(run.run_id for run in suite.runs)
    shown = [run for run in every if run.run_id in ids]
    for run, changed in zip(shown, changed_over(shown), strict=True):
        if changed:
            print_line(console, f"changed at {_run(run)}: {'; '.join(change_lines(changed))}")
    legend = [f"{mark} {text}" for state, (mark, _, text) in _MARKS.items() if state in seen]
    print_line(console, "   ".join(legend), style="dim")


def _print_cases(
    suite: SuiteHistoryData, cases: Sequence[CaseHistoryData], names: CaseNames, console: Console
) -> None:
    """All cases together, then `cases`; columns that say something of any of them."""
    rows: list[tuple[str, SuiteHistoryData | CaseHistoryData]]
    rows = [(names.row(case), case) for case in cases]
    if len(suite.cases) > 1:
        rows.insert(0, ("(all)", suite))
    shown: list[dict[str, Cell | Text]] = [
        {
            "": Cell(name),
            "runs": Text.assemble(*(_MARKS[run.state][:2] for run in own.runs)),
            "passed": Cell(f"{own.passed}/{own.judged}") if own.judged else NONE,
            "rate": percent(own.pass_rate),
            "95 %": NONE if own.interval is None else interval(*own.interval, stats.percent, "–"),
            "not run": known(own.errors + own.not_started or None),
            "score": known(own.score, "{:.2f}".format),
            "time": known(own.duration_ms, lambda value: seconds(round(value))),
            "cost": known(own.cost_usd, money),
        }
        for name, own in rows
    ]
    empty = {name for name in ("not run", "cost") if all(row[name] == NONE for row in shown)}
    heads = [name for name in shown[0] if name not in empty] if shown else []
    cells = [[row[name] for name in heads] for row in shown]
    print_table(console, cells, heads, align="ll" + "r" * (len(heads) - 2))


def _since(case: CaseHistoryData, runs: Sequence[RunOutcomes]) -> str:
    """``failing since RUN (time); last passed in RUN (time)``, or where the pass rate fell."""
    failing = case.failing_since
    if failing is None:
        return ""
    if said := failing.statement:
        before, since = (f"{one.count}/{one.trials}" for one in (said.before, said.after))
        where = f"regressed at {_run(failing.first)}"
        return f"{where}: {before} before, {since} since (p {p_value(said.p)})"
    own = (CaseTally(t for t in run.trials if t.key == key_of(case)) for run in reversed(runs))
    word = "not always passing" if next(one for one in own if one.judged).passed else "failing"
    many = f", {failing.runs} runs" if failing.runs > 1 else ""
    passed = failing.last_pass
    last = f"last passed in {_run(passed)}" if passed else "never passed before"
    return f"{word} since {_run(failing.first)}{many}; {last}"


def _run(run: RunOutcomes | RunHead) -> str:
    return f"{run.run_id} ({_minute(run)})"


# As JSON: `skillup compare --json`.


def comparison_data(comparison: Comparison, gates: Sequence[GateResult]) -> ComparisonData:
    found = {
        **fields_of(comparison, "changed", "confidence", "time_increase", "cost_increase"),
        "summary": " ".join(headline(comparison)),
        "why": comparison.reference.why,
        "changed_since": comparison.base if comparison.nights else None,
        "reference": comparison.nights,
        "run": comparison.b,
        "finished": comparison.b.finished,
        "statements": comparison.assessment.statements,
        "cases": [
            {**case.key._asdict(), **fields_of(case, "change", "quarantined", "a", "b")}
            for case in comparison.cases
        ],
        "gates": gates,
        "gates_passed": all(gate.passed for gate in gates),
    }
    return ComparisonData.model_validate(found, from_attributes=True)
