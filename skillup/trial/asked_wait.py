"""How long a provider that refuses asks to wait, as its error says it."""

from __future__ import annotations

import re

from skillup.schema.record import TurnError

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|hour|h|day)[a-z]*", re.IGNORECASE)
_ASKED = re.compile(
    r"(?:try again|retry|wait)\s+(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"retry[-_]after[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)\b", re.IGNORECASE)


def asked_wait(error: TurnError) -> float | None:
    """How many seconds the provider asks to wait for; None: it does not say."""
    found = _ASKED.search(error.message)
    if found:
        parts = _DURATION.findall(found[1])
        if parts:
            return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
    header = _HEADER.search(error.message) or _HEADER.search(error.evidence)
    return float(header[1]) if header else None
