"""The arithmetic of comparing runs, in pure functions; sources are in `docs/statistics.md`."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import sqrt
from operator import mul
from statistics import NormalDist, fmean, stdev
from typing import Literal, NamedTuple

_SAME = 1 + 1e-9
"""Probabilities that differ by less are equal: outcomes as likely as the one seen count with it."""


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float


class PassCounts(NamedTuple):
    """The verdicts of one case in two runs."""

    passed_a: int
    trials_a: int
    passed_b: int
    trials_b: int


def hypergeometric(counts: PassCounts) -> tuple[int, list[float]]:
    """The least possible number of passes in B, and the chance of it and of each number above, if
    nothing changed, given the passes K of both: C(n_b, x)·C(n_a, K-x)/C(n_a+n_b, K).
    """
    passed_a, trials_a, passed_b, trials_b = counts
    passes = passed_a + passed_b
    first, last = max(0, passes - trials_a), min(trials_b, passes)
    ways = _log_ways(trials_a + trials_b, passes)
    return first, [
        math.exp(_log_ways(trials_b, x) + _log_ways(trials_a, passes - x) - ways)
        for x in range(first, last + 1)
    ]


def _log_ways(of: int, chosen: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)


def stratified(cases: Iterable[PassCounts]) -> float:
    """Two-sided p over all cases: the chance of all sums of B's passes no likelier than the one
    seen. McNemar's test where each ran once in each run, Fisher's for a single case.
    """
    chances, seen = _sums(cases)
    return min(1.0, sum(chance for chance in chances if chance <= chances[seen] * _SAME))


def _sums(cases: Iterable[PassCounts]) -> tuple[list[float], int]:
    """The chance of each sum of B's passes, from the least possible, and the place of the seen."""
    chances, seen = [1.0], 0
    for counts in cases:
        first, own = hypergeometric(counts)
        if len(own) > 1:
            seen += counts.passed_b - first
            sums = [0.0] * (len(chances) + len(own) - 1)
            for shift, factor in enumerate(own):
                for index, chance in enumerate(chances, start=shift):
                    sums[index] += chance * factor
            chances = sums
    return chances, seen


def stratified_lower(cases: Sequence[PassCounts]) -> float:
    """One-sided p over all cases: the chance of no more passes in B than seen. Exact where it is
    small; from about 0.02 on, or with a variance above 60, by Edgeworth's approximation.
    """
    excess, variance, third = 0.5, 0.0, 0.0
    for passed_a, trials_a, passed_b, trials_b in cases:
        n, passes = trials_a + trials_b, passed_a + passed_b
        excess += passed_b - trials_b * passes / n
        own = trials_b * trials_a * passes * (n - passes) / (n * n * max(1, n - 1))
        variance += own
        third += own * (n - 2 * passes) * (n - 2 * trials_b) / (n * max(1, n - 2))
    if variance == 0:
        return 1.0
    z, normal = excess / sqrt(variance), NormalDist()
    if z > -2 or variance > 60:
        skew = third / (variance * sqrt(variance))
        p = normal.cdf(z) - normal.pdf(z) * skew * (z * z - 1) / 6
        return min(1.0, max(p, normal.cdf(z) / 10, 1e-300))  # Far out it may be less than nothing
    chances, seen = _sums(cases)
    return min(1.0, sum(chances[: seen + 1]))


def deflated(p: float, spread: float, degrees: int | None = None) -> float:
    """`p` where the variance is `spread` times that which the test assumes: Φ(Φ⁻¹(p)/√φ); by
    Student's t if the spread is of few `degrees` of freedom.
    """
    if spread == 1 or not 0 < p < 1:
        return p
    z = NormalDist().inv_cdf(p) / sqrt(spread)
    return t_upper(-z, degrees) if degrees and z < 0 else NormalDist().cdf(z)


def rank_sum_upper(before: Sequence[float], after: Sequence[float]) -> float:
    """One-sided p of the rank-sum test (Mann-Whitney), exact, that `after` is larger; ties count
    against it. The number of ways to have d pairs in the wrong order is the coefficient of q^d in
    the Gaussian binomial Π (1-q^(m+i)) / (1-q^i).
    """
    ordered = sorted(before)
    wrong = sum(len(ordered) - bisect_left(ordered, value) for value in after)
    if 2 * wrong >= len(before) * len(after):
        return 1.0
    ways = [1] + [0] * wrong
    for i in range(1, len(after) + 1):
        for d in range(wrong, len(before) + i - 1, -1):
            ways[d] -= ways[d - len(before) - i]
        for d in range(i, wrong + 1):
            ways[d] += ways[d - i]
    return sum(ways) / math.comb(len(before) + len(after), len(after))


# What a case's next trials come to, learnt from all cases of its suite (empirical Bayes).

