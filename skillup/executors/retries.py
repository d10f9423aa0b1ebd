"""Which trials run again: the suite's `retry_policy`, refusals, and `--retry-errors`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from skillup.dataclass import frozen, mutable
from skillup.plan import Plan
from skillup.schema.case import RetryPolicy
from skillup.schema.line import TrialLine
from skillup.schema.record import Record
from skillup.store import RunDirectory
from skillup.trial.request import TrialResult

MOST_RESTARTS = 5
"""So often a trial begins anew because of refusals: every attempt asks its earlier turns again."""
COMES_BACK = frozenset({"template", "no_resume"})
"""Errors that lie in the case itself: `--retry-errors` leaves them; others may have been mended."""
# What comes back every time within a run: trying again only costs.
_NEVER = COMES_BACK | {"unsupported", "engine_not_found", "setup", "internal", "quota"}


@frozen
class Attempt:
    """Which attempt at a trial it is."""

    number: int = 1
    uncounted: int = 0
    """So many of those before it does `retry_policy` not count: the provider refused them."""
    note: str | None = None  # What the record says of it


def retry_of(
    outcome: TrialResult, policy: RetryPolicy | None, attempt: Attempt
) -> tuple[str, Attempt] | None:
    """The next attempt, and why: an error's kind or `turn_precondition_fail`; None: no more.

    The policy allows ``max_retries`` beyond the first, and beyond those that were refused.
    """
    record, interruption, number = outcome.record, outcome.interruption, attempt.number
    error, uncounted = record.first_error(), attempt.uncounted
    restart = interruption if interruption and interruption.kind == "restart" else None
    if restart and error is not None and uncounted < MOST_RESTARTS:
        why = f"was refused by the provider and could not go on: {restart.reason}"
        return error.kind, Attempt(number + 1, uncounted + 1, f"attempt {number} {why}")
    if policy is None or record.skipped is not None or number - uncounted > policy.max_retries:
        return None
    kinds, gate = set(policy.retry_on), "turn_precondition_fail"
    if error is not None:
        retried = error.kind in kinds or ("error" in kinds and error.kind not in _NEVER)
    else:
        gate_failed = any(turn.post_condition_passed is False for turn in record.turns)
        retried = gate_failed and gate in kinds
    reason = error.kind if error is not None else gate
    return (reason, Attempt(number + 1, uncounted, attempt.note)) if retried else None


def with_note(record: Record, note: str | None) -> Record:
    return record if note is None else record.model_copy(update={"notes": [*record.notes, note]})


# `--retry-errors`: which finished trials of a run run again, or are only judged again.


@mutable
class RetryErrors:
    """What is to become of the trials of a run that met an error."""

    rerun: dict[str, str] = field(default_factory=dict)  # Run again: the error's kind, by job
    waiting: list[str] = field(default_factory=list)
    """Skipped, since what they depend on is among those; each after what it depends on."""
    judged: list[str] = field(default_factory=list)
    """Run whole, so that only judges have to be asked again."""
    left: dict[str, str] = field(default_factory=dict)
    """Left as they are, since their error would come back: its kind, by job."""

    def jobs(self) -> set[str]:
        """Those that have no record any more once :func:`take_back` is done."""
        return {*self.rerun, *self.waiting}


def trials_to_retry(plan: Plan, directory: RunDirectory) -> RetryErrors:
    """Look through what has finished of `plan`; nothing is changed."""
    found = RetryErrors()
    for job in plan.jobs:
        grade = directory.read_grade(job.id)
        if grade is not None and grade.status in ("PASS", "FAIL"):
            continue
        record = directory.finished_record(job.id)
        if record is None:
            continue
        error = record.first_error()
        if error is not None:
            (found.left if error.kind in COMES_BACK else found.rerun)[job.id] = error.kind
        elif record.skipped is not None:
            again = {*found.rerun, *found.waiting, *found.judged}
            if not again.isdisjoint(job.depends_on):
                found.waiting.append(job.id)
        elif grade is not None and grade.status == "ERROR":
            found.judged.append(job.id)
    return found


def take_back(found: RetryErrors, directory: RunDirectory) -> None:
    """Make those unfinished that run again; their records stay, as attempts."""
    if not (found.rerun or found.waiting or found.judged):
        return
    directory.journal(
        "errors_retried",
        held_again=list(found.rerun),
        skipped_before=found.waiting,
        judged_again=found.judged,
    )
    # Those that wait come first: killed in between, none keeps a reason that holds no longer.
    for job_id in [*reversed(found.waiting), *found.rerun]:
        directory.take_back(job_id)


def worth_retrying(trials: Iterable[TrialLine]) -> int:
    """How many trials met an error that `--retry-errors` would look into."""
    return sum(one.status == "ERROR" and one.error_kind not in COMES_BACK for one in trials)
