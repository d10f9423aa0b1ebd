"""Whether cases were changed between the start of a run and its resuming."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.executors.errors_again import errors_again
from skillup.plan import Job, Plan
from skillup.process.secrets import Secrets
from skillup.reports.text import listed
from skillup.schema.case import Case
from skillup.store import RunDirectory

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
    again = errors_again(plan, directory).jobs() if retry_errors else set()
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
