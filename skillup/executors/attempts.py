"""One trial by itself: where an earlier start left it, and as often as it has to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from skillup.engines.registry import remove_logins
from skillup.executors.budgets import StopPolicy
from skillup.executors.options import RunObserver, RunOptions
from skillup.plan import Job
from skillup.schema.case import RetryPolicy
from skillup.schema.record import Checkpoint, Record, TurnError
from skillup.store import RunDirectory, TrialPlace
from skillup.trial import TrialEvent, TrialRequest, record_without_turns, run_rest, run_trial
from skillup.trial.resume import resume_trial
from skillup.trial.setup import Opened

# Which trials are held again: the suite's `retry_policy`.

# A defect of the case or of the installation comes back every time, and so does an allowance that
# is used up: trying again only costs.
_NEVER = frozenset(
    {"template", "unsupported", "engine_not_found", "setup", "no_resume", "internal", "quota"}
)

MOST_ANEW = 5
"""So often a trial is run anew because of refusals: every attempt asks its earlier turns again."""

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


LEFT = "left where it was: --resume goes on with it"
"""What is shown of a trial that the run does not go on with, while others run still."""


class AttemptsOf(Protocol):
    """The run, as far as the attempts at one trial need it."""

    directory: RunDirectory
    options: RunOptions
    observer: RunObserver
    stopping: StopPolicy

    def request(
        self, job: Job, attempt: int, place: TrialPlace | None = None, uncounted: int = 0
    ) -> TrialRequest:
        """Begins an attempt; in `place`, one that is gone on with."""
        ...

    def problem(self, job: Job) -> TurnError | None:
        """What keeps the trial from being held, or from being judged once it was."""
        ...

    def give_up(self, job: Job, record: Record, reason: str) -> None:
        """Keeps the record of an attempt; the trial is tried again."""
        ...

    async def conclude(self, job: Job, record: Record) -> None:
        """Keeps the record, and judges it."""
        ...


async def run_attempts(
    run: AttemptsOf, job: Job, first: int = 1, note: str | None = None, uncounted: int = 0
) -> None:
    """Hold a trial by itself, as often as it has to be, from attempt `first` on.

    The record says `note`; of the attempts before, `uncounted` are none that `retry_policy` counts.

    If the run ends in its midst (a quota, Ctrl-C) it has no record, and its scratch stays, without
    logins, if it can be gone on with.
    """
    problem = run.problem(job)
    attempt = first
    taken: Opened | None = None
    if first == 1:
        found = await _take_up(run, job, problem)
        if isinstance(found, str):
            note = found
        elif found is not None:
            taken, uncounted = found
            attempt = taken.request.attempt
    while True:
        request = taken.request if taken is not None else run.request(job, attempt, None, uncounted)
        finished = False
        try:
            if problem is not None:
                record = record_without_turns(request, error=problem)
            elif taken is not None:
                record = await run_rest(taken)
            else:
                record = await run_trial(request)
            finished = request.throttle is None or not request.throttle.left
        finally:
            _tidy(run, job, request.scratch, finished)
        taken = None
        if not finished:
            leave(run, job)
            return
        record = with_note(record, note)
        again = another_attempt(request, record, uncounted)
        if again is None:
            await run.conclude(job, record)
            return
        run.give_up(job, record, again.reason)
        attempt, uncounted, note = attempt + 1, again.uncounted, again.note or note
        run.observer.trial_started(job, attempt)


def leave(run: AttemptsOf, job: Job) -> None:
    """Say that the run, whose other trials may go on, does not go on with one that was begun."""
    run.directory.journal("trial_left", job=job.id)
    run.observer.trial_event(TrialEvent(job.id, "activity", text=LEFT))


@dataclass(frozen=True, slots=True)
class Again:
    """A trial has to be held once more."""

    reason: str
    """An error's kind, or what :func:`retry_reason` says."""
    uncounted: int
    """Attempts so far that `retry_policy` does not count, since the provider refused them."""
    note: str | None
    """What the next record is to say of it, in place of what this one says."""


