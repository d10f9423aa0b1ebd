"""The hooks: cases are collected, held, and told of. Only there where `--skillup` is given."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skillup.app.planning import secrets_of_plan, warn_of_spared
from skillup.app.xdist import has_workers, merge_workers
from skillup.errors import SkillupError
from skillup.executors.orphans import end_what_was_left
from skillup.load.discover import workspace_root
from skillup.plan import Job, Plan
from skillup.pytest_plugin.asked import add_to_arguments, asked_for, refuse_place_in_use
from skillup.pytest_plugin.holding import PytestRun, publish
from skillup.pytest_plugin.items import SuiteFile, TrialItem
from skillup.pytest_plugin.markers import Markers
from skillup.pytest_plugin.planning import Planned, planned
from skillup.reports.terminal.listing import shown_path
from skillup.schema.grade import Grade
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.store.places import runs_folder

_RUN, _RUN_ID = "skillup_run", "skillup_run_id"


class SkillupPlugin:
    """One for each process. With pytest-xdist workers hold the cases, each in a directory of its
    own, of which the controller makes the session's run when they have ended.

    No properties: some versions of pytest get every attribute of a plug-in, to look for fixtures.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that cannot be."""
        self.config = config
        self.markers = Markers(config)
        self._asked = asked_for(config)
        self._holding: PytestRun | None = None
        self._unopened: SkillupError | None = None
        self._planned: Planned | None = None
        self._run_path: Path | None = None
        self._worker: dict[str, str] | None = getattr(config, "workerinput", None)
        self._run_id = new_run_id() if self._worker is None else self._worker[_RUN_ID]
        self._selected: list[Job] = []
        self._warnings: list[str] = []
        self._trouble: str | None = None
        if self._worker is None and not config.getoption("collectonly"):
            refuse_place_in_use(self._asked)
        add_to_arguments(config, list(self._asked.suites))

    def planned(self) -> Planned:
        """All suites' jobs; made when the first is collected."""
        self._planned = self._planned or planned(self._asked)
        return self._planned

    def run_path(self) -> Path:
        """The session's run directory; nothing is made."""
        if self._run_path is None:
            if self._worker is not None:
                self._run_path = Path(self._worker[_RUN])
            else:
                folder = runs_folder(workspace_root(self._asked.directory))
                self._run_path = self._asked.out or folder / self._run_id
        return self._run_path

    def holding(self) -> PytestRun:
        """The session's run; made when it is first asked for. Raises SkillupError."""
        if self._unopened is not None:
            raise self._unopened
        if self._holding is None:
            self._holding = self._opened()
        return self._holding

    def _opened(self) -> PytestRun:
        """What keeps the first item from it keeps all others from it, too."""
        try:
            if self._asked.out is None:
                # What no run is made for leaves no trace.
                default_run_path(workspace_root(self._asked.directory), self._run_id)
            return PytestRun(
                self.planned().asked(self._asked),
                self._selected_plan(),
                self.run_path(),
                self._run_id,
                self._worker["workerid"] if self._worker is not None else None,
            )
        except SkillupError as error:
            self._unopened = error
            raise
        except OSError as error:
            self._unopened = SkillupError(f"the run could not be opened: {error}")
            raise self._unopened from error

    def _selected_plan(self) -> Plan:
        """What is left after `-k` and `-m`, with what it depends on."""
        jobs = {job.id: job for job in self.planned().plan.jobs}
        wanted: set[str] = set()
        waiting = [job.id for job in self._selected]
        while waiting:
            name = waiting.pop()
            if name in jobs and name not in wanted:
                wanted.add(name)
                waiting.extend(jobs[name].depends_on)
        return Plan(tuple(job for name, job in jobs.items() if name in wanted))

    def grade_of(self, job: Job) -> Grade:
        """Hold the trial. Raises SkillupError if the run cannot be made or gone on with.

        Skips the item of one that needs what was not run: the run lacks both.
        """
        holding = self.holding()
        grade = holding.hold(job)
        if grade is None and holding.stopped is None:
            why = holding.why_not_held(job)
            if why is not None:
                pytest.skip(why)
        if grade is None:
            raise SkillupError(f"not held: {holding.stopped or 'it was cancelled'}")
        return grade

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """The suites that were asked for; other files are none of our business."""
        if file_path.resolve() in self._asked.suites:
            return SuiteFile.of(parent, file_path, self)
        return None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is left after `-k`, `-m` and the like is what the run is about."""
        self._selected = [item.job for item in session.items if isinstance(item, TrialItem)]

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        """Warnings of validation; `self._selected` may not be known yet."""
        if not any(isinstance(item, TrialItem) for item in items):
            return []
        return [f"skillup: {line}" for line in self.planned().warnings]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """The controller of pytest-xdist tells each worker what the session's run is."""
        node.workerinput.update({_RUN: str(self.run_path()), _RUN_ID: self._run_id})

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """End agents that are still there, and write the result.

        A worker has told the controller that it has ended, and before that nothing is merged, when
        this goes on; pytest's summary comes after it.
        """
        with self._told():
            holding, self._holding = self._holding, None
            if holding is not None:
                warn_of_spared(holding.secrets, self._warn)
                holding.close([job.id for job in self._selected])
        try:
            return (yield)
        finally:
            if self._worker is None and self._run_path is not None:
                with self._told():
                    self._merge(self._run_path)

    def _merge(self, run: Path) -> None:
        if not has_workers(run):
            return
        end_what_was_left()  # a worker may have been killed
        plan = self.planned().plan
        # The workers' own lines nobody sees.
        self._warnings += self.planned().warnings
        secrets = secrets_of_plan(plan, self._asked.directory, dict(os.environ))
        warn_of_spared(secrets, self._warn)
        result = merge_workers(run)
        held = set(RunDirectory.open(run).run_info()["jobs"])
        # Suites of which nothing was selected have no say in what is written.
        own = Plan(tuple(job for job in plan.jobs if job.id in held))
        publish(run, result, self._asked, own, secrets)

    def _warn(self, text: str) -> None:
        self._warnings.append(f"warning: {text}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Trouble at the end is a line of pytest's summary."""
        try:
            yield
        except SkillupError as error:
            self._trouble = error.message

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What people should know, and where the records are."""
        for line in self._warnings:
            terminalreporter.write_line(f"skillup: {line}")
        if self._trouble is not None:
            terminalreporter.write_line(f"skillup: the result was not written: {self._trouble}")
        if self._run_path is not None and self._run_path.is_dir():
            terminalreporter.write_line(f"skillup: {shown_path(self._run_path)}")
