"""How many trials are good, night by night: which cases, or suites, surely have fewer of them.

Pure statistics (`docs/statistics.md`). A good trial is one that passed, or one without an error.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import starmap, takewhile
from typing import NamedTuple

from skillup.dataclass import frozen
from skillup.history.runs import CaseKey
from skillup.schema.line import grouped
from skillup.stats import PassCounts, PassRates, deflated, stratified_lower

REFERENCE = 40
"""Nights that a case's reference is of, at most: the newest steady ones."""
_WEIGHTS = {1: 0.5, 2: 0.25, 4: 0.25}
"""By how many of the newest nights are tested together: its share of the error rate."""
_SHORT = 4
"""Nights, at most, of a reference that many later nights together are tested against, too."""
_LATE = 1 / 11
"""What that takes of the error rate of single cases."""
_RECOVERED = math.log(100)
"""The log likelihood ratio of the earlier rate against the lower one that ends a regression."""
_ROSE = 4
"""By how many standard deviations a case has to be better for its reference to begin anew."""
_SUSPECT = -2.5
"""The same below which it is asked whether a case fell."""
_MOST = 200
"""Trials that the newest nights count for, at most."""
_ROUNDING = 1 + 1e-9


Trials = tuple[int, int]
"""How many were good, and how many there were."""


@frozen
class Measured:
    """One side of what got worse."""

    value: float
    """The share of trials that are good (as stated: that passed or had an error), or a trial's
    median in ms or USD."""
    trials: int
    count: int = 0  # That are good, or as stated


class Worse(NamedTuple):
    """That a case or a suite got worse; p counts for all tests of the night."""

    p: float
    before: Measured
    after: Measured
    since: int  # Numbers of nights: where it began, and which said so first
    said: int


def _sum(trials: Iterable[Trials]) -> Trials:
    good, total = (sum(own) for own in zip(*trials, strict=True))
    return good, total


def _measured(good: int, total: int) -> Measured:
    return Measured(good / total, total, good)


class _Case:
    """A case's nights: those of its reference, then those since it or its suite got worse."""

    def __init__(self, key: CaseKey, *, fixed: bool) -> None:
        """`fixed`: its first night is its reference, and no later one."""
        self.key = key
        self.most = 1 if fixed else sys.maxsize  # Nights, from the first, that can be its reference
        self.fell: Worse | None = None
        self._tests: dict[int, PassCounts] | None = None
        self.restart([])

    def restart(self, nights: list[tuple[int, int, int]]) -> None:
        """`nights`: which one, its good trials, all its trials. All are the reference."""
        self.nights: list[tuple[int, int, int]] = []
        self.good, self.total = [0], [0]  # Of the first 0, 1, 2, … nights
        for night in nights:
            self.add(*night)
        self.steady = len(nights)  # So many are, or may become, the reference

    def add(self, night: int, good: int, total: int) -> None:
        self.nights.append((night, good, total))
        self.good.append(self.good[-1] + good)
        self.total.append(self.total[-1] + total)
        self._tests = None

    def steady_nights(self, before: int) -> range:
        """Which nights are the reference, of those before one: also those without a verdict."""
        steady = min(self.steady, self.most)
        nights = [night for night, *_ in self.nights[:steady] if night < before]
        end = before if len(self.nights) == steady else self.nights[steady][0]
        return range(nights[-REFERENCE:][0], end) if nights else range(0)

    def between(self, first: int, end: int) -> Trials:
        """Of the nights at these places."""
        return self.good[end] - self.good[first], self.total[end] - self.total[first]

    def reference(self, window: int) -> Trials:
        """Of the nights that the newest `window` are compared with."""
        end = max(0, min(self.steady, self.most, len(self.nights) - window))
        return self.between(max(0, end - REFERENCE), end)

    def newest(self, window: int) -> Trials:
        return self.between(max(0, len(self.nights) - window), len(self.nights))

    @property
    def tests(self) -> dict[int, PassCounts]:
        """By window before which there is a reference: that, and the newest nights."""
        if self._tests is None:
            most = 1 << (len(self.nights) - 1).bit_length() >> 1
            late = [most] if len(self.nights) - most <= _SHORT else []
            self._tests = {
                window: PassCounts(*before, *_at_most(_MOST, self.newest(window)))
                for window in (*_WEIGHTS, *late)
                if len(self.nights) >= window and (before := self.reference(window))[1]
            }
        return self._tests

    def deviations(self) -> Iterable[float]:
        """Of the newest nights' good trials, by window; of none where nothing ever failed."""
        return map(_deviations, self.tests.values() if self.good[-1] < self.total[-1] else ())

    def rose(self) -> int:
        """Of how many of the newest nights the rate is surely higher; 0: of none."""
        found = zip(self.tests, self.deviations() if self.most > 1 else (), strict=False)
        return next((window for window, higher in found if higher > _ROSE), 0)


