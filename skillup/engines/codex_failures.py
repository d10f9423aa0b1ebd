"""What the texts of Codex mean: it reports failures in words only."""

from __future__ import annotations

import re

from skillup.engines.failures import Failure, kind_of_status
from skillup.schema.record import ErrorKind

_STATUS = re.compile(r"^(?:exceeded retry limit, last status:|unexpected status) (\d{3})\b")

# Beginnings of the messages of `turn.failed`, in codex 0.169.
_BY_BEGINNING: tuple[tuple[str, ErrorKind], ...] = (
    ("Missing environment variable", "auth"),
    ("Your access token could not be refreshed", "auth"),
    ("Not logged in", "auth"),
    ("You've hit your usage limit", "quota"),
    ("You've reached your usage limit", "quota"),
    ("You hit your spend cap", "quota"),
    ("You hit the spend cap", "quota"),
    ("Your workspace is out of credits", "quota"),
    ("Quota exceeded", "quota"),
    ("Rate limit reached", "rate_limit"),
    ("Selected model is at capacity", "overloaded"),
    # The text for the status 500.
    ("We're currently experiencing high demand", "overloaded"),
    ("Connection failed", "network"),
    ("stream disconnected before completion", "network"),
    ("error sending request", "network"),
    ("timeout waiting for", "network"),
    ("request timed out", "network"),
)

# What stderr says where no event came.
_STDERR: tuple[tuple[str, ErrorKind], ...] = (
    ("no rollout found for thread id", "session_lost"),
    ("already has an active writer", "session_mismatch"),
    ("Cannot change this thread's model provider", "engine_not_usable"),
    ("Not inside a trusted directory", "engine_not_usable"),
    ("Error loading config.toml", "engine_not_usable"),
    ("Error: Unknown feature flag", "engine_not_usable"),
    ("error: unexpected argument", "engine_not_usable"),
    ("error: invalid value", "engine_not_usable"),
    ("error: the following required argument", "engine_not_usable"),
)


def failure_of_text(message: str) -> Failure:
    """The failure that a message of `turn.failed` tells; what is not known is the model's."""
    status = _STATUS.match(message)
    if status:
        return Failure(kind_of_status(int(status[1])), message)
    plain = message.replace("’", "'")  # codex 0.169 writes typographic ones
    for beginning, kind in _BY_BEGINNING:
        if plain.startswith(beginning):
            return Failure(kind, message)
    return Failure("model_error", message)


def failure_of_stderr(stderr: str) -> Failure | None:
    """The failure that stderr tells; None for its ordinary warnings."""
    for line in reversed(stderr.splitlines()):
        for part, kind in _STDERR:
            if part in line:
                return Failure(kind, line.strip())
    return None
