"""How sure a pass rate is, and what it means to try several times."""

from __future__ import annotations

from math import comb, sqrt
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float


def wilson(passed: int, trials: int, confidence: float = 0.95) -> Interval:
    """The score interval of a proportion: the rates that `passed` of `trials` does not rule out.

    With p = passed/trials, n = trials and z the normal quantile of (1 + confidence)/2:
    (p + z²/2n ± z·√(p(1-p)/n + z²/4n²)) / (1 + z²/n).

    Source: E. B. Wilson (1927), Probable inference, the law of succession, and statistical
    inference, JASA 22; recommended for small n by L. D. Brown, T. T. Cai and A. DasGupta (2001),
    Statistical Science 16(2). Raises ValueError unless 0 <= passed <= trials, trials > 0 and
    0 < confidence < 1.
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


def pass_at_k(passed: int, trials: int, k: int) -> float:
    """pass@k: the chance that at least one of `k` trials passes.

    The share of all choices of k among the trials held that have a pass in them:
    1 - C(n-c, k)/C(n, k). It is unbiased, which 1 - (1 - c/n)^k is not.

    Source: M. Chen et al. (2021), Evaluating large language models trained on code,
    arXiv:2107.03374, §2.1. Raises ValueError unless 1 <= k <= trials and 0 <= passed <= trials.
    """
    _check(passed, trials, k)
    return 1 - comb(trials - passed, k) / comb(trials, k)


def pass_hat_k(passed: int, trials: int, k: int) -> float:
    """pass^k: the chance that all of `k` trials pass.

    The share of all choices of k among the trials held that are passes throughout:
    C(c, k)/C(n, k); unbiased, which (c/n)^k is not.

    Source: S. Yao et al. (2024), τ-bench, arXiv:2406.12045. Raises ValueError as
    :func:`pass_at_k`.
    """
    _check(passed, trials, k)
    return comb(passed, k) / comb(trials, k)


def _check(passed: int, trials: int, k: int) -> None:
    if not 0 <= passed <= trials:
        raise ValueError(f"{passed} of {trials} is no proportion")
    if not 1 <= k <= trials:
        raise ValueError(f"k = {k} cannot be told from {trials} trials")