def _at_most(most: int, trials: Trials) -> Trials:
    good, total = trials
    return trials if total <= most else (round(good * most / total), most)


def _recovered(cases: Iterable[_Case], windows: Iterable[int]) -> int:
    """How many of the newest nights of all of them fit the reference far better than those since
    they fell; 0: none do.
    """
    for window in windows:
        ends = [(case, len(case.nights) - window) for case in cases]
        if known := [(case, end) for case, end in ends if end > case.steady]:
            good, total = _sum(case.newest(window) for case, _ in known)
            before = _sum(case.reference(0) for case, _ in known)
            fallen = _sum(case.between(case.steady, end) for case, end in known)
            high, low = ((own + 0.5) / (all_ + 1) for own, all_ in (before, fallen))
            ratio = good * math.log(high / low) + (total - good) * math.log((1 - high) / (1 - low))
            if low < high and ratio >= _RECOVERED:
                return window
    return 0


def _deviations(counts: PassCounts) -> float:
    """By how many standard deviations the passes of B are more than A's rate lets expect."""
    good_a, trials_a, good_b, trials_b = counts
    n, good = trials_a + trials_b, good_a + good_b
    variance = trials_b * trials_a * good * (n - good) / (n * n * max(1, n - 1))
    return (good_b - trials_b * good / n) / math.sqrt(variance) if variance else 0.0


