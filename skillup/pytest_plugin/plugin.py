"""The hooks: cases are collected, run, and reported. Only where `--skillup` is given."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import Failed  # what `pytest.fail` raises; it has no public name
from anyio.from_thread import start_blocking_portal
from rich.console import Console

from skillup.app.interruption import first_skillup_error
from skillup.app.planning import FALLBACK_VARIABLE, RunRequest, plan_of, warn_of_spared
from skillup.app.run_session import RunSession
from skillup.errors import InvalidFilesError, RunDirectoryError, SkillupError, UsageError
from skillup.load.discover import find_suites, workspace_root
from skillup.plan import Job, Plan
from skillup.process.tree import process_register
from skillup.reports.terminal.conversation import ShownTrial, TrialPrinter
from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.text import one_line, plain, problem_line, shown_path
from skillup.schema.base import MOST_TRIALS
from skillup.schema.grade import Grade
from skillup.store import default_run_path, new_run_id
from skillup.store.places import check_free, runs_folder
from skillup.store.remote import is_url

_KEY = "skillup"
_WIDTH = 120
# pytest does something of its own for these, or `-m` reads them as words of its own.
_NO_MARKERS = frozenset(("filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"))
_NO_MARKERS |= {"and", "or", "not", "skillup"}


class NotRun(Failed):
    """The conversation could not be run or judged: an error, and no failure of the skill."""

    __module__ = "builtins"  # so that pytest's summary has the short name


class NotPassed(Failed):
    """The conversation was run, and the verdict is FAIL."""

    __module__ = "builtins"


def with_hint(error: SkillupError) -> str:
    return plain(error.message + (f"\n  hint: {error.hint}" if error.hint else ""))


class SkillupPlugin:
    """The run of a pytest session: opened when its first case runs, closed when the session ends.

    Conversations have an event loop in a thread of their own: nothing of pytest's is disturbed. No
    properties: some versions of pytest get every attribute of a plug-in, to look for fixtures.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError where a path is no suite, and for options that cannot be."""
        self._config, directory = config, config.invocation_params.dir
        try:
            found = find_suites([directory / path for path in config.getoption("skillup")])
        except UsageError as error:
            raise pytest.UsageError(f"--skillup {with_hint(error)}") from None
        trials = config.getoption("skillup_trials")
        if trials is not None and not 1 <= trials <= MOST_TRIALS:
            message = f"--skillup-trials {trials}: not a number from 1 to {MOST_TRIALS}"
            raise pytest.UsageError(message)
        self._request = RunRequest(
            paths=tuple(str(path) for suite, only in found.items() for path in only or (suite,)),
            engines=tuple(config.getoption("skillup_engine") or ()),
            model=config.getoption("skillup_model"),
            trials=trials,
            baseline=config.getoption("skillup_baseline"),
            judge_model_fallback=os.environ.get(FALLBACK_VARIABLE) or None,
            directory=str(directory),
        )
        self._suites = tuple(found)
        self._plan: Plan | None = None
        self._plan_warnings: list[str] = []
        self.problem: str | None = None  # With the suites; known once there is a plan
        self._markers = {str(line).partition(":")[0] for line in config.getini("markers")}
        self.add_marker(None, "skillup", "a case of an agent skill")
        worker = getattr(config, "workerinput", None)
        self._is_worker = worker is not None
        self._run_id: str = worker[_KEY] if worker is not None else new_run_id()
        self._workspace = workspace_root(directory)
        out = config.getoption("skillup_out")
        if out is not None and is_url(out):
            raise pytest.UsageError(f"--skillup-out {out}: give a directory here, not a URL")
        self._out = directory / out if out is not None else None
        self._path = self._out or runs_folder(self._workspace) / self._run_id
        if self._out is not None and not self._is_worker and not config.getoption("collectonly"):
            try:
                check_free(self._out)
            except RunDirectoryError as error:
                what = f"--skillup-out: {error.message}\n  hint: name a new or empty directory"
                raise pytest.UsageError(what) from None
        self._session: RunSession | None = None
        self._refused: SkillupError | None = None
        self._selected: list[Job] = []
        self._warnings: list[str] = []
        add_to_arguments(config, self._suites)

    def add_marker(self, item: pytest.Item | None, name: str, about: str) -> None:
        """Mark `item`; each marker is registered once, so that `--strict-markers` knows it."""
        if name not in self._markers:
            self._markers.add(name)
            self._config.addinivalue_line("markers", f"{name}: {about}")
        if item is not None:
            item.add_marker(name)

    def plan(self) -> Plan:
        """Of all suites together; empty if one of them is not valid."""
        if self._plan is None:
            stderr = io.StringIO()
            try:
                with redirect_stderr(stderr):
                    self._plan, _ = plan_of(self._request)
                self._plan_warnings = stderr.getvalue().splitlines()
            except SkillupError as error:
                self._plan, self.problem = Plan(()), with_hint(error)
                if isinstance(error, InvalidFilesError):
                    self.problem = "\n".join(map(problem_line, error.problems))
        return self._plan

    def run_trial(self, job: Job) -> Grade:
        """The trial's grade, or a skipped item. Raises SkillupError; Ctrl-C ends its processes."""
        self.opened()
        future = self._portal.start_task_soon(self._trials.run, job)
        try:
            grade = future.result()
        except BaseExceptionGroup as group:
            raise first_skillup_error(group) or group from None
        except BaseException:
            future.cancel()
            raise
        if grade is None and self._trials.stopped is None:
            why = self._trials.unmet(job)
            if why is not None:
                pytest.skip(why)
        if grade is None:
            raise SkillupError(f"not run: {self._trials.stopped or 'it was cancelled'}")
        return grade

    def report_of(self, job: Job, grade: Grade, head: str) -> str:
        """Below `head` the trial, as `skillup show` prints it, without secrets."""
        run = self.opened()
        place = shown_path(run.directory.path)
        record, name = run.directory.read_record(job.id), plain(job.loaded.id)
        printed = io.StringIO()
        console = Console(file=printed, width=_WIDTH, highlight=False, emoji=False)
        trial = ShownTrial(job.id, name, place, record, grade, lambda *_: ())
        TrialPrinter(trial, console).print()
        return run.secrets.mask(f"{plain(head)}\n\n{printed.getvalue()}")

    def opened(self) -> RunSession:
        """What keeps the first item from it keeps all others from it, too."""
        if self._session is None and self._refused is None:
            try:
                self._session = self._open()
            except SkillupError as error:
                self._refused = error
            except OSError as error:
                self._refused = SkillupError(f"the run could not be opened: {error}")
        if self._session is None:
            raise self._refused or SkillupError("the run is closed")
        return self._session

    def _open(self) -> RunSession:
        """A run of what was selected, and of what that depends on."""
        needed = {job.id for job in self._selected}
        for job in reversed(self.plan().jobs):  # each stands after those it depends on
            needed.update(job.depends_on if job.id in needed else ())
        plan = Plan(tuple(job for job in self.plan().jobs if job.id in needed))
        request = replace(self._request, jobs=tuple(job.id for job in plan.jobs))
        if self._out is None:
            default_run_path(self._workspace, self._run_id)
        with ExitStack() as undo:
            session = RunSession(request, plan, path=self._path, run_id=self._run_id)
            undo.enter_context(session)
            self._loop = undo.enter_context(ExitStack())
            self._loop.enter_context(process_register(session.options.register_dir))
            self._portal = self._loop.enter_context(start_blocking_portal())
            self._trials = session.stepwise(PlainReporter(plan, make_console, quiet=True))
            self._portal.call(self._trials.open)
            gateway = self._portal.wrap_async_context_manager(self._trials.gateway())
            self._loop.enter_context(gateway)
            undo.pop_all()
        return session

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        if file_path.resolve() not in self._suites:
            return None
        made: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
        made.plugin = self
        return made

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is left after `-k`, `-m` and the like is what the run is about."""
        self._selected = [item.job for item in session.items if isinstance(item, TrialItem)]

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        found = any(isinstance(item, TrialItem) for item in items)
        return [f"skillup: {line}" for line in self._plan_warnings] if found else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """The controller of pytest-xdist gives each worker the id of the session's run."""
        node.workerinput[_KEY] = self._run_id

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """All cases in one worker: only one process may write a run. Other tests as ever."""
        from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

        mode, root, suites = config.getoption("dist"), config.rootpath, self._suites

        class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                file = nodeid.partition("::")[0]
                if (root / file).resolve() in suites:
                    return _KEY
                scope, group = nodeid.rpartition("::")[0], nodeid.rpartition("@")[2]
                scopes = {"loadfile": file, "loadscope": scope, "loadgroup": group}
                return scopes.get(mode, nodeid)

        return Scheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """The warnings of a worker, for the controller's summary."""
        self._warnings += getattr(node, "workeroutput", {}).get(_KEY, [])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """End agents that are still there, and write the result; pytest's summary comes after."""
        run, self._session = self._session, None
        if run is None:
            return
        warn_of_spared(run.secrets, lambda text: self._warnings.append(f"warning: {text}"))
        try:
            with run:
                self._portal.call(run.close_models)
                self._loop.close()
                run.publish(run.conclude(frozenset(job.id for job in self._selected)))
        except SkillupError as error:
            self._warnings.append(f"the result was not written: {error.message}")
        if self._is_worker:
            output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
            output[_KEY] = [*self._plan_warnings, *self._warnings]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._warnings:
            terminalreporter.write_line(f"skillup: {line}")
        if self._path.is_dir():
            terminalreporter.write_line(f"skillup: {shown_path(self._path)}")


