"""Quantiles of Student's t against the printed tables."""

from __future__ import annotations

from math import pi

import pytest

from skillup.stats.proportions import t_between, t_quantile


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (30, 2.042), (120, 1.980), (500, 1.965)],
)
def test_the_quantiles_of_the_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(quantile, abs=6e-3 if degrees > 400 else 6e-4)


def test_a_quarter_of_cauchy_and_the_closed_form_of_two() -> None:
    assert t_between(1, 1) == pytest.approx(0.5)
    assert t_between(3, 2) == pytest.approx(3 / 11**0.5)
    assert t_between(1e9, 1) == pytest.approx(1, abs=1 / pi * 1e-8)


def test_no_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(ValueError, match="0 degrees"):
        t_between(1, 0)
