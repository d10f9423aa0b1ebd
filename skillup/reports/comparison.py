"""Two runs beside each other: one sentence, the numbers with their meaning, and all of it as JSON.

Cases are those that the totals are over; cost and what was not run are of all of B.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from skillup.history.comparison import CaseChange, Comparison, Means, could_be_sure
from skillup.history.gates import GateResult
from skillup.history.runs import CaseTally, by_case, tally, together
from skillup.history.series import CaseHistory, SuiteHistory
from skillup.reports.text import count, listed_ids, money, one_line, p_value, seconds
from skillup.stats.exact import ExactTest
from skillup.stats.proportions import Interval, percent

COMPARISON_VERSION = "skillup.comparison/1"
TRENDS_VERSION = "skillup.history/1"
LEAST_CHANGE = 0.005  # Of a case's score; less is shown as none
_LEAST_MEAN_CHANGE = 0.0005
_MAX_NAMED = 5


def in_a_sentence(comparison: Comparison) -> str:
    """``1 case got worse surely (asks); the agent cost $1.23 in B, +4% a trial; all of B was run.``

    The cost is the agent's, as in the totals: that of judges and simulated users is the run's.
    """
    sentence = "; ".join([*news(comparison), _cost(comparison), *_missing(comparison)])
    return sentence[0].upper() + sentence[1:] + "."


def changed_cases(ids: Sequence[str], word: str = "edited") -> str:
    """``1 case was edited between the two runs: x``; empty if there is none.

    What of the changes may come from the cases themselves.
    """
    were = "was" if len(ids) == 1 else "were"
    named = listed_ids(ids, _MAX_NAMED)
    return f"{count(len(ids), 'case')} {were} {word} between the two runs: {named}" if ids else ""


def news(comparison: Comparison) -> Iterator[str]:
    """What became of the cases, no surer than it is."""
    both = [case for case in comparison.counted if case.a.judged and case.b.judged]
    if not both:
        yield "cannot tell what got worse: no case has a verdict in both runs"
        return
    several = len({case.key.engine for case in comparison.counted}) > 1

    def named(cases: Sequence[CaseChange]) -> str:
        engines = (f" on {one_line(case.key.engine)}" if several else "" for case in cases)
        ids = [case.key.case_id + engine for case, engine in zip(cases, engines, strict=True)]
        return listed_ids(ids, _MAX_NAMED)

    def chance(cases: int) -> str:
        return "may be chance" if cases == 1 else "each may be chance"

    failing, unsure, passing = (
        _of(both, change) for change in ("newly_failing", "unsure", "newly_passing")
    )
    sure = [case for case in failing if case.sure]
    observed = [case for case in failing if not case.sure]
    fewer = [case for case in unsure if _rise(case) < 0]
    lower = [
        case
        for case in both
        if _rise(case) >= 0 and (case.a.score or 0.0) - (case.b.score or 0.0) >= LEAST_CHANGE
    ]
    if sure:
        yield f"{count(len(sure), 'case')} got worse surely ({named(sure)})"
    if observed:
        who = str(len(observed)) if sure else f"{count(len(observed), 'case')} got worse"
        yield f"{who} as observed, not surely ({named(observed)})"
    if not failing:
        what = "no case surely got worse" if fewer else "no case got worse"
        if lower and not fewer:
            what = "no case passes less often"
        yield f"{what}, as far as {count(len(both), 'case')} can tell"
    if fewer:
        yield f"{len(fewer)} passed less often ({chance(len(fewer))})"
    verdicts = comparison.verdicts
    down = verdicts.worse > verdicts.better and fmean(map(_rise, both)) < 0
    p = 1.0 if verdicts.test is None else verdicts.test.p
    if not sure and down and p <= 1 - comparison.confidence + 1e-9:
        yield "all together passed less often by more than chance"
    if lower:
        yield f"{len(lower)} scored lower without passing less often"
    if passing:
        number = sum(case.sure for case in passing)
        some = f"{number} of them surely" if number else "as observed"
        yield f"{len(passing)} got better ({'surely' if number == len(passing) else some})"
    more = sum(_rise(case) > 0 for case in unsure)
    if more:
        yield f"{more} passed more often ({chance(more)})"


def _cost(comparison: Comparison) -> str:
    ran = [trial for trial in comparison.b.trials if trial.status not in ("SKIP", "NOT_HELD")]
    known = [trial.cost_usd for trial in ran if trial.cost_usd is not None]
    if not known:
        return "what the agent cost in B is not known"
    text = f"the agent cost {money(sum(known))} in B"
    if len(known) < len(ran):
        text += f" as far as {len(known)} of {len(ran)} trials tell"
    means = comparison.cost
    return text if means is None or means.increase is None else f"{text}, {_more(means)} a trial"


def _missing(comparison: Comparison) -> Iterator[str]:
    statuses = [trial.status for trial in comparison.b.trials]
    blind = [c for c in comparison.counted if c.b.judged and c.change in ("not_run", "skipped")]
    new = [case for case in _of(comparison.counted, "only_in_b") if case.b.judged]
    for cases, run, verb, what in (
        (blind, "B", ("has", "have"), "no verdict in A"),
        (new, "B", ("is", "are"), "not in A"),
        (_of(comparison.counted, "only_in_a"), "A", ("is", "are"), "not in B"),
    ):
        if cases:
            failed = sum(case.b.failed > 0 for case in cases)
            of_them = f" ({failed} failed)" if failed else ""
            yield f"{count(len(cases), 'case')} of {run} {verb[len(cases) > 1]} {what}{of_them}"
    lost = {
        "not run": statuses.count("ERROR") + statuses.count("NOT_HELD"),
        "skipped": statuses.count("SKIP"),
    }
    for what, number in lost.items():
        if number:
            yield f"{count(number, 'trial')} {'was' if number == 1 else 'were'} {what}"
    if not any(lost.values()):
        yield "all of B was run"


def _of(cases: Sequence[CaseChange], change: str) -> list[CaseChange]:
    return [case for case in cases if case.change == change]


def _rise(case: CaseChange) -> float:
    return (case.b.rate or 0.0) - (case.a.rate or 0.0)


# What the numbers over all cases are, and mean.


def totals(comparison: Comparison) -> Iterator[tuple[str, str, str, str]]:
    """Rows of name, A, B and the difference."""
    counted = comparison.counted
    both = [case for case in counted if case.a.judged and case.b.judged]
    if both:
        of = "" if len(both) == len(counted) else f" in {count(len(both), 'case')} of both"
        baseline = "" if len(counted) == len(comparison.cases) else ", with the skill"
        a, b = together(case.a for case in both), together(case.b for case in both)
        shown = [f"{side.passed}/{side.judged}" for side in (a, b)]
        yield f"trials passed{of}{baseline}", shown[0], shown[1], ""
    paired = {case.key for case in counted if case.change not in ("only_in_a", "only_in_b")}
    trials = [
        [trial for trial in run.trials if trial.key in paired]
        for run in (comparison.a, comparison.b)
    ]
    sides = [tally(own) for own in trials]
    lost = [
        sum(case.state in ("error", "not_held") for case in by_case(own).values()) for own in trials
    ]
    for name, before, now in (
        ("trials not run", sides[0].not_run, sides[1].not_run),
        ("trials skipped", sides[0].skipped, sides[1].skipped),
        ("cases not run", lost[0], lost[1]),
    ):
        if before or now:
            yield name, str(before), str(now), f"{now - before:+d}"
    scores, cost, duration = comparison.scores, comparison.cost, comparison.duration
    if scores is not None:
        means = f"{scores.mean_a:.3f}", f"{scores.mean_b:.3f}", f"{scores.difference:+.3f}"
        yield ("mean score", *means)
    if cost is not None:
        yield "cost a trial", money(cost.a), money(cost.b), _more(cost)
    if duration is not None:
        yield "time a trial", _time(duration.a), _time(duration.b), _more(duration)
    for change, name in (("only_in_a", "A"), ("only_in_b", "B")):
        alone = _of(counted, change)
        own = together(case.a if name == "A" else case.b for case in alone)
        for word, value in (
            ("passed", f"{own.passed}/{own.judged}" if own.judged else ""),
            ("not run", str(own.not_run or "")),
            ("skipped", str(own.skipped or "")),
        ):
            if alone and value:
                label = f"trials {word} in {count(len(alone), 'case')} of {name} alone"
                yield (label, value, "–", "") if name == "A" else (label, "–", value, "")


def _time(milliseconds: float) -> str:
    return seconds(round(milliseconds))


def _more(means: Means) -> str:
    return "–" if means.increase is None else f"{means.increase:+.0%}"


def statements(comparison: Comparison) -> Iterator[str]:
    """What the numbers over all cases mean, in a sentence each."""
    verdicts, alpha = comparison.verdicts, 1 - comparison.confidence
    if not verdicts.cases:
        yield "no case has a verdict in both runs: there is nothing to compare"
        return
    cases = count(verdicts.cases, "case")
    if not verdicts.worse and not verdicts.better:
        yield f"pass rate: the same in all of {cases}"
    else:
        text = f"pass rate: lower in {verdicts.worse}, higher in {verdicts.better} of {cases}"
        yield f"{text}; all together {_meaning(verdicts.test, alpha, verdicts.name)}"
    scores = comparison.scores
    if scores is not None and abs(scores.difference) >= _LEAST_MEAN_CHANGE:
        within = ""
        if scores.interval is not None:
            low, high = scores.interval
            within = f", {percent(comparison.confidence)} between {low:+.3f} and {high:+.3f}"
        mean = f"scores: {scores.difference:+.3f} on average{within}"
        yield f"{mean}; {_meaning(scores.test, alpha, 'runs exchanged case by case')}"


def averages(comparison: Comparison) -> Iterator[str]:
    """What an average trial took, in a sentence for what is known of both runs."""
    shown: tuple[tuple[str, Means | None, Callable[[float], str]], ...] = (
        ("cost", comparison.cost, money),
        ("took", comparison.duration, _time),
    )
    for verb, means, show in shown:
        if means is not None:
            more = "" if means.increase is None else f" ({_more(means)})"
            yield f"a trial {verb} {show(means.a)} in A, {show(means.b)} in B{more}"


def _meaning(test: ExactTest | None, alpha: float, name: str) -> str:
    if test is None:
        return "not tested"
    if test.p <= alpha + 1e-9:
        meaning = "more than chance"
    else:
        meaning = "too little data to tell" if test.least > alpha else "may be chance"
    return f"{meaning}, p {p_value(test.p)} ({name})"


def how_sure(comparison: Comparison, case: CaseChange) -> str:
    """``surely (p 0.0143)``, ``2 trials each: cannot tell``; nothing where nothing was tested."""
    if case.p is None or not case.a.judged or not case.b.judged:
        return ""
    if case.sure:
        return f"surely (p {p_value(case.p)})"
    trials = f"{case.a.judged} and {case.b.judged} trials"
    if case.a.judged == case.b.judged:
        trials = f"{case.a.judged} trials each"
    until_decided = comparison.until_decided
    if not could_be_sure(case.a, case.b, comparison.confidence, until_decided=until_decided):
        return f"{trials}: {'cannot tell' if case.change == 'unsure' else 'too few to be sure'}"
    if case.change != "unsure":
        return f"p {p_value(case.p)}: among so many changes not sure by itself"
    return f"{trials}, p {p_value(case.p)}: may be chance"


# As JSON: `skillup compare --json` and `skillup trends --json`. What is not known is null.


def comparison_json(comparison: Comparison, gates: Sequence[GateResult]) -> str:
    verdicts, scores = comparison.verdicts, comparison.scores

    def fields(source: object, *names: str) -> dict[str, Any]:
        return {name: getattr(source, name) for name in names}

    def test(found: ExactTest | None) -> dict[str, float | None]:
        return {"p": found and found.p, "least_p": found and found.least}

    def means(found: Means | None) -> dict[str, Any] | None:
        return None if found is None else {**asdict(found), "increase": found.increase}

    cases = [
        {
            **case.key._asdict(),
            **fields(case, "change", "sure", "p", "p_corrected"),
            "a": _tally(case.a),
            "a_from_run": comparison.earlier.get(case.key),
            "b": _tally(case.b),
        }
        for case in comparison.cases
    ]
    of_run = ("run_id", "started_at", "path", "finished")
    of_scores = ("cases", "mean_a", "mean_b", "difference", "interval")
    data = {
        "schema_version": COMPARISON_VERSION,
        "summary": in_a_sentence(comparison),
        "a": fields(comparison.a, *of_run),
        "b": fields(comparison.b, *of_run),
        "confidence": comparison.confidence,
        "cases": cases,
        "verdicts": {
            **fields(verdicts, "cases", "worse", "better"),
            **test(verdicts.test),
            "test": verdicts.name,
        },
        "scores": scores and {**fields(scores, *of_scores), **test(scores.test)},
        "cost_usd": means(comparison.cost),
        "duration_ms": means(comparison.duration),
        "edited_cases": [{"suite": suite, "case_id": name} for suite, name in comparison.edited],
        "notes": list(comparison.notes),
        "gates": [asdict(gate) for gate in gates],
        "gates_met": all(gate.met for gate in gates),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _tally(own: CaseTally) -> dict[str, Any]:
    return {"state": own.state, **asdict(own)}


def trends_json(suites: Sequence[SuiteHistory]) -> str:
    data = {
        "schema_version": TRENDS_VERSION,
        "suites": [
            {
                "suite": suite.suite,
                **_numbers(suite.total, suite.interval),
                "runs": [
                    {**run._asdict(), "state": state}
                    for run, state in zip(suite.runs, suite.states(), strict=True)
                ],
                "cases": [_case_of_trends(suite, case) for case in suite.cases],
            }
            for suite in suites
        ],
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _numbers(total: CaseTally, interval: Interval | None) -> dict[str, Any]:
    counts = ("errors", "not_held", "skipped", "score", "cost_usd", "duration_ms")
    return {
        "passed": total.passed,
        "judged": total.judged,
        "pass_rate": total.rate,
        "interval": interval,
        **{name: getattr(total, name) for name in counts},
    }


def _case_of_trends(suite: SuiteHistory, case: CaseHistory) -> dict[str, Any]:
    failing, fell = case.failing, case.fell
    return {
        **case.key._asdict(),
        **_numbers(case.total, case.interval),
        "failing_since": failing
        and {
            "first": failing.first._asdict(),
            "last_pass": failing.last_pass and failing.last_pass._asdict(),
            "runs": failing.runs,
            "unknown": failing.unknown,
        },
        "fell_at": fell
        and {
            "first": fell.first._asdict(),
            "before": fell.before._asdict(),
            "since": fell.since._asdict(),
            "runs": fell.runs,
            "p": fell.p,
        },
        "runs": [
            {"run_id": run.run_id, **_tally(own)}
            for run, own in zip(suite.runs, case.tallies, strict=True)
        ],
    }