class SuiteFile(pytest.File):
    """A suite's `eval.yaml`."""

    plugin: SkillupPlugin

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each trial, marked with its case's tags. Raises CollectError."""
        path, plan = self.path.resolve(), self.plugin.plan()
        if self.plugin.problem is not None:
            raise self.CollectError(self.plugin.problem)
        for job in plan.jobs:
            if job.suite.path != path:
                continue
            # CASE[ENGINE]; CASE[ENGINE-without_skill] of the baseline, CASE[ENGINE-2] a trial
            case = re.sub(r"::+", ":", re.sub(r"\s+", " ", plain(job.loaded.id)))
            variant = [job.variant] if job.variant != "with_skill" else []
            trial = [str(job.trial)] if job.trial > 1 else []
            name = f"{case}[{'-'.join([job.profile.name, *variant, *trial])}]"
            # With its id given as text, pytest 9.2 knows it again after `--lf` (brackets count).
            nodeid = f"{self.nodeid}::{name}"
            item: TrialItem = TrialItem.from_parent(self, name=name, nodeid=nodeid)
            item.job, item.plugin = job, self.plugin
            self.plugin.add_marker(item, "skillup", "")
            for tag in dict.fromkeys(job.loaded.like.tags):
                self.plugin.add_marker(item, marker_of_tag(tag), "a tag of skillup cases")
            yield item


