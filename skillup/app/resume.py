"""`skillup run --resume RUN --retry-errors`: taking trials back, and what is said of it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.executors.retry_errors import RetryErrors, take_back, trials_to_retry, worth_retrying
from skillup.plan import Job, Plan
from skillup.redaction.secrets import Secrets
from skillup.reports.text import listed
from skillup.schema.case import Case
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
) -> RetryErrors:
    """Make the trials that met an error unfinished, and say which."""
    found = trials_to_retry(plan, directory)
    take_back(found, directory)
    for line in _lines(found, ", unless cases are decided without them" if until_decided else ""):
        console.print(line, markup=False, soft_wrap=True)
    return found


def _lines(found: RetryErrors, unless: str) -> Iterator[str]:
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


# Whether cases were changed between the start of a run and its resuming.

_DIGITS = 16
_NAMED = 6


def case_digests(plan: Plan) -> dict[str, str]:
    """For ``run.json``: by what jobs call it, a digest of each case, its suite's defaults included.

    Nothing of it depends on where the suite is, nor on `--var`.
    """
    cases = {_name(job): job.loaded.case for job in plan.jobs}
    return {name: _digest(case) for name, case in cases.items()}


def check_same_cases(
    plan: Plan,
    directory: RunDirectory,
    run_info: Mapping[str, Any],
    secrets: Secrets,
    *,
    retry_errors: bool,
) -> None:
    """Raises UsageError if a case of which trials have finished is not what they were held by.

    Half of its trials would tell of another case than the rest. Trials that are held again, because
    of `retry_errors`, tell of none. A run that noted no digests is gone on with as it is. Records
    have cases without `secrets`.
    """
    changed = _changed(plan, run_info)
    if not changed:
        return
    again = trials_to_retry(plan, directory).jobs() if retry_errors else set()
    mixed: dict[str, int] = {}
    for job in plan.jobs:
        name = _name(job)
        if name in changed and job.id not in again and _is_of_another(job, directory, secrets):
            mixed[name] = mixed.get(name, 0) + 1
    if mixed:
        raise UsageError(
            f"cases of which trials have finished were changed since: {_counted(mixed)}",
            hint="put them back as they were, or start a new run; where only checks were changed, "
            "`skillup judge RUN --cases PATH` grades what was held by the new ones",
        )


def note_changed_cases(plan: Plan, directory: RunDirectory, run_info: Mapping[str, Any]) -> None:
    """Cases that are held in another form than the run began with have no digest any more.

    From now on only their records say which they were held by.
    """
    changed = _changed(plan, run_info)
    if any(run_info["case_digests"].get(name) for name in changed):
        digests = run_info["case_digests"] | dict.fromkeys(changed)
        directory.write_run_info({**run_info, "case_digests": digests})


def _changed(plan: Plan, run_info: Mapping[str, Any]) -> set[str]:
    """The cases whose records have to be looked at."""
    before = run_info.get("case_digests")
    if not isinstance(before, dict):
        return set()
    now = case_digests(plan)
    return {name for name, digest in now.items() if before.get(name) != digest}


def _is_of_another(job: Job, directory: RunDirectory, secrets: Secrets) -> bool:
    """Whether the trial's record is of another case: an earlier resuming may have taken the new."""
    record = directory.finished_record(job.id)
    if record is None:
        return False
    try:
        return _digest(Case.model_validate(record.case)) != _digest(job.loaded.case, secrets)
    except ValidationError:
        return True


def _digest(case: Case, secrets: Secrets | None = None) -> str:
    data = case.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if secrets:
        data = secrets.mask_data(data)
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def _name(job: Job) -> str:
    """What jobs call the case: ids that several suites use are told apart."""
    return job.id.rsplit("/", maxsplit=3)[0]


def _counted(mixed: Mapping[str, int]) -> str:
    names: Collection[str] = [
        f"{name} ({count} trial{'s' if count != 1 else ''})" for name, count in mixed.items()
    ]
    return listed(list(names)[:_NAMED], len(names))


# How long a run took before it was gone on with: from its journal.

_STARTS = ("run_created", "run_reopened")


def milliseconds_of_starts(events: Iterable[Mapping[str, Any]]) -> int:
    """Of all starts together, each from when the run was opened to the last that it wrote.

    The time between two starts, in which nobody held anything, does not count.
    """
    total = 0.0
    first: datetime | None = None
    last: datetime | None = None
    for event in events:
        time = _time(event.get("time"))
        if time is None:
            continue
        if first is None or event.get("event") in _STARTS:
            total += _seconds(first, last)
            first = time
        last = time
    return round((total + _seconds(first, last)) * 1000)


def _seconds(first: datetime | None, last: datetime | None) -> float:
    """Not less than none: a clock may have been put back."""
    return 0.0 if first is None or last is None else max(0.0, (last - first).total_seconds())


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
