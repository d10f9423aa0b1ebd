"""Student's t distribution: how much wider an interval must be because there are few values."""

from __future__ import annotations

from math import atan, cos, pi, sin, sqrt
from statistics import NormalDist

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
