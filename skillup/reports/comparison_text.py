"""Two runs in one sentence: what got worse, how sure that is, what it cost, what was not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from skillup.history.comparison import CaseChange, Change, Comparison
from skillup.reports.text import listed_ids, money, one_line

LEAST_CHANGE = 0.005
"""Of a case's score; less is shown as none."""
_MOST_NAMED = 5


def in_a_sentence(comparison: Comparison) -> str:
    """``1 case got worse surely (asks); the agent cost $1.23 in B, +4% a trial; all of B was run.``

    Cases are those that the totals are over; cost and what was not run are of all of B. The cost
    is the agent's, as in the totals: what judges and simulated users took is told by the run.
    """
    parts = [*_news(comparison), _cost(comparison), *_left(comparison)]
    sentence = "; ".join(parts)
    return sentence[0].upper() + sentence[1:] + "."


def edited_in_a_sentence(comparison: Comparison) -> str:
    """What of the changes may come from the cases themselves; empty if they are what they were."""
    ids = [case_id for _, case_id in comparison.edited]
    if not ids:
        return ""
    were = "case was" if len(ids) == 1 else "cases were"
    return f"{len(ids)} {were} edited between the two runs: {listed_ids(ids, _MOST_NAMED)}"


def _news(comparison: Comparison) -> Iterator[str]:
    both = [case for case in comparison.counted if case.a.judged and case.b.judged]
    if not both:
        yield "cannot tell what got worse: no case has a verdict in both runs"
        return
    failing, unsure = _of(both, "newly_failing"), _of(both, "unsure")
    sure = [case for case in failing if case.sure]
    observed = [case for case in failing if not case.sure]
    fewer = [case for case in unsure if _rise(case) < 0]
    lower = [case for case in both if _scored_lower(case) and _rise(case) >= 0]
    if sure:
        yield f"{_count(sure)} got worse surely ({_named(comparison, sure)})"
    if observed:
        who = str(len(observed)) if sure else f"{_count(observed)} got worse"
        yield f"{who} as observed, not surely ({_named(comparison, observed)})"
    if not failing:
        what = "no case surely got worse" if fewer else "no case got worse"
        if lower and not fewer:
            what = "no case passes less often"
        yield f"{what}, as far as {_count(both)} can tell"
    if fewer:
        yield f"{len(fewer)} passed less often ({_chance(len(fewer))})"
    if not sure and _surely_fewer(comparison, both):
        yield "all together passed less often by more than chance"
    if lower:
        yield f"{len(lower)} scored lower without passing less often"
    yield from _good_news(both, unsure)


def _good_news(both: Sequence[CaseChange], unsure: Sequence[CaseChange]) -> Iterator[str]:
    passing = _of(both, "newly_passing")
    sure = sum(case.sure for case in passing)
    if passing:
        some = f"{sure} of them surely" if sure else "as observed"
        yield f"{len(passing)} got better ({'surely' if sure == len(passing) else some})"
    more = sum(_rise(case) > 0 for case in unsure)
    if more:
        yield f"{more} passed more often ({_chance(more)})"


def _cost(comparison: Comparison) -> str:
    held = [trial for trial in comparison.b.trials if trial.status not in ("SKIP", "NOT_HELD")]
    told = [trial.cost_usd for trial in held if trial.cost_usd is not None]
    if not told:
        return "what the agent cost in B is not told"
    said = f"the agent cost {money(sum(told))} in B"
    if len(told) < len(held):
        said += f" as far as {len(told)} of {len(held)} trials tell"
    means = comparison.cost
    if means is None or means.increase is None:
        return said
    return f"{said}, {means.increase:+.0%} a trial"


def _left(comparison: Comparison) -> Iterator[str]:
    trials = comparison.b.trials
    lost = sum(trial.status in ("ERROR", "NOT_HELD") for trial in trials)
    skipped = sum(trial.status == "SKIP" for trial in trials)
    gone = _of(comparison.counted, "only_in_a")
    blind = [c for c in comparison.counted if c.b.judged and c.change in ("not_run", "skipped")]
    new = [case for case in _of(comparison.counted, "only_in_b") if case.b.judged]
    if blind:
        have = "has" if len(blind) == 1 else "have"
        yield f"{_count(blind)} of B {have} no verdict in A{_of_them_failed(blind)}"
    if new:
        are = "is" if len(new) == 1 else "are"
        yield f"{_count(new)} of B {are} not in A{_of_them_failed(new)}"
    if gone:
        yield f"{_count(gone)} of A {'is' if len(gone) == 1 else 'are'} not in B"
    if lost:
        yield f"{_trials(lost)} {_were(lost)} not run"
    if skipped:
        yield f"{_trials(skipped)} {_were(skipped)} skipped"
    if not lost and not skipped:
        yield "all of B was run"


def _of(cases: Sequence[CaseChange], change: Change) -> list[CaseChange]:
    return [case for case in cases if case.change == change]


def _rise(case: CaseChange) -> float:
    return (case.b.rate or 0.0) - (case.a.rate or 0.0)


def _scored_lower(case: CaseChange) -> bool:
    return (case.a.score or 0.0) - (case.b.score or 0.0) >= LEAST_CHANGE


def _surely_fewer(comparison: Comparison, both: Sequence[CaseChange]) -> bool:
    """Whether the two-sided test over all cases is significant, and its direction plainly down."""
    verdicts = comparison.verdicts
    return (
        verdicts.test is not None
        and verdicts.test.p <= 1 - comparison.confidence + 1e-9
        and verdicts.worse > verdicts.better
        and fmean(_rise(case) for case in both) < 0
    )


def _of_them_failed(cases: Sequence[CaseChange]) -> str:
    failed = sum(case.b.failed > 0 for case in cases)
    return f" ({failed} failed)" if failed else ""


def _count(cases: Sequence[CaseChange]) -> str:
    return f"{len(cases)} case{'s' if len(cases) != 1 else ''}"


def _trials(count: int) -> str:
    return f"{count} trial{'s' if count != 1 else ''}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _chance(cases: int) -> str:
    return "may be chance" if cases == 1 else "each may be chance"


def _named(comparison: Comparison, cases: Sequence[CaseChange]) -> str:
    several = len({case.key.engine for case in comparison.counted}) > 1
    return listed_ids(
        [
            f"{case.key.case_id} on {one_line(case.key.engine)}" if several else case.key.case_id
            for case in cases
        ],
        _MOST_NAMED,
    )
