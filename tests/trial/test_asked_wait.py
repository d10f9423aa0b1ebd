"""How long a provider asks to wait, from the words of its error."""

from __future__ import annotations

import pytest

from skillup.schema.record import TurnError
from skillup.trial.asked_wait import asked_wait


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached for x. Please try again in 1.898s.", 1.898),
        ("try again in 20ms", 0.02),
        ("try again in 2 days 17 hours 14 minutes", 2 * 86400 + 17 * 3600 + 14 * 60),
        ("please wait for 30 seconds", 30),
        ("429, retry-after: 12", 12),
        ("try again later", None),
        ("You've hit your limit · resets 8pm", None),
    ],
)
def test_how_long_a_provider_asks_to_wait(message: str, seconds: float | None) -> None:
    found = asked_wait(TurnError(kind="rate_limit", message=message))
    assert found == (None if seconds is None else pytest.approx(seconds))
