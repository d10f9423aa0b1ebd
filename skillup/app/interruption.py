"""A run that ends early, and goes on: signals, `--resume` and `--retry-errors`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio

from skillup.app.planning import RunRequest, parse_vars, request_from
from skillup.errors import ExitCode, RunDirectoryError, SkillupError, UsageError
from skillup.executors.retries import RetryErrors, trials_to_retry
from skillup.load.datasets import OF_ITEM
from skillup.plan import Job, Plan
from skillup.process.tree import kill_running
from skillup.redaction.secrets import Secrets
from skillup.reports.text import count, listed, listed_ids
from skillup.schema.case import Case
from skillup.store import RunDirectory

# How one start of a run runs it; not kept for the next.
OF_A_START = ("max_fail", "max_cost_usd", "max_tokens", "time_limit", "executor", "scheduler")
_OR_AS_BEFORE = ("parallel", "rate_limit_wait", "no_judge_cache")
_TAKEN = (
    "-j, budgets (--max-fail, --max-cost-usd, --max-tokens, --time-limit), --rate-limit-wait, "
    "--retry-errors, --executor, --scheduler, --no-judge-cache, --index, --quiet, --verbose, "
    "--json and --keep-workspaces"
)
_NAMED = 6
_PUT_BACK = "put them back as they were, or start a new run"
_PATIENCE_SECONDS = 10.0
"""For writing down what has finished, once all agents are dead. Then skillup leaves regardless."""


def requested_again(resume: Path, given: RunRequest, out: str | None) -> RunRequest:
    """The request of the run that is resumed; only how it is run may be given anew, not what."""
    asked, fresh = asdict(given), asdict(RunRequest())
    anew = {name for name, value in asked.items() if value != fresh[name]}
    hint = f"besides it only {_TAKEN} are taken"
    refused = UsageError("--resume goes on with what the run was asked to do", hint=hint)
    if out is not None or anew - {*OF_A_START, *_OR_AS_BEFORE, "variables"}:
        raise refused
    with RunDirectory.open(resume) as earlier:
        run_info = earlier.run_info()
    stored = request_from(run_info)
    if not {"run_id", "started_at"} <= set(run_info):
        hint = "start a new run instead"
        raise RunDirectoryError(f"what {resume} says of the run is damaged", hint=hint)
    values, again = parse_vars(stored.variables), parse_vars(given.variables)
    hidden = set(run_info.get("hidden_variables") or ()) & set(values)
    if set(again) - hidden:
        raise refused
    missing = sorted(hidden - set(again))
    if missing:
        hint = "give it again: --resume RUN " + " ".join(f"--var {n}=VALUE" for n in missing)
        what = f"--var {missing[0]}: its value was a secret, so the run has not kept it"
        raise UsageError(what, hint=hint)
    variables = tuple(f"{name}={value}" for name, value in (values | again).items())
    how = {name: asked[name] for name in (*OF_A_START, *anew.intersection(_OR_AS_BEFORE))}
    return replace(stored, variables=variables, **how)


def reopened(plan: Plan, secrets: Secrets, path: Path, *, retry_errors: bool) -> RunDirectory:
    """The run at `path`, open for writing. Raises UsageError for another plan or changed cases."""
    with RunDirectory.open(path) as earlier:
        run_info = earlier.run_info()
        changed = _changed_cases(plan, earlier, run_info, retry_errors=retry_errors)
    directory = RunDirectory.open(path, writable=True, mask=secrets.mask)
    if changed:
        digests = {**(run_info.get("case_digests") or {}), **case_digests(plan.jobs)}
        directory.write_run_info({**run_info, "case_digests": digests})
    return directory


def _changed_cases(
    plan: Plan, earlier: RunDirectory, run_info: Mapping[str, Any], *, retry_errors: bool
) -> set[str]:
    """Those that were changed since, and of which no trial stands; as :func:`reopened`."""
    before, after = run_info.get("jobs") or [], [job.id for job in plan.jobs]
    sides = {"there no longer": sorted({*before} - {*after}), "new": sorted({*after} - {*before})}
    changes = [f"{what}: {listed_ids(jobs, 3)}" for what, jobs in sides.items() if jobs]
    if changes:
        what = f"the cases have changed since the run began; {'; '.join(changes)}"
        raise UsageError(what, hint=f"{_PUT_BACK}; `skillup judge RUN` shows what was recorded")
    digests, anew = run_info.get("case_digests") or {}, case_digests(plan.jobs)
    changed = {name for name in anew if digests.get(name) != anew[name]}
    again = trials_to_retry(plan, earlier).jobs() if changed and retry_errors else set()
    mixed = Counter(
        job.case
        for job in plan.jobs
        if job.case in changed and job.id not in again and earlier.finished_record(job.id)
    )
    if mixed:
        cases = [f"{name} ({count(n, 'trial')})" for name, n in mixed.items()]
        names = listed(cases[:_NAMED], len(cases))
        what = f"cases of which trials have finished were changed since: {names}"
        grade = "`skillup judge RUN --cases PATH` grades what was recorded by the new ones"
        raise UsageError(what, hint=f"{_PUT_BACK}; where only checks were changed, {grade}")
    return changed


def case_digests(jobs: Iterable[Job]) -> dict[str, str]:
    """By its name in jobs a digest of each case, without places and `--var`."""
    digests, forms = dict[str, str](), dict[int, str]()
    for name, loaded in {job.case: job.loaded for job in jobs}.items():
        if loaded.items is None or loaded.branch_of is not None:
            digests[name] = _digest(loaded.like, set())
            continue
        form = forms.get(id(loaded.like))
        if form is None:
            form = forms[id(loaded.like)] = _digest(loaded.like, OF_ITEM)
        text = f"{form} {loaded.items.digest_of(loaded.index)}"
        digests[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return digests


def _digest(case: Case, but: Set[str]) -> str:
    data = case.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=set(but))
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def retry_lines(found: RetryErrors) -> Iterator[str]:
    """For people: what `--retry-errors` does to the trials of the run."""
    for what, kinds in (("run again", found.rerun), ("left, for it would come back", found.left)):
        if kinds:
            of = ", ".join(f"{kind} ×{n}" for kind, n in Counter(kinds.values()).items())
            yield f"{what}: {count(len(kinds), 'trial')} that met an error ({of})"
    if found.waiting:
        yield f"run again: {count(len(found.waiting), 'trial')} skipped for an error of others"
    if found.judged:
        yield f"judged again: {count(len(found.judged), 'trial')} with a whole conversation"
    if not found.rerun and not found.judged and not found.left:
        yield "--retry-errors: no trial of this run met an error"


def resume_command(run: Path | str, request: RunRequest, index: str | None) -> str:
    """The command that runs the rest of `run`; `index` is `--index`, shown without password."""
    words = ["skillup", "run", "--resume", str(run)]
    if request.executor != "local":
        words += ["--executor", request.executor]
        words += ["--scheduler", request.scheduler] if request.scheduler is not None else []
    if index is not None:
        words += ["--index", re.sub(r"^([^:]+://[^:@/]*:).*@", r"\1***@", index)]
    return shlex.join(words)


def milliseconds_of_starts(events: Iterable[Mapping[str, Any]]) -> int:
    """Of all starts of a run, each from its first journal entry to its last, if it is later."""
    starts: list[tuple[datetime, datetime]] = []
    for event in events:
        try:
            at = datetime.fromisoformat(event["time"])
        except (KeyError, TypeError, ValueError):  # a damaged journal
            continue
        if not starts or event.get("event") in ("run_created", "run_reopened"):
            starts.append((at, at))
        starts[-1] = starts[-1][0], at
    return round(sum(max(0.0, (last - first).total_seconds()) for first, last in starts) * 1000)


# Signals: the first ends the agents of a run in order, the second at once.


def run_stoppable(
    work: Callable[[], Awaitable[None]], stopping: Callable[[int], None], resume_command: str
) -> bool:
    """As :func:`until_signalled`, in an event loop of its own. Errors name how to resume."""
    try:
        return anyio.run(until_signalled, work, stopping)
    except BaseExceptionGroup as group:
        error = first_skillup_error(group)
        if error is None:
            raise
        if isinstance(error, UsageError):
            raise error from group
        hint = "; ".join(filter(None, [error.hint, f"go on with: {resume_command}"]))
        raise SkillupError(error.message, hint=hint) from group


async def until_signalled(
    work: Callable[[], Awaitable[None]], stopping: Callable[[int], None] = lambda _: None
) -> bool:
    """Await `work`, or cancel it at a signal; a second one kills its agents. Whether one came.

    `stopping` is told which one it is. Later ones are ignored.
    """
    expected = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # not below `nohup`
        expected.append(signal.SIGHUP)
    times = 0
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal times
                try:
                    with anyio.open_signal_receiver(*expected) as signals:
                        async for _ in signals:
                            times += 1
                            with suppress(OSError):  # a terminal that was closed
                                stopping(times)
                            scope.cancel()
                            if times == 2:
                                _leave_soon()
                                break
                finally:
                    # What is left to do takes a moment, and another Ctrl-C would lose it.
                    for number in expected if times else ():
                        signal.signal(number, signal.SIG_IGN)

            group.start_soon(watch)
            await work()
        group.cancel_scope.cancel()
    return times > 0


def _leave_soon() -> None:
    """Agents that are dead are waited for no more; only a defect could delay the end now."""
    kill_running()
    leave = threading.Timer(_PATIENCE_SECONDS, os._exit, [int(ExitCode.INTERRUPTED)])
    leave.daemon = True
    leave.start()


def first_skillup_error(error: BaseException) -> SkillupError | None:
    """The error that a user can act on: `error`, or one in it if it is a group."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(first_skillup_error, error.exceptions)), None)
    return error if isinstance(error, SkillupError) else None
