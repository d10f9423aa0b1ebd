"""How long a provider asks to wait, from the words of its error."""

from __future__ import annotations

import pytest

from skillup.engines.failures import Cli, parse_retry_after, turn_error


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
    assert parse_retry_after(message) == (None if seconds is None else pytest.approx(seconds))


def test_only_the_engines_own_error_says_how_long_to_wait() -> None:
    """F4: `Retry-After: 86400` in a tool's output, before a 429, is no wish of the provider's."""
    cli = Cli("claude", "", "")
    printed = "last lines of stdout:\nHTTP/1.1 429\nRetry-After: 86400\n"
    long = "429: slow down. " * 40 + "Please try again in 7s."

    assert turn_error(cli, "rate_limit", "429: no", printed).retry_after_seconds is None
    assert turn_error(cli, "rate_limit", long, printed).retry_after_seconds == 7
