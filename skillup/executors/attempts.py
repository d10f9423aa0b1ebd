"""One trial by itself: from where an earlier start left it, and as often as it has to run."""

from __future__ import annotations

from dataclasses import replace

from skillup.engines.registry import remove_logins
from skillup.executors.retries import Attempt, retry_of, with_note
from skillup.executors.run import Run
from skillup.plan import Job
from skillup.schema.record import Checkpoint, Record
from skillup.trial import record_without_turns, run_trial
from skillup.trial.request import TrialRequest, TrialResult
from skillup.trial.resume import resume_trial
from skillup.trial.setup import OpenTrial


async def run_attempts(
    run: Run, job: Job, attempt: Attempt, fork: OpenTrial | Record | None = None
) -> None:
    """Run a trial by itself, as often as it has to be, from `attempt` on.

    It begins with its `fork` of shared turns, if there is one (a Record says why not), or where an
    earlier start of the run left it. If the run ends in its midst (a quota, Ctrl-C) it has no
    record, and its scratch stays, without logins, if it can be gone on with.
    """
    problem = run.problem(job)
    opened = fork if isinstance(fork, OpenTrial) else None
    checkpoint = run.directory.read_checkpoint(job.id) if attempt.number == 1 else None
    if checkpoint is not None and problem is not None:
        set_aside_unused(run, job, checkpoint, problem.message)
    elif checkpoint is not None:
        found = await _resume(run, job, checkpoint)
        if isinstance(found, str):
            attempt = Attempt(note=found)
        else:
            opened, attempt = found, Attempt(checkpoint.record.attempt, checkpoint.uncounted)
    while True:
        request = opened.request if opened is not None else None
        if request is None and not isinstance(fork, Record):
            request = run.request(job, attempt)
        outcome: TrialResult | None = None
        ended = False
        try:
            if request is None:
                assert isinstance(fork, Record)
                outcome = TrialResult(fork)
            elif problem is not None:
                outcome = TrialResult(record_without_turns(request, error=problem))
            else:
                outcome = await run_trial(request, opened)
            why = outcome.interruption
            ended = why is not None and why.kind == "run_ended"
        finally:
            _tidy(run, job, request, finished=outcome is not None and not ended)
        if ended:
            run.leave(job)
            return
        record = with_note(outcome.record, attempt.note)
        retry = retry_of(outcome, job.loaded.case.retry_policy, attempt)
        if retry is None:
            await run.conclude(job, record)
            return
        run.give_up(job, record, retry.reason)
        attempt = retry.attempt
        if fork is not None:
            note = "runs by itself: turns that other records share ran once more"
            attempt = replace(attempt, note=f"attempt {attempt.number} {note}")
        opened = fork = None
        run.observer.trial_started(job, attempt.number)


async def _resume(run: Run, job: Job, checkpoint: Checkpoint) -> OpenTrial | str:
    """The trial as an earlier start of the run left it; a text says why it has to begin anew."""
    place = run.directory.reopen_trial(job.id)
    opened: OpenTrial | str = "its scratch directory is gone"
    if place is not None:
        attempt = Attempt(checkpoint.record.attempt, checkpoint.uncounted)
        opened = await resume_trial(run.request(job, attempt, place), checkpoint)
    if isinstance(opened, OpenTrial):
        turns = len(checkpoint.record.turns)
        run.directory.journal("trial_continued", job=job.id, after_turn=turns)
        return opened
    return set_aside_unused(run, job, checkpoint, opened)


def set_aside_unused(run: Run, job: Job, checkpoint: Checkpoint, why: str) -> str:
    """The trial begins anew, because of `why`; what its record is to say of that."""
    turns = len(checkpoint.record.turns)
    run.directory.journal("trial_not_continued", job=job.id, after_turn=turns, reason=why)
    run.directory.write_unused(job.id, checkpoint.record)
    run.stopping.count(checkpoint.record, None)
    return f"begun anew with turn 1, not resumed after turn {turns}: {why}"


def _tidy(run: Run, job: Job, request: TrialRequest | None, *, finished: bool) -> None:
    """Remove the scratch, or of it what nobody needs any more."""
    if not finished and request and run.directory.read_checkpoint(job.id) is not None:
        remove_logins(request.scratch / "home")
    elif not run.options.keep_scratch:
        run.directory.remove_scratch(job.id)
