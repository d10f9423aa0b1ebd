"""`skillup run`: run the conversations and judge them."""

from __future__ import annotations

import os
import sys
from dataclasses import fields, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from skillup.cli import options as o
from skillup.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from skillup.app.request import RunRequest
    from skillup.app.run_session import RunSession
    from skillup.schema.grade import RunResult


def run(
    paths: o.Paths = None,
    engines: o.Engines = None,
    model: o.Model = None,
    parallel: o.Parallel = None,
    trials: o.Trials = None,
    trials_from_turn: o.TrialsFromTurn = None,
    cases: o.CaseGlobs = None,
    tags: o.Tags = None,
    item: o.Item = None,
    sample_size: o.SampleSize = None,
    shard: o.Shard = None,
    seed: o.RunSeed = 0,
    variables: o.Vars = None,
    trust: o.Trust = False,
    baseline: o.Baseline = False,
    out: o.RunOut = None,
    resume: o.Resume = None,
    retry_errors: o.RetryErrors = False,
    max_fail: o.MaxFail = None,
    max_cost_usd: o.MaxCost = None,
    max_tokens: o.MaxTokens = None,
    time_limit: o.TimeLimit = None,
    until_decided: o.UntilDecided = False,
    pass_rate: o.PassRate = None,
    rate_limit_wait: o.RateLimitWait = None,
    executor: o.Executor = "local",
    scheduler: o.Scheduler = None,
    judge_model: o.JudgeModelName = None,
    no_judge_cache: o.NoJudgeCache = False,
    reports: o.Reports = None,
    keep_workspaces: o.KeepWorkspaces = False,
    index: o.IndexUrl = None,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    as_json: o.AsJson = False,
) -> int:
    """Run suites, single cases, or a skill's evals/.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted.
    """
    given = locals()  # what a run is asked to do has the names of these options
    from skillup.app.request import RunRequest
    from skillup.reports.formats import parse_formats

    options = {f.name: given[f.name] for f in fields(RunRequest) if given.get(f.name) is not None}
    options |= {name: tuple(v) for name, v in options.items() if isinstance(v, list)}
    options |= {"paths": tuple(map(str, paths or ())), "reports": parse_formats(reports or ())}
    request, earlier = _resumed_or_new(
        RunRequest(**options), resume, out, retry_errors=retry_errors
    )
    shown = _Shown(quiet=quiet, verbose=verbose, as_json=as_json, index=index)
    return shown.run(request, out, earlier, retry_errors=retry_errors, keep=keep_workspaces)


def _resumed_or_new(
    request: RunRequest, resume: str | None, out: Path | None, *, retry_errors: bool
) -> tuple[RunRequest, Path | None]:
    """What is to run, and the earlier run that it continues."""
    from skillup.app.request import FALLBACK_VARIABLE, default_paths
    from skillup.app.resume import requested_again
    from skillup.app.runs import run_path

    if retry_errors and resume is None:
        raise UsageError(
            "--retry-errors runs trials of an earlier run again, and no run was named",
            hint="name it: --resume RUN --retry-errors; to retry within a run, there is "
            "retry_policy in the suite",
        )
    if resume is not None:
        earlier = run_path(resume)
        return requested_again(earlier, request, out), earlier
    paths = default_paths([Path(path) for path in request.paths])
    fallback = os.environ.get(FALLBACK_VARIABLE) or None
    directory = str(Path.cwd())
    new = replace(
        request, paths=tuple(map(str, paths)), directory=directory, judge_model_fallback=fallback
    )
    return new, None


class _Shown:
    """A run, and what is shown of it."""

    def __init__(self, *, quiet: bool, verbose: bool, as_json: bool, index: str | None) -> None:
        from skillup.reports.terminal.layout import make_console

        self.quiet, self.verbose, self.as_json, self.index = quiet, verbose, as_json, index
        self.console = make_console()

    def say(self, text: str, style: str | None = "yellow") -> None:
        from skillup.reports.terminal.layout import make_text

        self.console.print(make_text(text), style=style, soft_wrap=True)

    def run(
        self,
        request: RunRequest,
        out: Path | None,
        earlier: Path | None,
        *,
        retry_errors: bool,
        keep: bool,
    ) -> int:
        """Open, run, conclude, show; the exit code."""
        from skillup.app.executor import check_executor
        from skillup.app.planning import plan_of
        from skillup.app.resume import resume_command, retry_lines
        from skillup.app.run_session import RunSession
        from skillup.app.shutdown import Shutdown
        from skillup.reports.terminal.progress import reporter_for

        check_executor(request, keep=keep)
        plan, parallel = plan_of(request)
        with RunSession(
            request,
            plan,
            parallel=parallel,
            path=out,
            resume=earlier,
            retry_errors=retry_errors,
            keep=keep,
            own_process=True,
            warn=lambda text: self.say(f"warning: {text}"),
        ) as session:
            if retry_errors:
                for line in retry_lines(session.retried):
                    self.say(line, None)
            command = resume_command(session.directory.path, request, self.index)
            with reporter_for(
                plan,
                self.console,
                quiet=self.quiet or self.as_json,
                verbose=self.verbose,
                mask=session.secrets.mask,
                finished=session.directory.finished_jobs() if earlier is not None else (),
            ) as reporter:
                interrupted = Shutdown(reporter.stopping, command).run(
                    lambda: session.run(reporter)
                )
            result = session.conclude(interrupted=interrupted)
            # First of all: whoever reads what is printed may go away (`| head`), which ends us.
            written = session.publish(result, self.index)
        self._print(session, result, command, written)
        return ExitCode.INTERRUPTED if interrupted else exit_code(result)

    def _print(
        self, session: RunSession, result: RunResult, command: str, written: list[Path]
    ) -> None:
        from skillup.executors.retries import worth_retrying
        from skillup.reports.terminal.listing import shown_path
        from skillup.reports.terminal.result import print_ending, print_look, print_result
        from skillup.store.files import to_json

        path = session.directory.path
        for aside in session.directory.set_aside:
            what = "was not written by this run, or damaged, and was set aside"
            self.say(f"warning: {shown_path(aside)} {what}")
        if self.as_json:
            sys.stdout.write(to_json(result, session.secrets.mask, indent=2).decode())
        else:
            print_result(result, shown_path(path), self.console, verbose=self.verbose)
        print_ending(result, command, self.console)
        count = worth_retrying(result.cases)
        if count:
            met = "1 trial met an error" if count == 1 else f"{count} trials met an error"
            self.say(f"{met}; once that is mended: {command} --retry-errors")
        if not self.quiet and not self.as_json:
            print_look(written, quote(shown_path(path)), self.console)


def exit_code(result: RunResult) -> ExitCode:
    """Errors outrank failures, as does what kept trials from running, unless it was failures.

    A trial without the skill that fails is no failure of the skill.
    """
    summary, baseline = result.summary, result.summary.baseline
    errors = summary.error + (baseline.error if baseline is not None else 0)
    by_failures = result.stopped is not None and result.stopped.kind == "max_fail"
    if errors or (result.not_run and not by_failures):
        return ExitCode.ERROR
    return ExitCode.FAILED if summary.fail or result.not_run else ExitCode.PASSED
