"""How sure a pass rate is where cases were held several times."""

from __future__ import annotations

from random import Random

import pytest

from skillup.stats.paired import interval_over_cases
from skillup.stats.proportions import wilson


@pytest.mark.parametrize("cases", [[(1, 1), (0, 1), (1, 1)], [(3, 4)], [(2, 4), (1, 2), (5, 10)]])
def test_where_cases_do_not_differ_it_is_wilsons(cases: list[tuple[int, int]]) -> None:
    passed, held = (sum(numbers) for numbers in zip(*cases, strict=True))
    assert interval_over_cases(cases) == wilson(passed, held)


def test_without_a_case_there_is_none() -> None:
    assert interval_over_cases([]) is None


def test_it_covers_the_true_rate_where_cases_differ_as_trials_alone_would_not() -> None:
    """Cases pass with rates between 0 and 1, ten trials each; the mean of the rates is 0.5."""
    random = Random(1)
    covered = by_trials = 0
    for _ in range(200):
        rates = [random.random() for _ in range(15)]
        cases = [(sum(random.random() < rate for _ in range(10)), 10) for rate in rates]
        found = interval_over_cases(cases)
        assert found is not None
        alone = wilson(sum(passed for passed, _ in cases), 150)
        covered += found.low <= 0.5 <= found.high
        by_trials += alone.low <= 0.5 <= alone.high
    assert covered / 200 >= 0.92
    assert by_trials / 200 < 0.85
