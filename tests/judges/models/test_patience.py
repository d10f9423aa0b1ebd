"""How long a model that is out of breath is waited for."""

from __future__ import annotations

import pytest

from skillup.judges.models.patience import Patience

PATIENCE = Patience(attempts=5, first_wait=1.0, longest_wait=3.0, longest_asked_wait=60.0)


@pytest.mark.parametrize(("attempt", "longest"), [(2, 1.0), (3, 2.0), (4, 3.0), (5, 3.0)])
def test_waits_double_up_to_a_limit_and_differ(attempt: int, longest: float) -> None:
    waits = {PATIENCE.wait_before(attempt, None) for _ in range(50)}
    assert len(waits) > 1
    assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)


def test_after_the_last_attempt_there_is_none() -> None:
    assert PATIENCE.wait_before(6, None) is None
    assert PATIENCE.wait_before(6, 1.0) is None


def test_what_the_server_asks_for_is_waited_and_a_little_more() -> None:
    waits = [PATIENCE.wait_before(2, 20.0) for _ in range(50)]
    assert all(wait is not None and 20.0 < wait < 21.0 for wait in waits)


def test_who_asks_for_too_long_a_wait_is_not_asked_again() -> None:
    assert PATIENCE.wait_before(2, 60.0) is not None
    assert PATIENCE.wait_before(2, 61.0) is None
