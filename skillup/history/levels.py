"""What trials take (time, money), night by night: which cases, or suites, take surely more.

Pure statistics (`docs/statistics.md`) of logarithms. What all cases of a suite have in common in a
night is the suite's level; a case's level is what is left of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import NamedTuple

from skillup.history.counts import Worse
from skillup.history.runs import CaseKey
from skillup.stats import rank_sum_upper, t_upper

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
            limit = math.log(self.worse.before[0] * self.worse.after[0]) / 2
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
                old = math.exp(median(middles)), sum(own.trials for own in before), 0
                new = math.exp(middle), sum(own.trials for own in after), 0
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
        by_suite: dict[str, list[CaseKey]] = {}
        for key in values:
            by_suite.setdefault(key.suite, []).append(key)
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
                usual = math.exp(median(case.middle() for case in cases)) / own.before[0]
                before = (own.before[0] * usual, *own.before[1:])
                after = (own.after[0] * usual, *own.after[1:])
                if after[0] - before[0] >= self.least:
                    yield suite, own._replace(before=before, after=after)
        for key, series in self.cases.items():
            if (own := series.worse) and own.after[0] - own.before[0] >= self.least:
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
                before = (1.0, sum(own.trials for own in series.steady), 0)
                after, night = (math.exp(newest.middle), newest.trials, 0), newest.night
                series.worse = Worse(p, before, after, night, night)
