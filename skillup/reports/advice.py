"""What to do about an error, by its kind: the words of `docs/errors.md`, which a test compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillup.schema.record import TurnError

ADVICE: Mapping[str, str] = {
    "engine_not_found": "install the CLI, or set `command:` in the profile; `skillup doctor` shows "
    "what is found",
    "engine_not_usable": "the message says which",
    "auth": "set the key's variable (`api_key_env`), or log in with the CLI; `skillup doctor` "
    "shows how a login would happen",
    "rate_limit": "fewer trials at once (`-j`), a longer `--rate-limit-wait`, or `retry_policy`",
    "quota": "when there is allowance again, `skillup run --resume RUN`",
    "overloaded": "`retry_policy`, or later",
    "model_error": "read in the evidence what it refuses; `skillup doctor --probe` asks it two "
    "small questions",
    "network": "check `base_url` and the network",
    "timeout": "raise `timeout_seconds`, or look in the transcript for what it waited for",
    "crash": "read the end of its stderr in the evidence, and what it printed in the raw stream; "
    "`skillup doctor --probe` shows whether the CLI can hold a conversation at all; if it can, "
    "run the case again",
    "protocol": "usually a CLI version that skillup does not know",
    "output_limit": "look at `raw/` for what it printed",
    "session_lost": "something else wrote to the session file, or the CLI compacted it",
    "session_mismatch": "the answer is not believed; run again",
    "no_resume": "another engine; without a simulated user also `on_no_resume: single_shot`",
    "capture": "fix the pattern, give a `default`, or make it a check",
    "template": "the message lists the names that have one",
    "max_turns": "raise `max_turns`",
    "budget": "raise it, or leave it out of `args`",
    "setup": "mend what the message names; the evidence has the command's output",
    "unsupported": "`skillup validate` names it with its line",
    "cancelled": "`skillup run --resume RUN`",
    "judge": "the message names the check, or who plays the user",
    "internal": "please report it with the evidence",
}


def error_data(error: TurnError | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """``{kind, message, evidence, advice}``, of a record's error or of a grade's."""
    if error is None:
        return None
    data = error.model_dump() if isinstance(error, TurnError) else dict(error)
    return {
        "kind": data.get("kind"),
        "message": str(data.get("message") or ""),
        "evidence": data.get("evidence") or "",
        "advice": ADVICE.get(str(data.get("kind")), ""),
    }