class TrialItem(pytest.Item):
    """One trial. It runs in the set-up, whose errors are pytest's, too; the test is the verdict."""

    job: Job
    plugin: SkillupPlugin
    grade: Grade | None = None

    def setup(self) -> None:
        """Run the conversation. Raises NotRun for an ERROR; an item that skillup skips, skips."""
        if self.config.getoption("setupplan", False):
            return
        try:
            grade = self.plugin.run_trial(self.job)
        except SkillupError as error:
            raise NotRun(with_hint(error), pytrace=False) from None
        self.grade = grade
        # For JUnit XML and other reports; what is not known is left out.
        values = {
            **{name: getattr(grade, name) for name in ("status", "score", "session_id")},
            "cost_usd": grade.cost_usd,
            "judge_cost_usd": grade.judging.cost_usd if grade.judging else None,
            **{name: n for name, n in (grade.usage or {}).items() if name.endswith("_tokens")},
            "run": shown_path(self.plugin.opened().directory.path),
            "job": self.job.id,
        }
        self.user_properties += [(name, n) for name, n in values.items() if n is not None]
        if grade.status == "SKIP":
            pytest.skip(one_line(grade.reason, 300))
        if grade.status == "ERROR":
            known = grade.error or {}
            head = f"{known.get('kind', 'error')}: {known.get('message') or grade.reason}"
            raise NotRun(self.plugin.report_of(self.job, grade, head), pytrace=False)

    def runtest(self) -> None:
        """Raises NotPassed for a FAIL; without the skill that is no failure, and skipped."""
        if self.grade is not None and self.grade.status == "FAIL":
            head = one_line(self.grade.reason, 300)
            if self.job.variant != "with_skill":
                pytest.skip(f"without the skill: failed ({head})")
            raise NotPassed(self.plugin.report_of(self.job, self.grade, head), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The case's own file, which is where a person looks."""
        return self.job.loaded.path, None, self.name


def add_to_arguments(config: pytest.Config, suites: Sequence[Path]) -> None:
    """Have pytest look at the suites' files.

    On the command line `--skillup PATH` is a path as any other: where it is the only one, neither
    `testpaths` nor the working directory is collected. In `addopts` it adds to what is.
    """
    typed = any(str(a).partition("=")[0] == "--skillup" for a in config.invocation_params.args)
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    kept = [] if typed and not given else config.args
    named = {argument.partition("::")[0] for argument in kept}
    directory = config.invocation_params.dir
    # One that is named on the command line is there for the items of it that are named.
    files = [str(p) for p in suites if not named & {str(p), os.path.relpath(p, directory)}]
    config.args[:] = [*kept, *files]
    if not kept:
        config.args_source = pytest.Config.ArgsSource.ARGS


def marker_of_tag(tag: str) -> str:
    """``needs review`` → ``needs_review``; ``skip`` → ``tag_skip``: what could not be a marker."""
    name = re.sub(r"[^\w.-]", "_", tag)
    return f"tag_{name}" if name in _NO_MARKERS or not name or name[0] in "_.-" else name
