"""What got worse in the newest of several nights, at one error rate for all that is said of it.

Pure statistics (`docs/statistics.md`): a night is any run that was read, and nothing is read here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from statistics import fmean, median, stdev
from typing import Literal, NamedTuple

from skillup.dataclass import frozen
from skillup.history.counts import GoodTrials, Measured, Worse
from skillup.history.runs import (
    ABSENT,
    VERDICTS,
    WITH_SKILL,
    CaseKey,
    CaseTally,
    RunOutcomes,
    by_case,
    together,
)
from skillup.schema.line import grouped
from skillup.stats import rank_sum_upper, t_upper

Kind = Literal["fewer_passes", "slower", "dearer", "more_errors"]
CONFIDENCE = 0.99
"""In a night in which nothing changed, the chance that no statement is significant."""
_SHARES: Mapping[Kind, tuple[float, float]] = {
    "fewer_passes": (0.55, 0.2),
    "more_errors": (0.055, 0.045),
    "slower": (0.045, 0.03),
    "dearer": (0.045, 0.03),
}
"""By kind, what single cases and suites may take of the error rate."""
_THREEFOLD = 3
"""What a p counts for with `--until-decided` (`docs/statistics.md`)."""
_LEAST_MS = 50
"""A shorter delay is none, however many times longer than before."""


@frozen
class Night:
    """One run, as it is compared."""

    run_id: str
    tallies: Mapping[CaseKey, CaseTally]
    """Of the cases with the skill; of all, if there are none with it."""
    until_decided: bool = False

    @staticmethod
    def of(run: RunOutcomes, quarantined: Collection[str] = ()) -> Night:
        every = by_case(run.trials)
        own = {key: tally for key, tally in every.items() if key.variant == WITH_SKILL} or every
        kept = {key: own[key] for key in own if "/".join(key[:2]) not in quarantined}
        return Night(run.run_id, kept, run.until_decided)


@frozen
class Statement:
    """That a case, or all cases of a suite together, got worse."""

    kind: Kind
    suite: str
    key: CaseKey | None  # None: all cases of the suite together
    p: float
    """The chance of a statement as strong as this, of this or any other case, in a night in which
    nothing changed; of all kinds together."""
    significant: bool  # Else `fewer_passes` only: as it was observed
    before: Measured
    after: Measured
    nights: int = 1  # The newest nights, tonight included, that `after` is of
    since: str | None = None
    """The run with which it got worse; None: tonight."""
    run_id: str = ""  # The night that said so first: tonight, or an earlier one of what stays red

    @property
    def increase(self) -> float | None:
        """0.2: by 20 % more; None: from 0."""
        return self.after.value / self.before.value - 1 if self.before.value else None


@frozen
class Assessment:
    """What is said of the newest night."""

    statements: tuple[Statement, ...] = ()
    """Significant ones first, then by p."""
    recovered: Mapping[CaseKey, str] = field(default_factory=dict)
    """Cases that had been red until tonight, and since which run."""
    steady: Mapping[CaseKey, tuple[CaseTally, ...]] = field(default_factory=dict)
    """Of each of tonight's cases, the earlier nights that are its reference."""

    @property
    def regressed(self) -> list[Statement]:
        return [one for one in self.statements if one.significant]

    @property
    def red(self) -> dict[CaseKey, Statement]:
        """The cases that are red: those that got worse tonight, and those that stay so."""
        return {one.key: one for one in self.regressed if one.key and one.kind == "fewer_passes"}

    def reference(self, key: CaseKey) -> CaseTally:
        """The earlier nights that tonight is compared with, as one; ABSENT for a new case."""
        return together(nights) if (nights := self.steady.get(key)) else ABSENT