class GoodTrials:
    """All cases, as of the newest night that was taken."""

    def __init__(
        self, alphas: tuple[float, float], times: int, fixed: Collection[CaseKey] = ()
    ) -> None:
        """`alphas`: the error rates of all single cases, and of all suites; a p counts `times`."""
        self.alphas, self.times, self.fixed = alphas, times, fixed
        self.taken = 0  # Nights
        self.cases: dict[CaseKey, _Case] = {}
        self.suites: dict[str, Worse] = {}  # That got worse
        self.apart: set[CaseKey] = set()  # Cases with a reference that began after their suite fell
        self.recovered: dict[CaseKey, Worse] = {}  # With the newest night
        self.unsure: dict[CaseKey, Worse] = {}  # With fewer good trials, which may be chance

    def take(self, counts: Mapping[CaseKey, Trials], *, last: bool) -> None:
        """One more night, by case. `last`: what is not sure is asked for, too."""
        self.recovered = {}
        for key, (good, total) in counts.items():
            if key not in self.cases:
                self.accept([key])
            case = self.cases[key]
            case.add(self.taken, good, total)
            if not case.fell and (key.suite not in self.suites or key in self.apart):
                case.steady = len(case.nights)
        self._end_regressions(counts)
        standing = (self.cases[key] for key in counts if not self.cases[key].fell)
        by_suite = grouped(standing, lambda case: case.key.suite)
        self._single(by_suite, last=last)
        if self.times == 1:
            for suite, cases in by_suite.items():
                self._suite(suite, cases, len(by_suite))
        for case in [case for cases in by_suite.values() for case in cases]:
            steady = not case.fell and case.steady == len(case.nights)
            if steady and (window := case.rose()):
                case.restart(case.nights[-window:])
        self.taken += 1

    def accept(self, keys: Iterable[CaseKey]) -> None:
        """Their references begin with the next night."""
        for key in keys:
            self.cases[key] = _Case(key, fixed=key in self.fixed)
            if key.suite in self.suites:
                self.apart.add(key)

    def worse(self) -> Iterator[tuple[CaseKey | str, Worse]]:
        """Suites and cases that are worse than they were, since some night."""
        yield from self.suites.items()
        yield from ((key, case.fell) for key, case in self.cases.items() if case.fell)

    def _worse(self, p: float, cases: Sequence[_Case], window: int) -> Worse:
        return Worse(
            p,
            _measured(*_sum(case.reference(window) for case in cases)),
            _measured(*_sum(case.newest(window) for case in cases)),
            since=min(case.nights[-window:][0][0] for case in cases),
            said=self.taken,
        )

    def _single(self, by_suite: Mapping[str, list[_Case]], *, last: bool) -> None:
        """Which single cases got worse: p is the chance that a fall explains any case so well."""
        self.unsure = {}
        limit = 0.0 if last else _SUSPECT
        every = [case for cases in by_suite.values() for case in cases]
        suspects = [case for case in every if any(lower < limit for lower in case.deviations())]
        if not suspects:
            return
        tests = {
            suite: _Test(cases, self._spread(cases)[0], self.times)
            for suite, cases in by_suite.items()
        }
        late = sum(len(case.tests) > len(_WEIGHTS) for case in every)
        for case in suspects:
            test = tests[case.key.suite]
            ratio, window, least = test.evidence(case)
            alone, longest = test.by_itself(case)
            if min(least, alone) > self.alphas[0] and not last:
                continue
            p = -math.expm1(sum(test.log_none_beyond(ratio) for test in tests.values()))
            p, window = min((p / (1 - _LATE), window), (alone * (late or 1) / _LATE, longest))
            worse = self._worse(p, [case], window)
            if p <= self.alphas[0] * _ROUNDING:
                case.fell = worse
                case.steady = min(case.steady, len(case.nights) - window)
            elif _deviations(case.tests[1]) < 0:
                self.unsure[case.key] = worse

    def _end_regressions(self, keys: Iterable[CaseKey]) -> None:
        for key in keys:
            case = self.cases[key]
            windows = range(1, len(case.nights) - case.steady)
            if case.fell and (window := _recovered([case], windows)):
                self.recovered[key] = case.fell
                case.fell = None
                case.restart(case.nights[: case.steady] + case.nights[-window:])
            elif case.fell:
                after = _measured(*case.between(case.steady, len(case.nights)))
                case.fell = case.fell._replace(after=after)

    def _spread(self, cases: Sequence[_Case]) -> tuple[float, tuple[float, int]]:
        """How many times the binomial variance a case's nights have, and all cases' together with
        the degrees of freedom; 1 unless it is clearly more.
        """
        squares, degrees = 0.0, 0
        nights: dict[int, list[float]] = {}
        for case in cases:
            end = max(0, min(case.steady, len(case.nights) - max(*_WEIGHTS, *case.tests)))
            steady = case.nights[max(0, end - REFERENCE) : end]
            good, total = case.between(end - len(steady), end)
            if 0 < good < total and len(steady) > 1:
                rate = good / total
                degrees += len(steady) - 1
                for night, own, trials in steady:
                    square = (own - trials * rate) ** 2
                    variance = trials * rate * (1 - rate)
                    squares += square / variance * (total - 1) / total
                    sums = nights.setdefault(night, [0.0, 0.0])
                    sums[0] += own - trials * rate
                    sums[1] += variance * (1 - trials / total)
        together = [excess * excess / variance for excess, variance in nights.values() if variance]
        return _clearly(squares, degrees), (_clearly(sum(together), len(together)), len(together))

    # All cases of a suite together

    def _suite(self, suite: str, cases: list[_Case], suites: int) -> None:
        """Cases that got worse by themselves do not count, unless they are most of all."""
        others = [case for case in cases if not case.fell]
        if suite in self.suites:
            worse = [case for case in others if len(case.nights) > case.steady]
            if window := _recovered(worse, _WEIGHTS) or not worse:
                fell = self.suites.pop(suite)
                # What passes so soon is how nights differ here, which is to be learnt.
                soon = self.taken - fell.since <= max(_WEIGHTS)
                first = fell.since if soon else self.taken + 1 - window
                for case in others:
                    newer = [night for night in case.nights[case.steady :] if night[0] >= first]
                    case.restart(case.nights[: case.steady] + newer)
            return
        cases = cases if 2 * len(others) < len(cases) else others
        if len(cases) < 2:
            return
        best, alpha = (2.0, 0), self.alphas[1] / suites
        for window, weight in _WEIGHTS.items():
            counts = [
                case.tests[window]
                for case in cases
                if case.good[-1] < case.total[-1] and window in case.tests
            ]
            best = min(best, (stratified_lower(counts) / weight, window))
        if best[0] > alpha:
            return
        p, window = best
        p = deflated(p * _WEIGHTS[window], *self._spread(cases)[1]) / _WEIGHTS[window]
        if p <= alpha:
            tested = [case for case in cases if window in case.tests]
            self.suites[suite] = self._worse(p * suites, tested, window)
            self.apart = {key for key in self.apart if key.suite != suite}
            first = min(case.nights[-window:][0][0] for case in tested)
            for case in cases:
                case.steady = min(case.steady, sum(night < first for night, *_ in case.nights))


