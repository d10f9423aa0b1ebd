"""`skillup run`: run the conversations and judge them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, fields
from functools import cache, partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from skillup.cli import options as o
from skillup.cli.entry import report
from skillup.cli.options import flag, option
from skillup.errors import ExitCode, UsageError
from skillup.reports.text import count, print_json, say, shown_path

if TYPE_CHECKING:
    from rich.console import Console

    from skillup.app.planning import RunRequest
    from skillup.reports.terminal.progress import PlainReporter
    from skillup.store.remote import RemoteRun

    Part = str | tuple[str, str]  # A text, or one and its style

_RESUME = "Go on with this run (a directory, a URL, an id, or `last`); finished trials are kept."
_WAIT = "How long agents, judges and simulated users wait out rate limits: 10m; 0: not at all."
_TIME_LIMIT = "Start no more trials after so long: 90s, 8h."
_SEED = "Of --sample-size, and of what the scripted engine draws."
_SHARD = "Only the I-th of N parts; `skillup merge` joins them."
_SCHEDULER = "The Dask scheduler's address: tcp://host:8786."
_COMPARED = "What --until-decided compares with. Default: the suite's gate, or 0.8."
_OUT = "The run directory, or a URL (s3://…). Default: .skillup/runs/…"


def run(
    paths: list[Path] | None = o.PATHS,
    engines: o.Texts = o.ENGINES,
    model: str | None = option(None, "Outranks the profile's model."),
    parallel: int | None = option(None, "Trials at once.", "--parallel", "-j", min=1, max=256),
    trials: int | None = option(None, "How often to run each case.", min=1, max=10_000),
    trials_from_turn: int | None = option(None, "Trials share the turns before this one.", min=1),
    cases: o.Texts = o.CASE,
    tags: o.Texts = o.TAG,
    item: str | None = o.ITEM,
    sample_size: int | None = o.SAMPLE_SIZE,
    shard: str | None = option(None, _SHARD, metavar="I/N"),
    seed: int = option(0, _SEED),
    variables: o.Texts = o.VAR,
    trust: bool = o.TRUST,
    baseline: bool = flag("--baseline", "Run each case without the skill, too."),
    out: str | None = option(None, _OUT, metavar="PATH|URL", parser=o.parse_out),
    resume: str | None = option(None, _RESUME, metavar="RUN"),
    retry_errors: bool = flag("--retry-errors", "With --resume: trials with an ERROR run again."),
    max_fail: int | None = option(None, "Start no more trials after so many bad ones.", min=1),
    max_cost_usd: float | None = option(None, "Start no more trials once so much is spent.", min=0),
    max_tokens: int | None = option(None, "Start no more trials after so many tokens.", min=1),
    time_limit: float | None = option(None, _TIME_LIMIT, metavar="TIME", parser=o.parse_seconds),
    until_decided: bool = flag("--until-decided", "Stop repeating a case whose pass rate is sure."),
    pass_rate: float | None = option(None, _COMPARED),
    rate_limit_wait: float | None = option(None, _WAIT, metavar="TIME", parser=o.parse_seconds),
    executor: str = option("local", "local, or dask: on a cluster."),
    scheduler: str | None = option(None, _SCHEDULER),
    judge_model: str | None = o.JUDGE_MODEL,
    no_judge_cache: bool = flag("--no-judge-cache", "Ask models anew; no stored answer counts."),
    reports: o.Texts = o.REPORTS,
    label: str | None = option(None, "A name for it, in lists and comparisons.", metavar="TEXT"),
    keep_workspaces: bool = flag("--keep-workspaces", "Leave each trial's scratch directory."),
    keep_traffic: bool = flag("--keep-traffic", "Keep requests to models, and answers."),
    dry_run: bool = flag("--dry-run", "Only tell what it would cost and take."),
    index: str | None = o.INDEX,
    quiet: bool = o.QUIET,
    verbose: bool = option(False, "Show the conversations as they go on.", "--verbose", "-v"),
    as_json: bool = o.JSON,
) -> int:
    """Run suites, single cases, or a skill's evals/.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted.
    """
    given = locals()
    if dry_run:
        return _forecast(given)
    with _remote_run(out, resume) as remote:
        if remote is not None and keep_workspaces:
            hint = "choose a directory with --out"
            raise UsageError("--keep-workspaces needs a run directory on this machine", hint=hint)
        earlier = str(remote.path) if remote is not None and resume is not None else resume
        return _run_and_show(given, *_request_of(given, earlier), remote)


def _forecast(given: Mapping[str, Any]) -> int:
    """Say what the run would come to, and start nothing."""
    if given["resume"] is not None:
        raise UsageError("--dry-run is for new runs", hint="leave out --resume")
    from skillup.app.forecast import forecast, past_runs
    from skillup.app.planning import plan_of

    request, _ = _request_of({**given, "retry_errors": False}, None)
    plan, parallel = plan_of(request)
    past = past_runs(plan.jobs[0].suite.root, request.base, given["index"])
    found = forecast(plan.jobs, past, request.parallel or parallel)
    if given["as_json"]:
        print_json({"dry_run": True, **asdict(found)})
    else:
        sys.stdout.write(found.as_text())
    return ExitCode.PASSED


def _remote_run(out: str | None, resume: str | None) -> RemoteRun | nullcontext[None]:
    """The run at the URL that `--resume` or `--out` is, if one is; what fits is seen later."""
    url = resume or out
    if url is None or "://" not in url:
        return nullcontext()
    from skillup.store.remote import RemoteRun

    return RemoteRun(url, resume=resume is not None)


def _request_of(given: Mapping[str, Any], resume: str | None) -> tuple[RunRequest, Path | None]:
    """What is to run, of the options by their names, and the earlier run that it continues."""
    from skillup.app.planning import FALLBACK_VARIABLE, RunRequest, default_paths
    from skillup.reports.formats import parse_formats

    asked = {f.name: given[f.name] for f in fields(RunRequest) if given.get(f.name) is not None}
    asked |= {name: tuple(value) for name, value in asked.items() if isinstance(value, list)}
    asked["reports"] = parse_formats(given["reports"] or ())
    asked["paths"] = tuple(map(str, given["paths"] or ()))
    if resume is not None:
        from skillup.app.interruption import requested_again
        from skillup.app.runs import run_path

        earlier = run_path(resume)
        return requested_again(earlier, RunRequest(**asked), given["out"]), earlier
    if given["retry_errors"]:
        hint = "name it: --resume RUN; to retry within a run, there is retry_policy in the suite"
        what = "--retry-errors runs trials of an earlier run again, and no run was named"
        raise UsageError(what, hint=hint)
    asked["paths"] = tuple(map(str, default_paths(given["paths"])))
    fallback = os.environ.get(FALLBACK_VARIABLE) or None
    return RunRequest(**asked, directory=str(Path.cwd()), judge_model_fallback=fallback), None


def _reporter_type(*, quiet: bool) -> type[PlainReporter]:
    """The live display only for people: some CI systems give their jobs a terminal, and keep all
    that it was sent as a log; and colours that FORCE_COLOR asks for make no terminal of a file.
    """
    from skillup.reports.terminal.progress import PlainReporter

    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    if quiet or in_ci or is_dumb or not sys.stderr.isatty():
        return PlainReporter
    from skillup.reports.terminal.run import LiveReporter

    return LiveReporter


@cache
def _console() -> Console:
    """That of stderr, made when it is first asked for."""
    from skillup.reports.terminal.layout import make_console

    return make_console()


def _say(*parts: Part, style: str = "", whole: bool = True) -> None:
    """A line, on a terminal folded unless it is `whole`; a log needs nothing loaded that draws."""
    if sys.stderr.isatty() or os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}:
        from skillup.reports.terminal.layout import print_line

        print_line(_console(), *parts, style=style, whole=whole)
    else:
        say("".join(part if isinstance(part, str) else part[0] for part in parts))


def _warn(text: str) -> None:
    _say(f"warning: {text}", style="yellow")


def _run_and_show(
    given: Mapping[str, Any], request: RunRequest, earlier: Path | None, remote: RemoteRun | None
) -> int:
    """Open, run, conclude, show; the exit code."""
    from skillup.app.interruption import resume_command, retry_lines, run_stoppable
    from skillup.app.planning import check_executor, plan_of
    from skillup.app.run_session import RunSession

    out, index, as_json, verbose = (given[k] for k in ("out", "index", "as_json", "verbose"))
    keep, retry_errors = given["keep_workspaces"], given["retry_errors"]
    quiet = given["quiet"] or as_json
    check_executor(request, keep=keep)
    plan, parallel = plan_of(request)
    with RunSession(
        request,
        plan,
        parallel=parallel,
        path=remote.path if remote is not None else Path(out) if out is not None else None,
        resume=earlier,
        retry_errors=retry_errors,
        keep=keep,
        own_process=True,
        index=index,
        warn=_warn,
    ) as session:
        for line in retry_lines(session.retried) if retry_errors else ():
            _say(line)
        if remote is not None:
            remote.begin(_warn)
        directory, url = session.directory, remote.url if remote is not None else None
        if not quiet:
            _say(directory.run_info().get("ran", ""))
        command = resume_command(url or directory.path, request, index)
        with _reporter_type(quiet=quiet)(
            plan,
            _console,
            quiet=quiet,
            verbose=verbose,
            mask=session.secrets.mask,
            finished=directory.finished_jobs() if earlier is not None else (),
        ) as reporter:
            interrupted = run_stoppable(partial(session.run, reporter), reporter.stopping, command)
        result = session.conclude(interrupted=interrupted)
        # First of all: whoever reads what is printed may go away (`| head`), which ends us.
        written = session.publish(result, url)
    trouble = remote.end() if remote is not None else None
    # Not needed before the first agent has ended.
    from skillup.executors.retries import worth_retrying
    from skillup.reports.formats import FORMATS, HTML
    from skillup.reports.result import exit_code, stop_lines
    from skillup.reports.terminal.run import print_result
    from skillup.store.stored_run import result_json

    path = url or shown_path(directory.path)
    if as_json:
        sys.stdout.writelines(map(bytes.decode, result_json(result, session.secrets.mask)))
    else:
        print_result(result, path, partial(_say, whole=False), quiet=quiet, verbose=verbose)
    for line in stop_lines(result, command):  # Whatever else is printed
        _say(line, style="yellow")
    if errors := worth_retrying(session.lines.values()):
        met = f"{count(errors, 'trial')} met an error"
        _say(f"{met}; once that is mended: {command} --retry-errors", style="yellow")
    if not quiet:
        for file in written:
            _say(f"report: {path}/{file.name}", style="dim")
        if sys.stderr.isatty() and FORMATS[HTML] not in {file.name for file in written}:
            _say(f"look: skillup show {quote(path)} · skillup view {quote(path)}", style="dim")
    if trouble is not None:
        report(trouble)
    if interrupted:
        return ExitCode.INTERRUPTED
    code = exit_code(result.summary, len(result.not_run), result.stopped)
    return code if trouble is None else ExitCode.ERROR