class _Replay:
    """All nights up to the newest that was taken."""

    def __init__(
        self, nights: Sequence[Night], confidence: float, fixed: Collection[CaseKey]
    ) -> None:
        self.nights = nights
        times = _THREEFOLD if any(night.until_decided for night in nights) else 1
        level = 1 - confidence
        alphas = {kind: (level * one, level * all_) for kind, (one, all_) in _SHARES.items()}
        self.passes = GoodTrials(alphas["fewer_passes"], times, fixed)
        self.errors = GoodTrials(alphas["more_errors"], times, fixed)
        self.times = Levels(alphas["slower"], _LEAST_MS)
        self.costs = Levels(alphas["dearer"], 0)

    def take(self, night: Night, anew: Sequence[CaseKey]) -> None:
        """`anew`: cases whose references begin with this night."""
        for tracked in (self.passes, self.errors, self.times, self.costs):
            tracked.accept(anew)
        passed, sound, times, costs = {}, {}, {}, {}
        for key, own in night.tallies.items():
            if own.judged:
                passed[key] = own.passed, own.judged
                judged = [trial for trial in own.trials if trial.status in VERDICTS]
                if took := [float(one.duration_ms) for one in judged if one.duration_ms > 0]:
                    times[key] = took
                if cost := [one.cost_usd for one in judged if one.cost_usd]:
                    costs[key] = cost
            if own.judged or own.errors:
                sound[key] = own.judged, own.judged + own.errors
        self.passes.take(passed, last=night is self.nights[-1])
        self.errors.take(sound, last=False)
        self.times.take(times)
        self.costs.take(costs)

    def statements(self) -> Iterator[Statement]:
        """Of all cases, whether or not they were run in the newest night."""
        for case, worse in self.passes.unsure.items():
            yield self._statement("fewer_passes", case, worse, significant=False)
        for key, worse in self.errors.worse():
            before, after = (
                Measured(1 - one.value, one.trials, one.trials - one.count) for one in worse[1:3]
            )
            yield self._statement("more_errors", key, worse._replace(before=before, after=after))
        kinds: dict[Kind, GoodTrials | Levels] = {
            "fewer_passes": self.passes,
            "slower": self.times,
            "dearer": self.costs,
        }
        for kind, tracked in kinds.items():
            for key, worse in tracked.worse():
                yield self._statement(kind, key, worse)

    def _statement(
        self, kind: Kind, key: CaseKey | str, worse: Worse, *, significant: bool = True
    ) -> Statement:
        return Statement(
            kind=kind,
            suite=key if isinstance(key, str) else key.suite,
            key=None if isinstance(key, str) else key,
            p=min(1.0, worse.p / _SHARES[kind][isinstance(key, str)]),
            significant=significant,
            before=worse.before,
            after=worse.after,
            nights=len(self.nights) - worse.since,
            since=self.nights[worse.since].run_id if worse.since < len(self.nights) - 1 else None,
            run_id=self.nights[worse.said].run_id,
        )


def assess(
    nights: Sequence[Night],
    accepted: Mapping[CaseKey, str] | None = None,
    confidence: float = CONFIDENCE,
    fixed: Collection[CaseKey] = (),
) -> Assessment:
    """What got worse in the last of `nights` (the oldest first); at least one.

    `accepted`: by case, the run with which its reference begins anew. `fixed`: cases whose pass
    rate and errors are compared with the night alone with which their reference begins.
    """
    replay, tonight = _Replay(nights, confidence, fixed), nights[-1].tallies
    for night in nights:
        anew = [key for key, run_id in (accepted or {}).items() if run_id == night.run_id]
        replay.take(night, anew)
    suites = {key.suite for key in tonight}
    found = [
        one
        for one in replay.statements()
        if (one.suite in suites if one.key is None else one.key in tonight)
    ]
    found.sort(key=lambda one: (not one.significant, one.p))
    cases = replay.passes.cases
    steady = {
        key: tuple(
            own
            for n in cases[key].steady_nights(len(nights) - 1)
            if (own := nights[n].tallies.get(key))
        )
        for key in tonight
        if key in cases
    }
    recovered = {key: nights[worse.since].run_id for key, worse in replay.passes.recovered.items()}
    return Assessment(tuple(found), recovered, steady)