def _clearly(squares: float, degrees: int) -> float:
    if degrees < 8:
        return 1.0
    return squares / degrees if squares > degrees + math.sqrt(2 * degrees) else 1.0


class _Test:
    """That one of a suite's cases fell."""

    def __init__(self, cases: Sequence[_Case], spread: float, times: int) -> None:
        self.spread, self.times = spread, times
        self.rates = PassRates(Counter(case.reference(1) for case in cases))
        self._next = cache(self._next_trials)
        self.same = Counter(
            tuple((own.passed_a, own.trials_a, own.trials_b) for own in case.tests.values())
            for case in cases
        )

    def _next_trials(self, passed: int, of: int, n: int) -> tuple[list[float], list[float]]:
        ratios, chances = self.rates.next_trials(passed, of, n)
        return (
            [ratio / self.spread for ratio in ratios],
            [self.times * deflated(chance, self.spread) for chance in chances],
        )

    def evidence(self, case: _Case) -> tuple[float, int, float]:
        """The largest log likelihood ratio of a fall, its window, its chance if nothing changed."""
        tests = [(w, own.passed_b, self._next(*own[:2], own[3])) for w, own in case.tests.items()]
        return max(
            (ratios[good], window, chances[good]) for window, good, (ratios, chances) in tests
        )

    def by_itself(self, case: _Case) -> tuple[float, int]:
        """The chance of so few since a short reference, whatever others' rates; the window."""
        window, (good_a, trials_a, good, trials) = max(case.tests.items())
        if len(case.tests) <= len(_WEIGHTS):
            return math.inf, window
        chance = PassRates({}).next_trials(good_a, trials_a, trials)[1][good]
        return self.times * deflated(chance, self.spread), window

    def log_none_beyond(self, ratio: float) -> float:
        """The log of the chance that, if nothing changed, no case would reach `ratio`."""
        log = 0.0
        for windows, n in self.same.items():
            chance = 0.0
            for ratios, chances in starmap(self._next, windows):
                beyond = list(takewhile(lambda own: own >= ratio - 1e-9, ratios))
                chance += chances[len(beyond) - 1] if beyond else 0.0
            log += n * math.log1p(-min(chance, 1 - 1e-12))
        return log
