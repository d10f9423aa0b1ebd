"""Which trials are held again: the suite's `retry_policy`."""

from __future__ import annotations

from skillup.schema.case import RetryPolicy
from skillup.schema.record import Record

# A defect of the case or of the installation comes back every time, and so does an allowance that
# is used up: trying again only costs.
_NEVER = frozenset(
    {"template", "unsupported", "engine_not_found", "setup", "no_resume", "internal", "quota"}
)

COMES_BACK = frozenset({"template", "no_resume"})
"""Errors that lie in the case itself: `--retry-errors` leaves them.

Whatever else is wrong may have been mended when a run is gone on with, be it a missing CLI, one of
a version whose sessions cannot be written (`unsupported`), a login or a defect of ours.
"""


def retry_reason(record: Record, policy: RetryPolicy | None, uncounted: int = 0) -> str | None:
    """Why this trial is held again (an error kind, or `turn_precondition_fail`); None: it is not.

    `record.attempt` counts from 1; the policy allows ``max_retries`` attempts beyond the first, and
    beyond those that are `uncounted`, for the provider refused them.
    """
    if policy is None or record.skipped is not None:
        return None
    if record.attempt - uncounted > policy.max_retries:
        return None
    wanted = set(policy.retry_on)
    error = record.first_error()
    if error is not None:
        if error.kind in wanted or ("error" in wanted and error.kind not in _NEVER):
            return error.kind
        return None
    gate_failed = any(turn.post_condition_passed is False for turn in record.turns)
    return "turn_precondition_fail" if gate_failed and "turn_precondition_fail" in wanted else None
