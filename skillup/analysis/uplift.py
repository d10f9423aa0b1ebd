"""What the skill adds: the trials of each case with it, against those without.

That a skill is used cannot be without it: checks of that are no gain (`Grade.status_apart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from skillup.history.runs import VERDICTS, WITH_SKILL, CaseKey
from skillup.schema.grade import BASELINE, Grade, TurnGrade
from skillup.schema.result import Difference, Rate, Uplift
from skillup.stats.exact import PassCounts, stratified
from skillup.stats.paired import interval_of_mean, mean_difference, widened
from skillup.stats.proportions import Interval, wilson


def rate_of(passed: int, judged: int) -> Rate:
    """`passed` of `judged`, with Wilson's interval; nothing but the counts if `judged` is 0."""
    if not judged:
        return Rate(passed=0, judged=0, rate=None, low=None, high=None)
    low, high = wilson(passed, judged)
    return Rate(passed=passed, judged=judged, rate=passed / judged, low=low, high=high)


def mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def tokens_of(grade: Grade) -> int | None:
    """Input and output; None: the engine did not report both."""
    usage = grade.usage or {}
    sent, answered = usage.get("input_tokens"), usage.get("output_tokens")
    return None if sent is None or answered is None else int(sent + answered)


def turns_of(grade: Grade) -> list[TurnGrade]:
    """Those whose message was sent."""
    return [turn for turn in grade.turns if turn.status not in ("skipped", "error")]


class _Pair(NamedTuple):
    """One case on one engine: its verdicts in both variants."""

    case_id: str
    without: list[Grade]
    with_skill: list[Grade]

    @property
    def counts(self) -> PassCounts:
        """Without, then with the skill, apart from whether it was used."""
        a, b = (
            [trial.status_apart or trial.status for trial in side]
            for side in (self.without, self.with_skill)
        )
        a, b = ([status for status in side if status in VERDICTS] for side in (a, b))
        return PassCounts(a.count("PASS"), len(a), b.count("PASS"), len(b))


def uplifts(groups: Mapping[CaseKey, Sequence[Grade]]) -> list[Uplift]:
    """Of each suite and engine, then of its cases; empty if nothing was run without the skill."""
    compared = {(key.suite, key.engine) for key in groups if key.variant == BASELINE}
    pairs: dict[tuple[str, str], list[_Pair]] = {}
    for key in dict.fromkeys(key._replace(variant=WITH_SKILL) for key in groups):
        if (key.suite, key.engine) in compared:
            without, own = (
                [t for t in groups.get(key._replace(variant=v), ()) if t.status in VERDICTS]
                for v in (BASELINE, WITH_SKILL)
            )
            pairs.setdefault((key.suite, key.engine), []).append(_Pair(key.case_id, without, own))
    found: list[Uplift] = []
    for (suite, engine), of_suite in pairs.items():
        found.append(_uplift(suite, engine, None, of_suite))
        found += [_uplift(suite, engine, pair.case_id, [pair]) for pair in of_suite]
    return found


def _uplift(suite: str, engine: str, case_id: str | None, pairs: Sequence[_Pair]) -> Uplift:
    comparable = [pair for pair in pairs if pair.counts.trials_a and pair.counts.trials_b]
    ran = [pair for pair in pairs if pair.without and pair.with_skill]
    counts = [pair.counts for pair in comparable]
    interval = uplift_interval(counts)
    # A single case shows how many verdicts it has, even where they cannot be compared.
    shown = counts if case_id is None else [pair.counts for pair in pairs]
    passed_a, trials_a, passed_b, trials_b = map(
        sum, zip(PassCounts(0, 0, 0, 0), *shown, strict=True)
    )
    return Uplift(
        suite=suite,
        engine=engine,
        case_id=case_id,
        with_skill=rate_of(passed_b, trials_b),
        without_skill=rate_of(passed_a, trials_a),
        uplift=fmean(map(_difference, counts)) if counts else None,
        low=interval and interval.low,
        high=interval and interval.high,
        p=stratified(counts) if counts else None,
        cases=len(comparable),
        not_counted=[pair.case_id for pair in pairs if pair not in comparable],
        turns=_quantity(ran, lambda trial: len(turns_of(trial))),
        tokens=_quantity(ran, tokens_of),
        cost_usd=_quantity(ran, lambda trial: trial.cost_usd),
        duration_ms=_quantity(ran, lambda trial: trial.duration_ms),
    )


def _difference(counts: PassCounts) -> float:
    return counts.passed_b / counts.trials_b - counts.passed_a / counts.trials_a


def uplift_interval(counts: Sequence[PassCounts]) -> Interval | None:
    """As wide as what the cases say by how they differ, and as what their trials leave open.

    Cases that all differ alike say nothing of how sure that is: there the trials' own chance
    counts. Each alone may be too narrow, so each end is the outer one of both. None without any
    case.
    """
    if not counts:
        return None
    low, high = widened(mean_difference(counts), list(map(_difference, counts)))
    return Interval(max(-1.0, low), min(1.0, high))


def _quantity(pairs: Sequence[_Pair], of: Callable[[Grade], float | None]) -> Difference | None:
    """Means over cases of their trials' means; None: no case knows it in both variants."""
    sides = [(mean_known(map(of, p.with_skill)), mean_known(map(of, p.without))) for p in pairs]
    known = [(a, b) for a, b in sides if a is not None and b is not None]
    if not known:
        return None
    differences = [a - b for a, b in known]
    interval = interval_of_mean(differences)
    return Difference(
        with_skill=fmean(a for a, _ in known),
        without_skill=fmean(b for _, b in known),
        difference=fmean(differences),
        low=interval and interval.low,
        high=interval and interval.high,
        cases=len(known),
    )
