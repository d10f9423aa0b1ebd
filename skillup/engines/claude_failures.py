"""What Claude Code's `result` event and its stderr say went wrong."""

from __future__ import annotations

import re
from typing import Any

from skillup.engines.failures import Failure, kind_of_status
from skillup.engines.transcript import as_list, as_text
from skillup.schema.record import ErrorKind

_BY_SUBTYPE: dict[str, ErrorKind] = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget",
}

# `error` of the assistant line that comes before the result.
_BY_API_ERROR: dict[str, ErrorKind] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "billing_error": "quota",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "model_not_found": "model_error",
    "invalid_request": "model_error",
    "max_output_tokens": "model_error",
}

# Texts of `result`, `errors` and stderr, where nothing else tells.
_BY_TEXT: tuple[tuple[str, ErrorKind], ...] = (
    ("No conversation found", "session_lost"),
    ("--resume requires a valid session", "session_lost"),
    ("is already in use", "session_mismatch"),
    ("Unable to connect to API", "network"),
    ("Connection error", "network"),
    ("Request timed out", "network"),
    ("Not logged in", "auth"),
    ("Invalid API key", "auth"),
    ("cannot be used with root", "engine_not_usable"),
    ("error: unknown option", "engine_not_usable"),
    ("error: option", "engine_not_usable"),
    ("error: unknown command", "engine_not_usable"),
    ("Error: Settings file not found", "engine_not_usable"),
    ("Error: Invalid MCP configuration", "engine_not_usable"),
)

# How texts about an allowance that is used up go on or begin: a subscription's limit for five hours
# or a week, an organisation's spending limit, prepaid credits. All come with the status 429 or 400,
# as passing trouble does.
_QUOTA = re.compile(
    r"^You['’]ve (?:hit|reached) your (?!fast limit)"
    r"|^You['’]re out of (?:usage credits|extra usage)"
    r"|^Your org is out of usage|^Your (?:group|seat|usage allocation)\b"
    r"|usage limit reached|credit balance is too low",
    re.IGNORECASE,
)

_LOCAL_ANSWERS = ("Unknown command:", "Unknown skill:", "Unknown slash command:")
_LOCAL_ANSWER_END = "isn't available in this environment."


def failure_of(result: dict[str, Any], api_error: str | None) -> Failure | None:
    """Whether the turn failed. `subtype` is "success" even then: `is_error` tells.

    A slash command that does not exist is answered by the CLI itself, as a success of no turns.
    """
    said = as_text(result.get("result"))
    said = said or "; ".join(as_text(error) for error in as_list(result.get("errors")))
    subtype = as_text(result.get("subtype"))
    if not result.get("is_error") and not subtype.startswith("error"):
        if said.startswith(_LOCAL_ANSWERS) and result.get("num_turns") == 0:
            return Failure("unsupported", f"{said}; the model was not asked")
        if said.endswith(_LOCAL_ANSWER_END) and result.get("num_turns") == 0:
            return Failure("unsupported", f"{said} The model was not asked")
        if not isinstance(result.get("result"), str):
            return Failure("protocol", "its `result` event holds no answer")
        return None
    said = said or f"it ended the turn with {subtype or 'an error'}"
    return Failure(_kind(result, subtype, api_error, said), said)


def _kind(result: dict[str, Any], subtype: str, api_error: str | None, said: str) -> ErrorKind:
    if subtype in _BY_SUBTYPE:
        return _BY_SUBTYPE[subtype]
    if _QUOTA.search(said):
        return "quota"
    status = result.get("api_error_status")
    if isinstance(status, int):
        return kind_of_status(status)
    by_text = kind_of_text(said)
    if by_text is not None:
        return by_text
    if api_error is not None:
        # Left: server_error and unknown, said of answers that make no sense.
        return _BY_API_ERROR.get(api_error, "model_error")
    return "crash"


def kind_of_text(text: str) -> ErrorKind | None:
    """The kind that a known message of the CLI means."""
    if _QUOTA.search(text):
        return "quota"
    return next((kind for part, kind in _BY_TEXT if part in text), None)
