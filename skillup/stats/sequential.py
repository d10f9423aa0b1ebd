"""The sequential test of `--until-decided`: is a pass rate surely above a threshold, or below it?

One may look after every trial and stop whenever one likes; the error rates hold all the same. The
mixture, its integral and the sources are in `docs/statistics.md`. With s passes and f failures, the
integral comes down to a short sum of positive terms:

    1/(f+1) · Σ (j = 0 … s)  s(s-1)…(s-j+1) / ((f+2)(f+3)…(f+1+j)) · ((1-θ)/θ)^j
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

ERROR_RATE = 0.05
"""The chance of a wrong `above`, and that of a wrong `below`, which are promised."""
DEFAULT_PASS_RATE = 0.8
"""What a case is compared with where neither `--pass-rate` nor the suite's gates say it."""

Side = Literal["above", "below", "undecided"]
_AT_THE_EXTREME = 0.5
_LARGEST_EXPONENT = 700.0


def decide(outcomes: Iterable[bool], threshold: float) -> tuple[Side, int]:
    """The test's verdict over `outcomes` (True: a pass), in the order of the trials; how many of
    them it took: a decided case stays decided. ValueError unless 0 < `threshold` < 1.
    """
    passes = failures = 0
    for passed in outcomes:
        passes, failures = passes + passed, failures + (not passed)
        side = side_of(passes, failures, threshold)
        if side != "undecided":
            return side, passes + failures
    return "undecided", passes + failures


def side_of(passes: int, failures: int, threshold: float) -> Side:
    """What so many outcomes say by themselves, if no fewer of them had said it before."""
    if not 0 < threshold < 1:
        raise ValueError(f"the threshold must be between 0 and 1, not {threshold}")
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
    extreme = 0.0 if failures else math.exp(min(-passes * math.log(threshold), _LARGEST_EXPONENT))
    return _AT_THE_EXTREME * extreme + (1 - _AT_THE_EXTREME) * uniform


def pass_rate_threshold(given: float | None, gate: float | None) -> float:
    """The threshold of a suite's cases: `--pass-rate`, else the suite's gate, else a default.

    A gate of 0 or 1 is no threshold: no rate is below the one, or above the other.
    """
    if given is not None:
        return given
    return gate if gate is not None and 0 < gate < 1 else DEFAULT_PASS_RATE
