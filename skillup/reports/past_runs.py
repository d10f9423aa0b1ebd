"""Two runs beside each other, and cases over many runs: as text, and all of it as JSON.

Cases are those that the totals are over; cost and what was not run are of all of B.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.text import Text

from skillup import stats
from skillup.history.comparison import CaseChange, Change, Comparison, GateResult, Means
from skillup.history.runs import CaseHistory, CaseTally, RunOutcomes, State, SuiteHistory, together
from skillup.reports.tables import NONE, CaseNames, Cell, interval, known, percent
from skillup.reports.terminal.layout import Part, print_line, print_table
from skillup.reports.text import count, listed_ids, money, one_line, p_value, seconds, were

COMPARISON_VERSION = "skillup.comparison/1"
TRENDS_VERSION = "skillup.history/1"
_LEAST_CHANGE = 0.005  # Of a case's score; less is shown as none
_MAX_NAMED = 5


def in_a_sentence(comparison: Comparison) -> str:
    """``1 case got worse surely (asks); the agent cost $1.23 in B, +4% a trial; …``"""
    sentence = "; ".join([*news(comparison), _cost(comparison), *_missing(comparison)])
    return sentence[0].upper() + sentence[1:] + "."


def changed_cases(ids: Sequence[str]) -> str:
    """``1 case was edited between the two runs: x``; empty if there is none."""
    cases, named = count(len(ids), "case"), listed_ids(ids, _MAX_NAMED)
    return f"{cases} {were(len(ids))} edited between the two runs: {named}" if ids else ""


def news(comparison: Comparison) -> Iterator[str]:
    """What became of the cases, no surer than it is."""
    both = comparison.judged_in_both
    if not both:
        yield "cannot tell what got worse: no case has a verdict in both runs"
        return
    several = len({case.key.engine for case in comparison.counted}) > 1

    def named(cases: Iterable[CaseChange], words: str) -> Iterator[str]:
        ids = [
            case.key.case_id + (f" on {one_line(case.key.engine)}" if several else "")
            for case in cases
        ]
        if ids:
            yield f"{count(len(ids), 'case')} {words} ({listed_ids(ids, _MAX_NAMED)})"

    failing = [case for case in both if case.change == "newly_failing"]
    unsure = [case for case in both if case.change == "unsure"]
    yield from named((case for case in failing if case.sure), "got worse surely")
    yield from named((case for case in failing if not case.sure), "got worse, perhaps by chance")
    if not failing:
        yield f"no case surely got worse, of {count(len(both), 'case')} with a verdict in both runs"
    fewer = [case for case in unsure if case.rise < 0]
    yield from named(fewer, "passed less often, perhaps by chance")
    verdicts = comparison.verdicts
    down = verdicts.worse > verdicts.better and fmean(case.rise for case in both) < 0
    if down and _surely(comparison):
        yield "all together passed less often by more than chance"
    yield from named((case for case in both if case.change == "newly_passing"), "got better")
    more = [case for case in unsure if case.rise > 0]
    yield from named(more, "passed more often, perhaps by chance")


def _surely(comparison: Comparison) -> bool:
    """Whether all cases together changed by more than chance."""
    p = comparison.verdicts.p
    return p is not None and p <= 1 - comparison.confidence + 1e-9


def _cost(comparison: Comparison) -> str:
    ran = [trial for trial in comparison.b.trials if trial.status not in ("SKIP", "NOT_RUN")]
    known = [trial.cost_usd for trial in ran if trial.cost_usd is not None]
    if not known:
        return "what the agent cost in B is not known"
    text = f"the agent cost {money(sum(known))} in B"
    if len(known) < len(ran):
        text += f" as far as {len(known)} of {len(ran)} trials tell"
    more = None if comparison.cost is None else comparison.cost.increase
    return text if more is None else f"{text}, {more:+.0%} a trial"


def _missing(comparison: Comparison) -> Iterator[str]:
    alone = [case for case in comparison.counted if case.b.judged and not case.a.judged]
    if alone:
        failed = sum(case.b.failed > 0 for case in alone)
        has = "case has" if len(alone) == 1 else "cases have"
        yield f"{len(alone)} {has} a verdict only in B ({failed} failed)"
    statuses = [trial.status for trial in comparison.b.trials]
    lost = {
        "not run": statuses.count("ERROR") + statuses.count("NOT_RUN"),
        "skipped": statuses.count("SKIP"),
    }
    for what, number in lost.items():
        if number:
            yield f"{count(number, 'trial')} {were(number)} {what}"
    if not any(lost.values()):
        yield "all of B was run"


def statements(comparison: Comparison) -> Iterator[str]:
    """The numbers over all cases and what they mean, in a sentence each."""
    both, verdicts, scores = comparison.judged_in_both, comparison.verdicts, comparison.scores
    if not both:
        yield "no case has a verdict in both runs: there is nothing to compare"
        return

    a, b = together(case.a for case in both), together(case.b for case in both)
    yield f"trials passed: {a.passed}/{a.judged} in A, {b.passed}/{b.judged} in B"
    cases = count(verdicts.cases, "case")
    if verdicts.worse or verdicts.better:
        text = f"pass rate: lower in {verdicts.worse}, higher in {verdicts.better} of {cases}"
        sure = "more than chance" if _surely(comparison) else "may be chance"
        tested = "" if verdicts.p is None else f"; {sure}, p {p_value(verdicts.p)}"
        yield f"{text}{tested}"
    else:
        yield f"pass rate: the same in all of {cases}"
    if scores is not None and abs(scores.b - scores.a) >= _LEAST_CHANGE / 10:
        within = ""
        if scores.interval is not None:
            low, high = scores.interval
            within = f", {stats.percent(comparison.confidence)} between {low:+.3f} and {high:+.3f}"
        yield f"scores: {scores.b - scores.a:+.3f} on average{within}"
    averages: tuple[tuple[str, Means | None, Callable[[float], str]], ...] = (
        ("cost", comparison.cost, money),
        ("took", comparison.duration, lambda value: seconds(round(value))),
    )
    for verb, means, show in averages:
        if means is not None:
            more = "" if means.increase is None else f" ({means.increase:+.0%})"
            yield f"a trial {verb} {show(means.a)} in A, {show(means.b)} in B{more}"


def how_sure(case: CaseChange) -> str:
    """``surely (p 0.0143)``, ``p 0.214: may be chance``; nothing where nothing was tested."""
    if case.p is None:
        return ""
    p = f"p {p_value(case.p)}"
    return f"surely ({p})" if case.sure else f"{p}: may be chance"


# `skillup compare`, for people.

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
_MOST_ROWS = 40
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
        if abs((case.b.score or 0) - (case.a.score or 0)) >= _LEAST_CHANGE
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
            limit = f"{gate.gate} {gate.limit:g}" + (f" ({gate.suite})" if several else "")
            verdict = ("passed", "green") if gate.passed else ("FAILED", "bold red")
            rows.append(["gate", limit, verdict, gate.finding])
        print_table(console, rows, indent=2)


def _print_section(
    comparison: Comparison, title: str, style: str, cases: Sequence[CaseChange], console: Console
) -> None:
    if not cases:
        return
    console.print()
    print_line(console, f"{title} ({len(cases)})", style=style)
    names = CaseNames([case.key for case in comparison.cases])
    most = len(cases) if cases[0].change in _WHOLE else _MOST_ROWS
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
        verdicts = f"{_short(case.a)} → {_short(case.b)}"
        rows.append([names.row(case.key), verdicts, "; ".join(filter(None, notes))])
    print_table(console, rows, indent=2)
    if len(rows) < len(cases):
        more = f"  … and {len(cases) - len(rows)} more; --json has all"
        print_line(console, more, style="dim")


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
    """Every suite with its cases; the line of all cases is over those not shown, too."""
    seen: set[State] = set()
    for suite in suites:
        first, last = suite.runs[0], suite.runs[-1]
        days = f"{first.started_at[:10]} to {last.started_at[:10]}"
        about = f"  {count(len(suite.runs), 'run')}, {days}  newest: {last.run_id}"
        print_line(console, (suite.suite, "bold cyan"), about)
        cases, names = suite.cases, CaseNames([case.key for case in suite.cases])
        if len(cases) > _MOST_ROWS and not everything:
            steady = {"pass", "absent"}
            cases = tuple(c for c in cases if not {own.state for own in c.tallies} <= steady)
        _print_cases(suite, cases, names, console)
        for case in cases:
            if since := _since(case):
                print_line(console, f"{names.row(case.key)}: {since}")
        rest = len(suite.cases) - len(cases)
        if rest:
            more = f"… and {rest} more that always passed; --all shows them"
            print_line(console, more, style="dim")
        console.print()
        seen.update(tally.state for case in cases for tally in case.tallies)
        seen.update(suite.states() if len(suite.cases) > 1 else ())
    legend = [f"{mark} {text}" for state, (mark, _, text) in _MARKS.items() if state in seen]
    print_line(console, "   ".join(legend), style="dim")


def _print_cases(
    suite: SuiteHistory, cases: Sequence[CaseHistory], names: CaseNames, console: Console
) -> None:
    """All cases together, then `cases`; columns that say something of any of them."""
    rows = [
        (names.row(case.key), [own.state for own in case.tallies], case.total, case.interval)
        for case in cases
    ]
    if len(suite.cases) > 1:
        rows.insert(0, ("(all)", suite.states(), suite.total, suite.interval))
    shown: list[dict[str, Cell | Text]] = [
        {
            "": Cell(name),
            "runs": Text.assemble(*(_MARKS[state][:2] for state in states)),
            "passed": Cell(f"{total.passed}/{total.judged}") if total.judged else NONE,
            "rate": percent(total.rate),
            "95 %": NONE if between is None else interval(*between, stats.percent, "–"),
            "not run": known(total.not_run or None),
            "score": known(total.score, "{:.2f}".format),
            "time": known(total.duration_ms, lambda value: seconds(round(value))),
            "cost": known(total.cost_usd, money),
        }
        for name, states, total, between in rows
    ]
    empty = {name for name in ("not run", "cost") if all(row[name] == NONE for row in shown)}
    heads = [name for name in shown[0] if name not in empty] if shown else []
    cells = [[row[name] for name in heads] for row in shown]
    print_table(console, cells, heads, align="ll" + "r" * (len(heads) - 2))


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


# As JSON: `skillup compare --json` and `skillup trends --json`. What is not known is null.

_TALLY = (
    *("passed", "judged", "errors", "not_started", "skipped"),
    *("score", "cost_usd", "duration_ms", "reason"),
)


def _fields(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def comparison_json(comparison: Comparison, gates: Sequence[GateResult]) -> str:
    def means(found: Means | None) -> dict[str, Any] | None:
        return None if found is None else {**asdict(found), "increase": found.increase}

    of_run = ("run_id", "started_at", "path", "finished")
    data = {
        "schema_version": COMPARISON_VERSION,
        "summary": in_a_sentence(comparison),
        "a": _fields(comparison.a, *of_run),
        "b": _fields(comparison.b, *of_run),
        "confidence": comparison.confidence,
        "cases": [
            {
                **case.key._asdict(),
                **_fields(case, "change", "sure", "p", "p_corrected"),
                "a": _fields(case.a, "state", *_TALLY),
                "a_from_run": comparison.earlier.get(case.key),
                "b": _fields(case.b, "state", *_TALLY),
            }
            for case in comparison.cases
        ],
        "verdicts": asdict(comparison.verdicts),
        "scores": means(comparison.scores),
        "cost_usd": means(comparison.cost),
        "duration_ms": means(comparison.duration),
        "edited_cases": [{"suite": suite, "case_id": name} for suite, name in comparison.edited],
        "notes": list(comparison.notes),
        "gates": [asdict(gate) for gate in gates],
        "gates_passed": all(gate.passed for gate in gates),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def trends_json(suites: Sequence[SuiteHistory]) -> str:
    def numbers(total: CaseTally, between: stats.Interval | None) -> dict[str, Any]:
        return {**_fields(total, *_TALLY), "pass_rate": total.rate, "interval": between}

    def head(run: RunOutcomes) -> dict[str, Any]:
        return _fields(run, "run_id", "started_at")

    def of_case(suite: SuiteHistory, case: CaseHistory) -> dict[str, Any]:
        failing, fell = case.failing, case.fell
        return {
            **case.key._asdict(),
            **numbers(case.total, case.interval),
            "failing_since": failing
            and {
                "first": head(failing.first),
                "last_pass": failing.last_pass and head(failing.last_pass),
                "runs": failing.runs,
            },
            "fell_at": fell
            and {
                "first": head(fell.first),
                "runs": fell.runs,
                "before": fell.fall.before._asdict(),
                "since": fell.fall.since._asdict(),
                "p": fell.fall.p,
            },
            "runs": [
                {"run_id": run.run_id, **_fields(own, "state", *_TALLY)}
                for run, own in zip(suite.runs, case.tallies, strict=True)
            ],
        }

    data = {
        "schema_version": TRENDS_VERSION,
        "suites": [
            {
                "suite": suite.suite,
                **numbers(suite.total, suite.interval),
                "runs": [
                    {**head(run), "state": state}
                    for run, state in zip(suite.runs, suite.states(), strict=True)
                ],
                "cases": [of_case(suite, case) for case in suite.cases],
            }
            for suite in suites
        ],
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
