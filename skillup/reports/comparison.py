"""Two runs beside each other: one sentence, the numbers with their meaning, and all of it as JSON.

Cases are those that the totals are over; cost and what was not run are of all of B.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from skillup.history.comparison import CaseChange, Comparison, GateResult, Means
from skillup.history.runs import CaseTally, RunOutcomes, together
from skillup.history.series import CaseHistory, SuiteHistory
from skillup.reports.text import count, listed_ids, money, one_line, p_value, seconds, were
from skillup.stats import Interval, percent

COMPARISON_VERSION = "skillup.comparison/1"
TRENDS_VERSION = "skillup.history/1"
LEAST_CHANGE = 0.005  # Of a case's score; less is shown as none
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


# What the numbers over all cases are, and mean.


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
    if scores is not None and abs(scores.b - scores.a) >= LEAST_CHANGE / 10:
        within = ""
        if scores.interval is not None:
            low, high = scores.interval
            within = f", {percent(comparison.confidence)} between {low:+.3f} and {high:+.3f}"
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
    def numbers(total: CaseTally, interval: Interval | None) -> dict[str, Any]:
        return {**_fields(total, *_TALLY), "pass_rate": total.rate, "interval": interval}

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
