"""Tests and intervals: published values, brute force, and how often they are wrong."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from skillup.stats import (
    ERROR_RATE,
    PassCounts,
    PassRates,
    at_each_k,
    evidence_above,
    interval_of_mean,
    interval_over_cases,
    mean_difference,
    pass_rate_threshold,
    percent,
    rank_sum_upper,
    side_of,
    stratified,
    stratified_lower,
    t_quantile,
    wilson,
)

# Exact tests: published values, brute force, and how often they are wrong.

ONCE_WORSE, ONCE_BETTER = PassCounts(1, 1, 0, 1), PassCounts(0, 1, 1, 1)


@pytest.mark.parametrize(
    ("worse", "better", "p"), [(1, 9, 22 / 1024), (6, 16, 0.0525), (0, 5, 0.0625), (4, 4, 1.0)]
)
def test_with_one_trial_each_the_stratified_test_is_mcnemars(
    worse: int, better: int, p: float
) -> None:
    """Tables of the sign test, as in S. Siegel (1956), table D, doubled."""
    cases = [ONCE_WORSE] * worse + [ONCE_BETTER] * better + [PassCounts(1, 1, 1, 1)] * 7
    assert stratified(cases) == pytest.approx(p, abs=5e-5)


def test_the_stratified_test_counts_the_ways_to_deal_out_the_verdicts_of_each_case() -> None:
    cases = [PassCounts(3, 3, 1, 2), PassCounts(2, 3, 1, 3), PassCounts(1, 1, 0, 2)]
    sums = [0]
    for passed_a, trials_a, passed_b, trials_b in cases:
        verdicts = [1] * (passed_a + passed_b)
        verdicts += [0] * (trials_a + trials_b - len(verdicts))
        own = [sum(verdicts[i] for i in b) for b in combinations(range(len(verdicts)), trials_b)]
        sums = [total + one for total in sums for one in own]
    chances = {total: sums.count(total) / len(sums) for total in sums}
    seen = sum(case.passed_b for case in cases)
    expected = sum(c for c in chances.values() if c <= chances[seen] + 1e-12)
    assert stratified(cases) == pytest.approx(expected)


def test_with_one_case_the_stratified_test_is_fishers_and_one_sided_the_tail_of_it() -> None:
    """The tea tasting, 34 and 17 in 70; and as the exact sum where the normal distribution is."""
    assert stratified([PassCounts(3, 4, 1, 4)]) == pytest.approx(34 / 70)
    assert stratified_lower([PassCounts(3, 4, 1, 4)]) == pytest.approx(17 / 70, abs=0.02)
    assert stratified_lower([PassCounts(10, 10, 2, 10)]) == pytest.approx(0.000357, rel=0.01)
    assert stratified_lower([ONCE_WORSE] * 9 + [ONCE_BETTER]) == pytest.approx(11 / 1024)
    assert stratified_lower([ONCE_BETTER] * 9) > 0.99
    assert stratified_lower([PassCounts(1, 1, 1, 1)]) == 1


@pytest.mark.parametrize(
    ("before", "after"), [([3, 1, 2], [5, 4]), ([1, 5, 6, 2], [3, 9, 7]), ([1, 1, 2], [1, 2])]
)
def test_the_rank_sum_test_counts_the_ways_to_deal_out_the_ranks(
    before: list[float], after: list[float]
) -> None:
    def wrong(first: list[float], second: list[float]) -> int:
        return sum(a >= b for a in first for b in second)

    ranks = range(len(before) + len(after))
    deals = [
        wrong([r for r in ranks if r not in own], list(own))
        for own in combinations(ranks, len(after))
    ]
    seen = wrong(before, after)
    expected = sum(deal <= seen for deal in deals) / len(deals)
    if 2 * seen >= len(before) * len(after):
        expected = 1
    assert rank_sum_upper(before, after) == pytest.approx(expected)


def test_what_a_case_does_next_is_learnt_from_the_others() -> None:
    """Two failures of three after 60 passes: told in a suite of which most cases never fail, and
    nothing special where all fail at times.
    """
    steady, shaky = PassRates({(60, 60): 95, (50, 60): 5}), PassRates({(57, 60): 80, (60, 60): 20})
    assert steady.next_trials(60, 60, 3)[1][1] < 1e-4
    assert shaky.next_trials(60, 60, 3)[1][1] > 3e-4
    for rates in (steady, shaky):
        ratios, chances = rates.next_trials(60, 60, 3)
        assert chances[-1] == pytest.approx(1)
        assert ratios == sorted(ratios, reverse=True)


# Intervals of pass rates, and pass@k: published values, brute force, coverage.


@pytest.mark.parametrize("digits", [0, 1])
def test_only_everything_reads_as_everything_and_only_nothing_as_nothing(digits: int) -> None:
    """V22: 299 of 300 are not 100 %, and 1 of 300 is not 0 %."""
    for held in (1, 3, 100, 201, 300, 2000, 100_000):
        for passed in {0, 1, held // 2, held - 1, held}:
            shown = percent(passed / held, digits)
            assert (float(shown[:-1].strip("<> ")) == 100) == (passed == held), shown
            assert (float(shown[:-1].strip("<> ")) == 0) == (passed == 0), shown
    assert (percent(2 / 3), percent(2 / 3, 1), percent(299 / 300)) == ("67%", "66.7%", "99.7%")
    assert percent(sum([0.1] * 10)) == "100%"


@pytest.mark.parametrize(
    ("passed", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_values_of_newcombes_table(
    passed: int, trials: int, low: float, high: float
) -> None:
    """R. G. Newcombe (1998), Statistics in Medicine 17, table I, method 3."""
    assert wilson(passed, trials) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("passed", range(6))
def test_pass_at_k_and_pass_hat_k_count_the_choices_of_k_trials(passed: int) -> None:
    trials = [True] * passed + [False] * (5 - passed)
    told = list(at_each_k(passed, 5))
    assert [one[0] for one in told] == [1, 2, 3, 4, 5]
    for k, pass_at_k, pass_hat_k in told:
        choices = list(combinations(trials, k))
        assert pass_at_k == pytest.approx(sum(map(any, choices)) / len(choices))
        assert pass_hat_k == pytest.approx(sum(map(all, choices)) / len(choices))


def test_students_own_example() -> None:
    """Student (1908): ten patients slept 1.58 hours longer on average, s = 1.23 (n - 1)."""
    longer = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert interval_of_mean(longer) == pytest.approx((0.700, 2.460), abs=1e-3)
    assert interval_of_mean([0.5]) is None
    assert interval_of_mean([0.25] * 4) is None


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [  # Newcombe (1998), table II, method 10: first - second
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_intervals_of_differences_are_those_of_the_paper(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    assert mean_difference([PassCounts(*second, *first)]) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("cases", [[(1, 1), (0, 1), (1, 1)], [(3, 4)], [(2, 4), (1, 2), (5, 10)]])
def test_where_cases_do_not_differ_it_is_wilsons(cases: list[tuple[int, int]]) -> None:
    passed, held = (sum(numbers) for numbers in zip(*cases, strict=True))
    assert interval_over_cases(cases) == wilson(passed, held)


@pytest.mark.slow
def test_it_covers_the_true_rate_where_cases_differ_as_trials_alone_would_not() -> None:
    """Cases pass with rates between 0 and 1, ten trials each; the mean of the rates is 0.5."""
    lots = random.Random(1)
    covered = by_trials = 0
    for _ in range(200):
        rates = [lots.random() for _ in range(15)]
        cases = [(sum(lots.random() < rate for _ in range(10)), 10) for rate in rates]
        found = interval_over_cases(cases)
        assert found is not None
        alone = wilson(sum(passed for passed, _ in cases), 150)
        covered += found.low <= 0.5 <= found.high
        by_trials += alone.low <= 0.5 <= alone.high
    assert covered / 200 >= 0.92
    assert by_trials / 200 < 0.85


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (30, 2.042), (120, 1.980), (500, 1.965)],
)
def test_the_quantiles_of_the_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(quantile, abs=6e-4)


# The sequential test keeps its error rates, whenever one looks, and comes to an end.


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
    assert evidence_above(0, 100_000, 0.9) < 1
    assert side_of(9_500, 500, 0.8) == "above"
    assert side_of(500, 9_500, 0.8) == "below"


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