_FAILURE_RATES = (
    *(0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25),
    *(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.998),
)
"""Which a case may have. None has less than the first: a case that always passed may yet fail."""
_LEFT = (0.1, 0.3, 0.5, 0.7, 0.9)
"""What is left of a pass rate that fell, each as likely as the next."""
_UNKNOWN = 2.0
"""Cases' worth of knowing nothing: all rates are as likely."""


@lru_cache(maxsize=1 << 12)
def _binomials(trials: int) -> list[tuple[list[float], list[float]]]:
    """For each failure rate, the chance of each number of passes as it is and after a fall."""
    ways = [math.comb(trials, x) for x in range(trials + 1)]

    def binomial(rate: float) -> list[float]:
        return [n * rate**x * (1 - rate) ** (trials - x) for x, n in enumerate(ways)]

    return [
        (
            binomial(1 - q),
            [fmean(own) for own in zip(*(binomial(left * (1 - q)) for left in _LEFT), strict=True)],
        )
        for q in _FAILURE_RATES
    ]


class PassRates:
    """How the pass rates of a suite's cases are spread, as the likeliest weights of a few rates."""

    def __init__(self, cases: Mapping[tuple[int, int], int]) -> None:
        """`cases`: how many had so many passes in so many trials."""
        rates = len(_FAILURE_RATES)
        known = [(n, _likelihoods(*counts)) for counts, n in cases.items() if counts[1]]
        self.weights = [1 / rates] * rates
        for _ in range(30):  # Expectation and maximization
            new = [_UNKNOWN / rates] * rates
            for n, likelihoods in known:
                joint = list(map(mul, self.weights, likelihoods))
                scale = n / sum(joint)
                new = [old + scale * one for old, one in zip(new, joint, strict=True)]
            self.weights = [one / sum(new) for one in new]

    def next_trials(self, passed: int, of: int, trials: int) -> tuple[list[float], list[float]]:
        """After `passed` of `of` trials, for each number of passes in the next, ascending: the log
        likelihood ratio of a fall, and the chance of so few if nothing changed.
        """
        joint = list(map(mul, self.weights, _likelihoods(passed, of)))
        total = sum(joint)
        steady, fallen = [0.0] * (trials + 1), [0.0] * (trials + 1)
        for weight, (own, lower) in zip(joint, _binomials(trials), strict=True):
            if weight > 1e-9 * total:
                share = weight / total
                for x in range(trials + 1):
                    steady[x] += share * own[x]
                    fallen[x] += share * lower[x]
        ratios = [
            math.log(b / max(a, 1e-300)) if b else -math.inf
            for a, b in zip(steady, fallen, strict=True)
        ]
        return ratios, list(accumulate(steady))


def _likelihoods(passed: int, of: int) -> list[float]:
    """Of each failure rate, against the likeliest."""
    logs = [passed * math.log(1 - q) + (of - passed) * math.log(q) for q in _FAILURE_RATES]
    return [math.exp(one - max(logs)) for one in logs]


# How sure pass rates, means and their differences are; what it means to try several times.


def percent(share: float, digits: int = 0) -> str:
    """``67%``, with at least `digits` digits; never 100% or 0% of what is only nearly so."""
    everything_or_nothing = min(abs(share), abs(1 - share)) < 1e-9
    for more in range(digits, max(digits, 1) + 1):
        shown = f"{share:.{more}%}"
        if everything_or_nothing or float(shown[:-1]) not in (0, 100):
            return shown
    return "> 99.9%" if share > 0.5 else "< 0.1%"


def wilson(passed: int, trials: int, confidence: float = 0.95) -> Interval:
    """The score interval of a proportion, of one trial at least."""
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    rate = passed / trials
    middle = rate + z2 / (2 * trials)
    half = sqrt(z2 * (rate * (1 - rate) / trials + z2 / (4 * trials**2)))
    scale = 1 + z2 / trials
    # At the ends the formula gives 0 and 1, but for rounding.
    low = 0.0 if passed == 0 else (middle - half) / scale
    high = 1.0 if passed == trials else (middle + half) / scale
    return Interval(low, high)


def at_each_k(passed: int, trials: int) -> Iterator[tuple[int, float, float]]:
    """k, pass@k and pass^k (one of k passes, all do) for each k: unbiased, as (c/n)^k is not."""
    ways = failures_only = passes_only = 1
    for k in range(1, trials + 1):
        # Each from the one before, in whole numbers: those of a thousand trials are very large.
        ways = ways * (trials - k + 1) // k
        failures_only = failures_only * (trials - passed - k + 1) // k
        passes_only = passes_only * (passed - k + 1) // k
        yield k, 1 - failures_only / ways, passes_only / ways


# Student's t distribution: how much wider an interval must be because there are few values.


def t_upper(t: float, degrees: int) -> float:
    """The chance that T >= t, for t >= 0."""
    return (1 - _t_between(t, degrees)) / 2