def another_attempt(request: TrialRequest, record: Record, uncounted: int) -> Again | None:
    """Why an attempt, of which `record` came, is not the last; None: it is.

    `uncounted` of the attempts before it were refused by the provider.
    """
    anew = request.throttle.anew if request.throttle is not None else None
    error = record.first_error()
    if anew is not None and error is not None and uncounted < MOST_ANEW:
        note = f"attempt {request.attempt} was refused by the provider and could not go on: {anew}"
        return Again(error.kind, uncounted + 1, note)
    reason = retry_reason(record, request.job.loaded.case.retry_policy, uncounted)
    return Again(reason, uncounted, None) if reason is not None else None


def with_note(record: Record, note: str | None) -> Record:
    """`record` with one note more."""
    return record if note is None else record.model_copy(update={"notes": [*record.notes, note]})


async def _take_up(
    run: AttemptsOf, job: Job, problem: TurnError | None
) -> tuple[Opened, int] | str | None:
    """The trial as an earlier start of the run left it, and its uncounted attempts.

    A text says why it has to be held anew; None: there is nothing to go on with, or `problem` keeps
    it from being held at all.
    """
    noted = run.directory.read_checkpoint(job.id)
    if noted is None:
        return None
    if problem is not None:
        run.stopping.count_attempt(noted.record)
        set_aside_unused(run.directory, job, noted, problem.message)
        return None
    place = run.directory.reopen_trial(job.id)
    opened: Opened | str = "its scratch directory is gone"
    if place is not None:
        request = run.request(job, noted.record.attempt, place, noted.uncounted)
        opened = await resume_trial(request, noted)
    if isinstance(opened, Opened):
        turns = len(noted.record.turns)
        run.directory.journal("trial_continued", job=job.id, after_turn=turns)
        return opened, noted.uncounted
    run.stopping.count_attempt(noted.record)
    return set_aside_unused(run.directory, job, noted, opened)


def set_aside_unused(directory: RunDirectory, job: Job, noted: Checkpoint, why: str) -> str:
    """The trial begins anew, because of `why`; what its record is to say of that.

    The caller counts what it had taken; later starts find it among the run's attempts.
    """
    turns = len(noted.record.turns)
    directory.journal("trial_not_continued", job=job.id, after_turn=turns, reason=why)
    directory.set_checkpoint_aside(job.id)
    after = "turn 1" if turns == 1 else f"turn {turns}"
    return f"begun anew with turn 1, not resumed after {after}: {why}"


def _tidy(run: AttemptsOf, job: Job, scratch: Path, finished: bool) -> None:
    """Remove the scratch, or of it what nobody needs any more."""
    if not finished and run.directory.read_checkpoint(job.id) is not None:
        remove_logins(scratch / "home")
    elif not run.options.keep_scratch:
        run.directory.remove_scratch(job.id)


# Trials that were lost with their worker: the result warns of it, however often it went on.

_EVENT = "trial_lost"


def note_loss(
    directory: RunDirectory,
    stopping: StopPolicy,
    jobs: Iterable[str],
    reason: str,
    worker: str | None = None,
) -> None:
    """Have the journal and the result's warnings tell of it.

    `worker` is its address; None: the connection to all of them broke.
    """
    told: dict[str, Any] = (
        {"reason": reason} if worker is None else {"worker": worker, "reason": reason}
    )
    for job in jobs:
        directory.journal(_EVENT, job=job, **told)
    stopping.note(_warning(told))


def recall_losses(events: Iterable[Mapping[str, Any]], stopping: StopPolicy) -> None:
    """Those that earlier starts of the run have noted are warned of, too."""
    for event in events:
        if event.get("event") == _EVENT and "reason" in event:
            stopping.note(_warning(event))


def _warning(told: Mapping[str, Any]) -> str:
    if "worker" in told:
        return f"worker {told['worker']}: {told['reason']}; trials there were lost"
    return f"{told['reason']}: trials that were running then began again"
