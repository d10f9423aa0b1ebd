"""`skillup run --resume RUN --retry-errors`: taking trials back, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from skillup.errors import UsageError
from skillup.executors.errors_again import ErrorsAgain, errors_again, take_back, worth_retrying
from skillup.plan import Plan
from skillup.schema.grade import RunResult
from skillup.store import RunDirectory

if TYPE_CHECKING:
    from rich.console import Console


def check_retrying(*, retry_errors: bool, resume: str | None) -> None:
    """Raises UsageError if there is no run whose errors could be retried."""
    if retry_errors and resume is None:
        raise UsageError(
            "--retry-errors holds trials of an earlier run again, and no run was named",
            hint="name it: --resume RUN --retry-errors; to retry within a run, there is "
            "retry_policy in the suite",
        )


def taken_back(
    plan: Plan, directory: RunDirectory, console: Console, *, until_decided: bool
) -> ErrorsAgain:
    """Make the trials that met an error unfinished, and say which."""
    found = errors_again(plan, directory)
    take_back(found, directory)
    for line in _lines(found, ", unless cases are decided without them" if until_decided else ""):
        console.print(line, markup=False, soft_wrap=True)
    return found


def _lines(found: ErrorsAgain, unless: str) -> Iterator[str]:
    if found.held:
        again = f"{_trials(found.held)} that met an error ({_kinds(found.held)})"
        if found.waiting:
            again += f", and {len(found.waiting)} that {_were(found.waiting)} skipped for that"
        yield f"held again: {again}{unless}"
    elif found.waiting:
        again = f"{_trials(found.waiting)} that {_were(found.waiting)} skipped"
        yield f"held again: {again} for an error of others{unless}"
    if found.judged:
        yield f"judged again: {_trials(found.judged)}, held whole before"
    if found.left:
        yield f"left: {_trials(found.left)} whose error would come back ({_kinds(found.left)})"
    if not found.held and not found.judged and not found.left:
        yield "--retry-errors: no trial of this run met an error"


def print_retry(result: RunResult, go_on: str, console: Console) -> None:
    """The command that holds the trials with an ERROR again, if there are any; `go_on` resumes."""
    count = worth_retrying(result.cases)
    if count:
        met = "1 trial met an error" if count == 1 else f"{count} trials met an error"
        text = f"{met}; once that is mended: {go_on} --retry-errors"
        console.print(text, style="yellow", markup=False, soft_wrap=True)


def _kinds(by_job: dict[str, str]) -> str:
    counts = Counter(by_job.values())
    return ", ".join(f"{kind} ×{n}" if n > 1 else kind for kind, n in counts.items())


def _trials(jobs: Iterable[str]) -> str:
    count = len(list(jobs))
    return "1 trial" if count == 1 else f"{count} trials"


def _were(jobs: list[str]) -> str:
    return "was" if len(jobs) == 1 else "were"