def _t_between(t: float, degrees: int) -> float:
    """The chance that |T| <= t, for at least one degree of freedom: a sum in θ = atan(t/√ν).

    Source: M. Abramowitz and I. A. Stegun (1964), Handbook of mathematical functions,
    26.7.3 (odd ν) and 26.7.4 (even ν).
    """
    angle = math.atan(t / sqrt(degrees))
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + odd, degrees - 1, 2):
        term *= math.cos(angle) ** 2 * (step - 1) / step
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def t_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| <= t) = confidence: 2.262 for 0.95 and 9 degrees of freedom."""
    low, high = 0.0, 1.0
    while _t_between(high, degrees) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _t_between(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return high


def interval_of_mean(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Where the mean of values like these surely lies, by Student's t; None where they are all the
    same: that says nothing of how such values differ.
    """
    if len(set(values)) < 2:
        return None
    n = len(values)
    half = t_quantile(confidence, n - 1) * stdev(values) / sqrt(n)
    return Interval(fmean(values) - half, fmean(values) + half)


def mean_difference(cases: Sequence[PassCounts]) -> Interval:
    """The 95 % interval of the mean over cases, at least one, of their pass rates' differences, by
    Newcombe's limits of each: what it leaves open is chance within the trials.
    """
    mean, below, above = 0.0, 0.0, 0.0
    for passed_a, trials_a, passed_b, trials_b in cases:
        before, after = wilson(passed_a, trials_a), wilson(passed_b, trials_b)
        a, b = passed_a / trials_a, passed_b / trials_b
        mean += b - a
        below += (b - after.low) ** 2 + (before.high - a) ** 2
        above += (after.high - b) ** 2 + (a - before.low) ** 2
    n = len(cases)
    return Interval(max(-1.0, (mean - sqrt(below)) / n), min(1.0, (mean + sqrt(above)) / n))


def interval_over_cases(cases: Sequence[tuple[int, int]]) -> Interval | None:
    """Of the pass rate, at 95 %; `cases`: passes and verdicts of each, at least one. With one
    verdict for each it is Wilson's. Five trials of one case are not five cases: with more, it is
    widened by how the cases' rates differ. None without any case.
    """
    if not cases:
        return None
    passed, trials = (sum(numbers) for numbers in zip(*cases, strict=True))
    within = wilson(passed, trials)
    if trials == len(cases):
        return within
    low, high = widened(within, [own / of for own, of in cases])
    return Interval(max(0.0, low), min(1.0, high))


def widened(within: Interval, values: Sequence[float]) -> Interval:
    """Each end the outer one of `within` and of the interval of the mean of `values`."""
    between = interval_of_mean(values) or within
    return Interval(min(within.low, between.low), max(within.high, between.high))


# The sequential test of `--until-decided`: one may look after every trial and stop whenever one
# likes; the error rates hold all the same. With s passes and f failures, the mixture's integral
# comes down to a short sum of positive terms:
#
#     1/(f+1) · Σ (j = 0 … s)  s(s-1)…(s-j+1) / ((f+2)(f+3)…(f+1+j)) · ((1-θ)/θ)^j

ERROR_RATE = 0.05
"""The chance of a wrong `above`, and that of a wrong `below`, which are promised."""
DEFAULT_PASS_RATE = 0.8
"""What a case is compared with where neither `--pass-rate` nor the suite's gates say it."""

Side = Literal["above", "below", "undecided"]
_AT_THE_EXTREME = 0.5


def side_of(passes: int, failures: int, threshold: float) -> Side:
    """What so many outcomes say by themselves, if no fewer of them had said it before."""
    if evidence_above(passes, failures, threshold) >= 1 / ERROR_RATE:
        return "above"
    if evidence_above(failures, passes, 1 - threshold) >= 1 / ERROR_RATE:
        return "below"
    return "undecided"


def evidence_above(passes: int, failures: int, threshold: float) -> float:
    """The mixture's likelihood against that of a pass rate of `threshold`; 1 without outcomes."""
    odds = (1 - threshold) / threshold
    term = total = 1.0
    for j in range(passes):
        term *= (passes - j) / (failures + 2 + j) * odds
        total += term
    uniform = total / (failures + 1)
    extreme = 0.0 if failures else threshold**-passes
    return _AT_THE_EXTREME * extreme + (1 - _AT_THE_EXTREME) * uniform


def pass_rate_threshold(given: float | None, gate: float | None) -> float:
    """The threshold of a suite's cases: `--pass-rate`, else the suite's gate, else a default.

    A gate of 0 or 1 is no threshold: no rate is below the one, or above the other.
    """
    if given is not None:
        return given
    return gate if gate is not None and 0 < gate < 1 else DEFAULT_PASS_RATE
