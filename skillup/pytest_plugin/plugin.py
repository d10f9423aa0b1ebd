"""The hooks: cases are collected, run, and reported. Only where `--skillup` is given."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from skillup.app.planning import warn_of_spared
from skillup.app.run_session import RunSession, first_skillup_error
from skillup.errors import SkillupError
from skillup.load.discover import workspace_root
from skillup.plan import Job
from skillup.process import ProcessRegister
from skillup.pytest_plugin.items import Markers, SuiteFile, TrialItem
from skillup.pytest_plugin.suites import add_to_arguments, check_out, selected_suites
from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.listing import shown_path
from skillup.reports.terminal.progress import PlainReporter
from skillup.schema.grade import Grade
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.store.places import runs_folder
from skillup.store.run_directory import RESULT_FILE, RUN_FILE
from skillup.store.trials import RECORD_FILE

_KEY = "skillup"


class SkillupPlugin:
    """The run of a pytest session: opened when its first case runs, closed when the session ends.

    Conversations run in an event loop of their own, in a thread of their own: pytest, and plug-ins
    of it that have event loops, are not disturbed. With pytest-xdist all cases go to one worker.

    No properties: some versions of pytest get every attribute of a plug-in, to look for fixtures.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that cannot be."""
        self.suites = selected_suites(config)
        self.markers = Markers(config)
        self._root = config.rootpath
        worker = getattr(config, "workerinput", None)
        self._is_worker = worker is not None
        self._run_id: str = new_run_id() if worker is None else worker[_KEY]["run_id"]
        folder = runs_folder(workspace_root(self.suites.directory))
        self._path = self.suites.out or folder / self._run_id
        if worker is not None:
            self._path = Path(worker[_KEY]["path"])
        elif not config.getoption("collectonly"):
            check_out(self.suites.out)
        self._session: RunSession | None = None
        self._refused: SkillupError | None = None
        self._selected: list[Job] = []
        self._warnings: list[str] = []
        add_to_arguments(config, list(self.suites.suites))

    def run_trial(self, job: Job) -> Grade:
        """The trial's grade. Raises SkillupError if the run cannot be made or gone on with.

        Skips the item of one that depends on what was not run. Ctrl-C ends the trial's processes.
        """
        self._opened()
        future = self._portal.start_task_soon(self._trials.hold, job)
        try:
            grade = future.result()
        except BaseExceptionGroup as group:
            raise first_skillup_error(group) or group from None
        except BaseException:
            future.cancel()
            raise
        if grade is None and self._trials.stopped is None:
            why = self._trials.why_not_held(job)
            if why is not None:
                pytest.skip(why)
        if grade is None:
            raise SkillupError(f"not run: {self._trials.stopped or 'it was cancelled'}")
        return grade

    def record_of(self, job: Job) -> str:
        """Where the trial's record is."""
        return shown_path(self._opened().directory.trial_directory(job.id) / RECORD_FILE)

    def mask(self, text: str) -> str:
        """`text` without secrets."""
        return self._opened().secrets.mask(text)

    def _opened(self) -> RunSession:
        """What keeps the first item from it keeps all others from it, too."""
        if self._refused is not None:
            raise self._refused
        if self._session is None:
            try:
                self._open()
            except SkillupError as error:
                self._refused = error
            except OSError as error:
                self._refused = SkillupError(f"the run could not be opened: {error}")
        if self._session is None:
            raise self._refused or SkillupError("the run is closed")
        return self._session

    def _open(self) -> None:
        request, plan = self.suites.narrowed(self._selected)
        if self.suites.out is None:
            default_run_path(workspace_root(self.suites.directory), self._run_id)
        # A worker of pytest-xdist that took the place of one that died goes on with its run.
        earlier = self._path if self._is_worker and (self._path / RUN_FILE).exists() else None
        with ExitStack() as undo:
            session = RunSession.open(
                request, plan, path=self._path, run_id=self._run_id, resume=earlier
            )
            undo.enter_context(session)
            self._loop = undo.enter_context(ExitStack())
            self._loop.enter_context(ProcessRegister(session.options.register_dir))
            self._portal = self._loop.enter_context(start_blocking_portal())
            self._trials = session.stepwise(PlainReporter(plan, make_console(), quiet=True))
            self._portal.call(self._trials.open)
            undo.pop_all()
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """The suites that were selected; other files are none of our business."""
        if file_path.resolve() in self.suites.suites:
            return SuiteFile.of(parent, file_path, self)
        return None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is left after `-k`, `-m` and the like is what the run is about."""
        self._selected = [item.job for item in session.items if isinstance(item, TrialItem)]

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        """Warnings of validation."""
        found = any(isinstance(item, TrialItem) for item in items)
        return [f"skillup: {line}" for line in self.suites.warnings] if found else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """The controller of pytest-xdist tells each worker what the session's run is."""
        node.workerinput[_KEY] = {"run_id": self._run_id, "path": str(self._path)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """All cases in one worker: only one process may write a run. Other tests as ever."""
        from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

        mode = config.getoption("dist")

        class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(scheduling, nodeid: str) -> str:  # noqa: N805
                file = nodeid.partition("::")[0]
                if (self._root / file).resolve() in self.suites.suites:
                    return _KEY
                scopes = {"loadfile": file, "loadscope": nodeid.rpartition("::")[0]}
                return scopes.get(mode, nodeid)

            def remove_node(scheduling, node: Any) -> str | None:  # noqa: N805
                """The item during which a worker died, if one did: nobody runs it again."""
                units = scheduling.assigned_work[node].values()
                left = [(unit, item) for unit in units for item in unit if not unit[item]]
                for unit, item in left[:1]:
                    unit[item] = True
                super().remove_node(node)
                return left[0][1] if left else None

        return Scheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker has to say, for the controller's summary."""
        self._warnings += getattr(node, "workeroutput", {}).get(_KEY, [])

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """End agents that are still there, and write the result; pytest's summary comes after."""
        if self._session is not None:
            if self._is_worker:
                self._warnings += self.suites.warnings
            warn_of_spared(self._session.secrets, self._warn)
            with self._reported():
                self._close(self._session)
        if self._is_worker:
            session.config.workeroutput[_KEY] = self._warnings  # type: ignore[attr-defined]
        try:
            return (yield)
        finally:
            written = (self._path / RUN_FILE).exists()
            if not self._is_worker and written and not (self._path / RESULT_FILE).exists():
                with self._reported():
                    self._conclude_for_worker()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Trouble at the end is a line of pytest's summary."""
        try:
            yield
        except SkillupError as error:
            self._warnings.append(f"the result was not written: {error.message}")

    def _conclude_for_worker(self) -> None:
        """The worker that had the run died, and there was nothing left for another one."""
        planned = set(RunDirectory.open(self._path).run_info()["jobs"])
        jobs = [job for job in self.suites.plan.jobs if job.id in planned]
        with RunSession.open(*self.suites.narrowed(jobs), resume=self._path) as session:
            session.read_finished()
            result = session.conclude()
        session.publish(result)

    def _close(self, session: RunSession) -> None:
        self._session = None
        with session:
            self._portal.call(session.models.close)
            self._loop.close()
            result = session.conclude(frozenset(job.id for job in self._selected))
        session.publish(result)

    def _warn(self, text: str) -> None:
        self._warnings.append(f"warning: {text}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What people should know, and where the records are."""
        for line in self._warnings:
            terminalreporter.write_line(f"skillup: {line}")
        if self._path.is_dir():
            terminalreporter.write_line(f"skillup: {shown_path(self._path)}")