_TELL_A_HALF: Mapping[int, int] = {1: 0, 2: 95}


def detects_a_half(trials: int, cases: int) -> bool:
    """Whether a case that always passed in 20 nights and passes half as often from then on has
    regressed after two nights; in a suite of `cases` that all always passed.

    Simulated once, and again by the tests: with 3 trials and more in any suite (of 1,000 cases).
    """
    return cases <= _TELL_A_HALF.get(trials, cases)


# What trials take (time, money), night by night: which cases, or suites, take surely more. Of
# logarithms: what all cases of a suite have in common in a night is the suite's level; a case's
# level is what is left of its own.

LEAST_INCREASE = math.log(1.2)
"""What is less is not said."""
_LEAST_OF_FEW = math.log(1.5)
"""The same while there are too few nights to tell how much nights differ."""
_ENOUGH = 5
"""Nights from which that can be told."""
_LEAST_DEVIATION = 0.05
_REFERENCE = 20
_WINDOWS = (1, 2, 4)
_MOST = 20
"""Trials of a night that are ranked: with more, some at equal distances."""
_FEWEST_CASES = 3
"""Of a suite, so that a case's own level can be told from that of all."""


class Level(NamedTuple):
    """Of a night: the median of its trials' logarithms, and at most so many of these."""

    night: int
    middle: float
    values: tuple[float, ...]
    trials: int

    @property
    def mean(self) -> float:
        return fmean(self.values or [self.middle])


def _higher(before: Sequence[float], after: Sequence[float]) -> float:
    """p, by Student's t."""
    error = max(stdev(before), _LEAST_DEVIATION) * math.sqrt(1 / len(before) + 1 / len(after))
    return t_upper(max(0.0, fmean(after) - fmean(before)) / error, len(before) - 1)


