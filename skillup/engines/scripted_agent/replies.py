"""Which reply of the script applies."""

from __future__ import annotations

import json
import re
import sys

from skillup.engines.scripted_agent.errors import AgentError
from skillup.engines.scripted_agent.lots import drawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

_SHOWN = 200


def load_replies(path: str) -> list[dict[str, Any]]:
    """The script's replies. Ends the process with code 2 if the file is not a script."""
    try:
        with open(path, encoding="utf-8") as file:
            replies: list[dict[str, Any]] = json.load(file)["replies"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"scripted-agent: {path} is not a script: {error!r}\n")
        sys.exit(2)
    return replies


def choose_reply(
    replies: list[dict[str, Any]], message: str, turn: int, skills: Collection[str]
) -> tuple[dict[str, Any], re.Match[str] | None] | None:
    """The first reply that applies, and what its `when` found; None if none applies."""
    for index, reply in enumerate(replies):
        if reply.get("turn") not in (None, turn):
            continue
        if reply.get("needs_skill") not in (None, *skills):
            continue
        pattern = reply.get("when")
        match = re.search(pattern, message, re.IGNORECASE) if pattern else None
        if pattern and match is None:
            continue
        if drawn(reply.get("probability", 1.0), turn, f"reply {index}"):
            return reply, match
    return None


def no_reply(message: str, turn: int) -> AgentError:
    """The error of a turn that no reply is meant for."""
    shown = message if len(message) <= _SHOWN else message[:_SHOWN] + "…"
    return AgentError("script", f'no reply of the script applies to turn {turn}: "{shown}"')
