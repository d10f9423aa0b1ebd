"""How sure a pass rate is, and what it means to try several times."""

from __future__ import annotations

from collections.abc import Iterator
from math import atan, cos, pi, sin, sqrt
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float


def percent(share: float, digits: int = 0) -> str:
    """``67%``, with at least `digits` digits; never 100% or 0% of what is only nearly so."""
    everything_or_nothing = min(abs(share), abs(1 - share)) < 1e-9
    for more in range(digits, max(digits, 1) + 1):
        shown = f"{share:.{more}%}"
        if everything_or_nothing or float(shown[:-1]) not in (0, 100):
            return shown
    return "> 99.9%" if share > 0.5 else "< 0.1%"


def wilson(passed: int, trials: int, confidence: float = 0.95) -> Interval:
    """The score interval of a proportion: the rates that `passed` of `trials` does not rule out.

    With p = passed/trials, n = trials and z the normal quantile of (1 + confidence)/2:
    (p + z²/2n ± z·√(p(1-p)/n + z²/4n²)) / (1 + z²/n).

    Raises ValueError unless 0 <= passed <= trials and trials > 0.
    """
    if not 0 <= passed <= trials or trials == 0:
        raise ValueError(f"{passed} of {trials} is no proportion")
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
    """k, pass@k and pass^k for each k up to `trials`: the chance that one of k passes, that all do.

    They are the shares of all choices of k among the n trials, c of which passed, that have a
    pass in them, 1 - C(n-c, k)/C(n, k), or nothing but passes, C(c, k)/C(n, k). Both are unbiased,
    which 1 - (1 - c/n)^k and (c/n)^k are not.

    Raises ValueError unless 0 <= passed <= trials.
    """
    if not 0 <= passed <= trials:
        raise ValueError(f"{passed} of {trials} is no proportion")
    ways = failures_only = passes_only = 1
    for k in range(1, trials + 1):
        # Each from the one before, in whole numbers: those of a thousand trials are very large.
        ways = ways * (trials - k + 1) // k
        failures_only = failures_only * (trials - passed - k + 1) // k
        passes_only = passes_only * (passed - k + 1) // k
        yield k, 1 - failures_only / ways, passes_only / ways


# Student's t distribution: how much wider an interval must be because there are few values.

_NORMAL_FROM = 400
"""Degrees of freedom from which the normal quantile is right to 1 % up to a confidence of 0.999."""


def t_between(t: float, degrees: int) -> float:
    """The chance that |T| <= t for a whole number of degrees of freedom.

    A finite sum in θ = atan(t/√ν), one form for odd and one for even ν.
    Source: M. Abramowitz and I. A. Stegun (1964), Handbook of mathematical functions,
    26.7.3 and 26.7.4. Raises ValueError if there are no degrees of freedom.
    """
    if degrees < 1:
        raise ValueError(f"{degrees} degrees of freedom")
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + odd, degrees - 1, 2):
        term *= cos(angle) ** 2 * (step - 1) / step
        total += term
    if odd:
        return 2 / pi * (angle + sin(angle) * total)
    return sin(angle) * total


def t_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| <= t) = confidence: 2.262 for 0.95 and 9 degrees of freedom."""
    if degrees >= _NORMAL_FROM:
        return NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 1.0
    while t_between(high, degrees) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if t_between(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return high