def _level(night: int, values: Sequence[float], common: float) -> Level:
    some, n = sorted(values), len(values)
    if n > _MOST:
        some = [some[(2 * place + 1) * n // (2 * _MOST)] for place in range(_MOST)]
    return Level(night, median(values) - common, tuple(one - common for one in some), n)


class _Series:
    """The levels of a case or a suite: those of its reference, then those since it got worse."""

    def __init__(self) -> None:
        self.steady: list[Level] = []
        self.since: list[Level] = []
        self.worse: Worse | None = None
        self.usual = 0.0  # Before the newest night

    def add(self, level: Level) -> None:
        self.usual = self.middle() if self.steady else level.middle
        (self.since if self.worse else self.steady).append(level)
        if self.worse:
            limit = math.log(self.worse.before.value * self.worse.after.value) / 2
            if all(own.middle < limit for own in self.since[-2:]) and len(self.since) > 1:
                self.steady += self.since[-2:]
                self.since, self.worse = [], None

    def middle(self) -> float:
        return median(own.middle for own in self.steady[-_REFERENCE:])

    def test(self, tests: int, alpha: float, *, ranks: bool) -> None:
        """`tests`: how often a p counts; `ranks`: those of the trials' values have to tell, too."""
        if self.worse or self.steady[-1].middle < self.usual + LEAST_INCREASE:
            return
        for window in _WINDOWS:
            before, after = self.steady[:-window][-_REFERENCE:], self.steady[-window:]
            if self.worse or not before:
                return
            middles = [own.middle for own in before]
            middle = median(own.middle for own in after)
            few = len(before) < _ENOUGH
            least = _LEAST_OF_FEW if few else LEAST_INCREASE
            if middle <= max(middles) or middle < median(middles) + least or (few and not ranks):
                continue
            p = 0.0
            if not few:  # Medians of tied values are all or nothing: so are means tested
                p = _higher(middles, [own.middle for own in after])
                p = max(p, _higher([own.mean for own in before], [own.mean for own in after]))
            if ranks and p * tests * len(_WINDOWS) <= alpha:
                values = ([v for own in side for v in own.values] for side in (before, after))
                p = max(p, rank_sum_upper(*values))
            p *= tests * len(_WINDOWS)
            if p <= alpha:
                old = Measured(math.exp(median(middles)), sum(own.trials for own in before))
                new = Measured(math.exp(middle), sum(own.trials for own in after))
                self.worse = Worse(p, old, new, after[0].night, after[-1].night)
                del self.steady[-window:]
                self.since = list(after)


class Levels:
    """One quantity of all cases, as of the newest night that was taken."""

    def __init__(self, alphas: tuple[float, float], least: float) -> None:
        """`alphas`: of all single cases, and of all suites; an increase below `least` is none."""
        self.alphas, self.least = alphas, least
        self.nights = 0
        self.cases: dict[CaseKey, _Series] = {}
        self.suites: dict[str, _Series] = {}

    def take(self, values: Mapping[CaseKey, Sequence[float]]) -> None:
        """One more night: by case, what each of its trials took (> 0)."""
        by_suite = grouped(values, lambda key: key.suite)
        for suite, keys in by_suite.items():
            self._take(suite, {key: [math.log(one) for one in values[key]] for key in keys})
            self._test_suite(suite, len(by_suite))
            if len(keys) >= _FEWEST_CASES:
                for key in keys:
                    self.cases[key].test(len(values), self.alphas[0], ranks=True)
        self.nights += 1

    def accept(self, keys: Sequence[CaseKey]) -> None:
        """Their references begin with the next night; that of a suite, if it was all its cases."""
        for key in keys:
            self.cases.pop(key, None)
        left = {key.suite for key in self.cases}
        self.suites = {suite: own for suite, own in self.suites.items() if suite in left}

    def worse(self) -> Iterator[tuple[CaseKey | str, Worse]]:
        """Suites and cases that take more, since some night; of a suite, its median case."""
        for suite, series in self.suites.items():
            if own := series.worse:
                cases = (c for key, c in self.cases.items() if key.suite == suite and c.steady)
                usual = math.exp(median(case.middle() for case in cases)) / own.before.value
                before, after = (
                    Measured(side.value * usual, side.trials) for side in (own.before, own.after)
                )
                if after.value - before.value >= self.least:
                    yield suite, own._replace(before=before, after=after)
        for key, series in self.cases.items():
            if (own := series.worse) and own.after.value - own.before.value >= self.least:
                yield key, own

    def _take(self, suite: str, logs: Mapping[CaseKey, Sequence[float]]) -> None:
        known = {key: own for key in logs if (own := self.cases.get(key)) and own.steady}
        ratios = [median(logs[key]) - own.middle() for key, own in known.items()]
        common, trials = median(ratios) if ratios else 0.0, sum(map(len, logs.values()))
        level = Level(self.nights, common, tuple(ratios), trials)
        self.suites.setdefault(suite, _Series()).add(level)
        for key, values in logs.items():
            self.cases.setdefault(key, _Series()).add(_level(self.nights, values, common))

    def _test_suite(self, suite: str, suites: int) -> None:
        """With few nights: in most cases trials took far more than ever before, by a sign test."""
        series, alpha = self.suites[suite], self.alphas[1]
        series.test(suites, alpha, ranks=False)
        if not series.worse and 1 < len(series.steady) <= _ENOUGH:
            newest = series.steady[-1]
            n, more = len(newest.values), sum(one >= _LEAST_OF_FEW for one in newest.values)
            p = suites * sum(math.comb(n, k) for k in range(more, n + 1)) / 2**n
            if n and p <= alpha:
                series.since = [series.steady.pop()]
                before = Measured(1.0, sum(own.trials for own in series.steady))
                after, night = Measured(math.exp(newest.middle), newest.trials), newest.night
                series.worse = Worse(p, before, after, night, night)
