"""A binary search with noisy answers: at which position of a line did the pass rate fall?

Positions are 0 (good) to n (bad). Trials before position k pass at one rate, those from k on at a
lower one; or nothing changed. k is uniform on 1…n; the two rates are unknown, have Jeffreys' prior
Beta(½, ½), a fall of :data:`LEAST_FALL` at least, and are integrated out: a flaky case needs no
threshold, only more trials. Next is the position whose trial has the most information about k.

Sources: Horstein, Sequential transmission using noiseless feedback, IEEE Trans. Inf. Theory 9
(1963); Jedynak, Frazier, Sznitman, Twenty questions with noise, J. Appl. Probab. 49 (2012); Waeber,
Frazier, Henderson, Bisection search with noisy responses, SIAM J. Control Optim. 51 (2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import exp, log, log2, pi, sin

from skillup.frozen import frozen

LEAST_FALL = 0.15
_NO_CHANGE = 0.5  # A priori: with less, a flaky case is often said to be broken by an only commit
_RATES = [sin(pi * (point + 0.5) / 48) ** 2 for point in range(24)]  # Of equal Jeffreys weight
_LOGS = [(log(rate), log(1 - rate)) for rate in _RATES]
_LOWER = [sum(other <= rate - LEAST_FALL for other in _RATES) for rate in _RATES]
"""For each rate before the change, how many of the rates it may have fallen to."""


@frozen
class Posterior:
    """By k, what is known of it; k = 0: nothing changed. The `chances` sum to 1."""

    chances: tuple[float, ...]
    before: tuple[float, ...]  # The expected pass rate before k, if k it is
    after: tuple[float, ...]  # The same from k on

    @property
    def best(self) -> int:
        """The likeliest k."""
        return self.chances.index(max(self.chances))

    def is_sure(self, error: float) -> bool:
        """A chance of 1 − `error` / 2: it is right on average over all rates, and half of the error
        leaves room for those where it is not.
        """
        return max(self.chances) >= 1 - error / 2


def posterior(tallies: Sequence[tuple[int, int]]) -> Posterior:
    """`tallies`: passed and failed trials, by position from good to bad; two positions at least."""
    passed, failed = (sum(column) for column in zip(*tallies, strict=True))
    scale, likely = _likelihoods(passed, failed)
    weights, rate = [_NO_CHANGE * sum(likely) / len(_RATES)], _weighted(likely)[-1] / sum(likely)
    before, after, earlier = [rate], [rate], (0, 0)
    share = (1 - _NO_CHANGE) / (len(tallies) - 1) / sum(_LOWER)
    for tally in tallies[:-1]:
        earlier = earlier[0] + tally[0], earlier[1] + tally[1]
        high, good = _likelihoods(*earlier)
        low, bad = _likelihoods(passed - earlier[0], failed - earlier[1])
        # Sums over the pairs of rates: the lower ones up to the bound that the higher one sets.
        mass, moment = [0.0, *accumulate(bad)], _weighted(bad)
        pairs = [x * mass[n] for x, n in zip(good, _LOWER, strict=True)]
        weights.append(share * sum(pairs) * exp(high + low - scale))
        before.append(_weighted(pairs)[-1] / sum(pairs))
        moments = sum(x * moment[n] for x, n in zip(good, _LOWER, strict=True))
        after.append(moments / sum(pairs))
    whole = sum(weights)
    return Posterior(tuple(weight / whole for weight in weights), tuple(before), tuple(after))


def _likelihoods(passed: int, failed: int) -> tuple[float, list[float]]:
    """Of each rate, divided by the greatest; and the logarithm of that."""
    logs = [passed * a + failed * b for a, b in _LOGS]
    greatest = max(logs)
    return greatest, [exp(value - greatest) for value in logs]


def _weighted(likely: Sequence[float]) -> list[float]:
    """The sums of rate × likelihood over the first 0, 1, … rates."""
    return [0.0, *accumulate(p * x for p, x in zip(_RATES, likely, strict=True))]


def next_position(known: Posterior) -> int:
    """Where a trial tells most about k."""
    before, after = ([(p, _entropy(p)) for p in rates] for rates in (known.before, known.after))

    def information(position: int) -> float:
        passes = noise = 0.0
        for k, chance in enumerate(known.chances):
            rate, entropy = before[k] if position < k else after[k]
            passes, noise = passes + chance * rate, noise + chance * entropy
        return _entropy(passes) - noise

    return max(range(len(known.chances)), key=information)


def _entropy(rate: float) -> float:
    return -rate * log2(rate) - (1 - rate) * log2(1 - rate)
