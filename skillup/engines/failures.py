"""From what a CLI reports to a :class:`TurnError`: the kind, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from skillup.schema.record import ErrorKind, TurnError

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"(?i)(\d{1,9}(?:\.\d{1,9})?)\s*+(ms|sec|s|min|m|hour|h|day)[a-z]*")
_TRY_AGAIN = re.compile(
    r"(?:try again|retry|wait)\s+(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"retry[-_]after[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)\b", re.IGNORECASE)

_ADVICE: dict[ErrorKind, str] = {
    "auth": "{login}",
    "rate_limit": "wait, or run fewer trials at once (-j)",
    "quota": "waiting for minutes is no use; once there is allowance, resume the run",
    "overloaded": "try again later",
    "network": "check the connection and the profile's `base_url`",
    "model_error": "check the profile's `model`",
    "max_turns": "raise `max_turns` if the task needs more steps",
    "budget": "raise the budget in the profile's `args`",
    "engine_not_found": "{install}",
    "timeout": "raise `timeout_seconds`, or see in the raw stream what it was waiting for",
    "crash": "the evidence has the end of what it wrote, the turn's raw stream all of it; "
    "`skillup doctor --probe` shows whether it works at all",
    "protocol": "see the trial's raw/ folder; `skillup doctor` shows the CLI's version",
    "output_limit": "see the trial's raw/ folder for what it printed",
    "session_lost": "its answer is not believed; run the case again, and see what else writes to "
    "the session's file if it happens again",
    "session_mismatch": "its answer is not believed; run the case again",
}
_STATUS: dict[int, ErrorKind] = {
    401: "auth",
    403: "auth",
    402: "quota",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """What a parser found out: a kind, and the engine's own words for it."""

    kind: ErrorKind
    text: str


KindsByText = Mapping[ErrorKind, tuple[str, ...]]
"""Parts of a CLI's messages, by the kind that they mean."""


def kind_of_text(text: str, kinds: KindsByText) -> ErrorKind | None:
    """The kind of the first of the parts that is in the text."""
    plain = text.replace("’", "'")  # CLIs write typographic ones, too
    found = (kind for kind, parts in kinds.items() if any(part in plain for part in parts))
    return next(found, None)


def kind_of_status(status: int) -> ErrorKind:
    """The kind of an HTTP status of the model's server."""
    return _STATUS.get(status, "model_error")


def turn_error(
    cli: str, kind: ErrorKind, what: str, evidence: str = "", *, login: str = "", install: str = ""
) -> TurnError:
    """The error with the advice that its kind has for this CLI. `what` is one clause.

    `login` and `install` say how to log in, and how to get the CLI.
    """
    advice = _ADVICE.get(kind, "").format(login=login, install=install)
    line = " ".join(what.split())
    message = f"{cli}: {line if len(line) <= 300 else line[:299] + '…'}"
    return TurnError(
        kind=kind,
        message=f"{message}; {advice}" if advice else message,
        evidence=shortened(evidence),
        retry_after_seconds=parse_retry_after(what),
    )


def parse_retry_after(message: str) -> float | None:
    """How many seconds a provider's error asks to wait for; None: it does not say."""
    found = _TRY_AGAIN.search(message)
    parts = _DURATION.findall(found[1]) if found else []
    if parts:
        return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
    header = _HEADER.search(message)
    return float(header[1]) if header else None


def shortened(text: str, limit: int = 4000) -> str:
    """The beginning and the end of a text that is too long."""
    text = text.strip()
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
