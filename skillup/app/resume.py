"""`skillup run --resume RUN`: the request, what may not have changed, and `--retry-errors`."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.app.request import RunRequest, parse_vars, request_from
from skillup.errors import RunDirectoryError, UsageError
from skillup.executors.budgets import StopPolicy
from skillup.executors.retry_errors import RetryErrors, trials_to_retry
from skillup.plan import Job, Plan
from skillup.redaction.secrets import Secrets
from skillup.reports.text import listed, listed_ids
from skillup.schema.case import Case
from skillup.schema.grade import Stop
from skillup.store import RunDirectory
from skillup.store.places import check_shape_of_run

_FROM_NOW_ON = (
    "max_fail",
    "max_cost_usd",
    "max_tokens",
    "time_limit",
    "executor",
    "scheduler",
)
_OR_AS_BEFORE = ("parallel", "rate_limit_wait", "no_judge_cache")
_DIGITS = 16
_NAMED = 6
_PASSWORD = re.compile(r"^([^:]+://[^:@/]*:).*@")
"""In the URL of an index: what comes before it, and it."""
_STARTS = ("run_created", "run_reopened")


def requested_again(resume: Path, given: RunRequest, out: Path | None) -> RunRequest:
    """The request of the run that is resumed; only how it is run may be given anew, not what.

    Values of `--var` that were secrets have to be. Raises UsageError if one of these is missing or
    anything else is given besides, RunDirectoryError if it is no run.
    """
    fresh = RunRequest()
    may_differ = {name: getattr(fresh, name) for name in (*_FROM_NOW_ON, *_OR_AS_BEFORE)}
    refused = UsageError(
        "--resume goes on with what the run was asked to do",
        hint="besides it only -j, budgets (--max-fail, --max-cost-usd, --max-tokens, "
        "--time-limit), --rate-limit-wait, --retry-errors, --executor, --scheduler, "
        "--no-judge-cache, --index, --quiet, --verbose, --json and --keep-workspaces are taken",
    )
    if out is not None or replace(given, **may_differ, variables=()) != fresh:
        raise refused
    run_info = RunDirectory.open(resume).run_info()
    stored = request_from(run_info)
    check_shape_of_run(run_info, resume / "run.json")
    if not {"run_id", "started_at"} <= set(run_info):
        raise RunDirectoryError(
            f"{resume}: its run.json is damaged", hint="start a new run instead"
        )
    values, anew = parse_vars(stored.variables), parse_vars(given.variables)
    hidden = set(run_info.get("hidden_variables") or ()) & set(values)
    if set(anew) - hidden:
        raise refused
    missing = sorted(hidden - set(anew))
    if missing:
        raise UsageError(
            f"--var {missing[0]}: its value was a secret, so the run has not kept it",
            hint="give it again: --resume RUN " + " ".join(f"--var {n}=VALUE" for n in missing),
        )
    options = {name: getattr(given, name) for name in _FROM_NOW_ON}
    for name in _OR_AS_BEFORE:
        value = getattr(given, name)
        options[name] = getattr(stored, name) if value in (None, False) else value
    variables = tuple(f"{name}={value}" for name, value in (values | anew).items())
    return replace(stored, variables=variables, **options)


def check_same_trials(plan: Plan, run_info: Mapping[str, Any]) -> None:
    """Raises UsageError if `plan` has other trials than the run that is resumed."""
    before, now = run_info.get("jobs"), {job.id: None for job in plan.jobs}
    if not isinstance(before, list):
        return
    changes = []
    for what, jobs in (
        ("there no longer", [job for job in before if job not in now]),
        ("new", [job for job in now if job not in set(before)]),
    ):
        if jobs:
            changes.append(f"{what}: {_trials(jobs)} ({listed_ids(jobs, 3)})")
    if changes:
        raise UsageError(
            f"the cases have changed since the run began; {'; '.join(changes)}",
            hint="put them back as they were, or start a new run; "
            "`skillup judge RUN` shows what was recorded",
        )


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
    """Raises UsageError if a case was changed of which trials have finished that stand.

    Records have cases without `secrets`; a run that noted no digests is resumed as it is.
    """
    changed = _changed(plan, run_info)
    if not changed:
        return
    again = trials_to_retry(plan, directory).jobs() if retry_errors else set()
    mixed: Counter[str] = Counter()
    for job in plan.jobs:
        if _name(job) in changed and job.id not in again:
            mixed[_name(job)] += _is_of_another(job, directory, secrets)
    names = [f"{name} ({_number(n, 'trial')})" for name, n in mixed.items() if n]
    if names:
        raise UsageError(
            "cases of which trials have finished were changed since: "
            f"{listed(names[:_NAMED], len(names))}",
            hint="put them back as they were, or start a new run; where only checks were changed, "
            "`skillup judge RUN --cases PATH` grades what was recorded by the new ones",
        )


def note_changed_cases(plan: Plan, directory: RunDirectory, run_info: Mapping[str, Any]) -> None:
    """From now on only the records of changed cases say what they were: their digests go."""
    changed = _changed(plan, run_info)
    if any(run_info["case_digests"].get(name) for name in changed):
        digests = run_info["case_digests"] | dict.fromkeys(changed)
        directory.write_run_info({**run_info, "case_digests": digests})


def retry_lines(found: RetryErrors, *, until_decided: bool) -> Iterator[str]:
    """For people: what `--retry-errors` does to the trials of the run."""
    unless = ", unless cases are decided without them" if until_decided else ""
    were = "was" if len(found.waiting) == 1 else "were"
    if found.held:
        again = f"{_trials(found.held)} that met an error ({_kinds(found.held)})"
        if found.waiting:
            again += f", and {len(found.waiting)} that {were} skipped for that"
        yield f"run again: {again}{unless}"
    elif found.waiting:
        again = f"{_trials(found.waiting)} that {were} skipped"
        yield f"run again: {again} for an error of others{unless}"
    if found.judged:
        yield f"judged again: {_trials(found.judged)} with a whole conversation"
    if found.left:
        yield f"left: {_trials(found.left)} whose error would come back ({_kinds(found.left)})"
    if not found.held and not found.judged and not found.left:
        yield "--retry-errors: no trial of this run met an error"


def resume_command(run: Path, request: RunRequest, index: str | None) -> str:
    """The command that runs the rest of `run`; `index` is `--index`, shown without password."""
    words = ["skillup", "run", "--resume", str(run)]
    if request.executor != "local":
        words += ["--executor", request.executor]
        words += ["--scheduler", request.scheduler] if request.scheduler is not None else []
    words += ["--index", _PASSWORD.sub(r"\1***@", index)] if index is not None else []
    return shlex.join(words)


def more_budget(stop: Stop | None, stopping: StopPolicy) -> str:
    """Where a limit was reached, the option that gives as much again; never less than is spent."""
    limits, (usd, tokens) = stopping.limits, stopping.spent()
    kind = stop.kind if stop is not None else None
    if kind == "max_cost_usd" and limits.max_cost_usd:
        usd += limits.max_cost_usd
        digits = 2 if usd >= 1 else 4
        amount = math.ceil(usd * (1 - 1e-9) * 10**digits) / 10**digits
        return f" --max-cost-usd {amount:.{digits}f}"
    if kind == "max_tokens" and limits.max_tokens:
        return f" --max-tokens {tokens + limits.max_tokens}"
    if kind == "time_limit" and limits.time_limit_seconds:
        return f" --time-limit {limits.time_limit_seconds:g}s"
    return ""


def milliseconds_of_starts(events: Iterable[Mapping[str, Any]]) -> int:
    """How long a run took: of all its starts, each from its first journal entry to its last."""
    total = 0.0
    first: datetime | None = None
    last: datetime | None = None
    for event in events:
        try:
            time = datetime.fromisoformat(event["time"])
        except (KeyError, TypeError, ValueError):
            continue
        if first is None or last is None or event.get("event") in _STARTS:
            total += _seconds(first, last)
            first = time
        last = time
    return round((total + _seconds(first, last)) * 1000)


def _seconds(first: datetime | None, last: datetime | None) -> float:
    """Not less than none: a clock may have been put back."""
    return 0.0 if first is None or last is None else max(0.0, (last - first).total_seconds())


def _changed(plan: Plan, run_info: Mapping[str, Any]) -> set[str]:
    """The cases whose records have to be looked at."""
    before = run_info.get("case_digests")
    if not isinstance(before, dict):
        return set()
    return {name for name, digest in case_digests(plan).items() if before.get(name) != digest}


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


def _kinds(by_job: dict[str, str]) -> str:
    counts = Counter(by_job.values())
    return ", ".join(f"{kind} ×{n}" if n > 1 else kind for kind, n in counts.items())


def _trials(jobs: Iterable[str]) -> str:
    return _number(len(list(jobs)), "trial")


def _number(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
