"""The sequential test keeps its error rates, whenever one looks, and comes to an end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillup.stats import (
    ERROR_RATE,
    decide,
    evidence_above,
    pass_rate_threshold,
    side_of,
)

ROOT = Path(__file__).parents[2]
LONGEST = 150


@dataclass(frozen=True)
class Chances:
    """What becomes of a case, exactly: every sequence of outcomes, weighed by its chance."""

    above: float
    below: float
    mean_trials: float


def chances(rate: float, threshold: float, longest: int = LONGEST) -> Chances:
    """Of a case that passes with `rate`, looked at after every one of `longest` trials."""
    undecided = {(0, 0): 1.0}
    ends = {"above": 0.0, "below": 0.0}
    trials = 0.0
    for count in range(1, longest + 1):
        reached: dict[tuple[int, int], float] = {}
        for (passes, failures), chance in undecided.items():
            for passed, share in ((1, rate), (0, 1 - rate)):
                place = (passes + passed, failures + 1 - passed)
                reached[place] = reached.get(place, 0.0) + chance * share
        undecided = {}
        for place, chance in reached.items():
            side = side_of(*place, threshold)
            if side == "undecided":
                undecided[place] = chance
            else:
                ends[side] += chance
                trials += chance * count
    rest = sum(undecided.values())
    assert math.isclose(ends["above"] + ends["below"] + rest, 1.0)
    return Chances(ends["above"], ends["below"], trials + rest * longest)


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7, 0.78, 0.8, 0.85, 0.9, 0.92, 0.97, 0.99])
def test_the_chance_to_be_wrong_is_at_most_what_is_stated(rate: float, threshold: float) -> None:
    found = chances(rate, threshold)
    if rate <= threshold:
        assert found.above <= ERROR_RATE
    if rate >= threshold:
        assert found.below <= ERROR_RATE


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    ("passes", "failures"), [(0, 0), (1, 0), (0, 3), (7, 2), (20, 20), (60, 1)]
)
def test_the_evidence_is_the_mean_likelihood_ratio_over_its_mixture(
    passes: int, failures: int, threshold: float
) -> None:
    steps = 20_000
    width = (1 - threshold) / steps
    rates = [threshold + (step + 0.5) * width for step in range(steps)]
    at = threshold**passes * (1 - threshold) ** failures
    uniform = sum(p**passes * (1 - p) ** failures for p in rates) / steps
    expected = 0.5 * (failures == 0) / at + 0.5 * uniform / at
    assert evidence_above(passes, failures, threshold) == pytest.approx(expected, rel=1e-6)


def test_the_evidence_stays_finite_work_for_many_trials() -> None:
    assert evidence_above(100_000, 0, 0.5) > 1e100
    assert evidence_above(0, 100_000, 0.9) < 1
    assert side_of(9_500, 500, 0.8) == "above"
    assert side_of(500, 9_500, 0.8) == "below"


@pytest.mark.parametrize("threshold", [0.0, 1.0, -1.0])
def test_a_threshold_that_is_no_rate_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        decide([True], threshold)


@pytest.mark.parametrize(
    ("given", "gate", "wanted"),
    [(0.6, 0.9, 0.6), (None, 0.9, 0.9), (None, 1.0, 0.8), (None, 0.0, 0.8), (None, None, 0.8)],
)
def test_the_threshold_is_the_option_then_the_gate_then_a_default(
    given: float | None, gate: float | None, wanted: float
) -> None:
    assert pass_rate_threshold(given, gate) == wanted


def _documented_chances() -> list[list[str]]:
    """The rows of the table in `docs/trials.md`, without their percent signs."""
    page = (ROOT / "docs" / "trials.md").read_text("utf-8")
    table = page.split("| true pass rate |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" %") for cell in row.strip("|").split("|")] for row in table]


@pytest.mark.parametrize("row", _documented_chances(), ids=lambda row: row[0])
def test_the_documented_chances_are_right(row: list[str]) -> None:
    rate, above, below, trials = map(float, row)
    found = chances(rate / 100, 0.8, longest=60)
    assert found.above * 100 == pytest.approx(above, abs=0.51 if above > 5 else 0.051)
    assert found.below * 100 == pytest.approx(below, abs=0.51 if below > 5 else 0.051)
    assert found.mean_trials == pytest.approx(trials, abs=0.5)
