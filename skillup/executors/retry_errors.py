"""`--retry-errors`: which finished trials of a run are held again, or only judged again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from skillup.executors.attempts import COMES_BACK
from skillup.plan import Job, Plan
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory


@dataclass(slots=True)
class RetryErrors:
    """What is to become of the trials of a run that met an error."""

    held: dict[str, str] = field(default_factory=dict)
    """Held again: the error's kind, by job."""
    waiting: list[str] = field(default_factory=list)
    """Skipped, since what they depend on is among those; each after what it depends on."""
    judged: list[str] = field(default_factory=list)
    """Held whole, so that only judges have to be asked again."""
    left: dict[str, str] = field(default_factory=dict)
    """Left as they are, since their error would come back: its kind, by job."""

    def jobs(self) -> set[str]:
        """Those that have no record any more once :func:`take_back` is done."""
        return {*self.held, *self.waiting}


def trials_to_retry(plan: Plan, directory: RunDirectory) -> RetryErrors:
    """Look through what has finished of `plan`; nothing is changed."""
    found = RetryErrors()
    for job in plan.jobs:
        grade = directory.read_grade(job.id)
        if grade is not None and grade.status in ("PASS", "FAIL"):
            continue
        record = directory.finished_record(job.id)
        if record is not None:
            _sort_in(found, job, record, grade)
    return found


def _sort_in(found: RetryErrors, job: Job, record: Record, grade: Grade | None) -> None:
    error = record.first_error()
    if error is not None:
        (found.left if error.kind in COMES_BACK else found.held)[job.id] = error.kind
    elif record.skipped is not None:
        again = {*found.jobs(), *found.judged}
        if any(needed in again for needed in job.depends_on):
            found.waiting.append(job.id)
    elif grade is not None and grade.status == "ERROR":
        found.judged.append(job.id)


def take_back(found: RetryErrors, directory: RunDirectory) -> None:
    """Make those unfinished that are held again; their records stay, as attempts."""
    if not found.jobs() and not found.judged:
        return
    directory.journal(
        "errors_retried",
        durable=True,
        held_again=list(found.held),
        skipped_before=found.waiting,
        judged_again=found.judged,
    )
    # Those that wait come first: killed in between, none keeps a reason that holds no longer.
    for job_id in [*reversed(found.waiting), *found.held]:
        record, grade = directory.read_record(job_id), directory.read_grade(job_id)
        if grade is not None and grade.judging is not None:
            # Judges were asked, and paid, for this attempt, too.
            record = record.model_copy(update={"judging": grade.judging})
        directory.take_back(job_id, record)


def worth_retrying(grades: Iterable[Grade]) -> int:
    """How many trials met an error that `--retry-errors` would look into."""
    kinds = [(grade.error or {}).get("kind") for grade in grades if grade.status == "ERROR"]
    return sum(kind not in COMES_BACK for kind in kinds)
