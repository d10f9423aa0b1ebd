"""The hooks: cases are collected, held, and told of. Only there where `--skillup` is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.cli.runs_named import runs_in
from skillup.errors import SkillupError
from skillup.load.discover import workspace_root
from skillup.plan import Job, Plan
from skillup.pytest_plugin.asked import add_to_arguments, asked_for
from skillup.pytest_plugin.holding import Holding
from skillup.pytest_plugin.items import SuiteFile, TrialItem
from skillup.pytest_plugin.markers import Markers
from skillup.pytest_plugin.planning import Planned, planned
from skillup.reports.problems import shown_path
from skillup.reports.text import listed_ids
from skillup.schema.grade import Grade
from skillup.store import default_run_path, new_run_id

_RUN = "skillup_run"


class SkillupPlugin:
    """One for each process: with pytest-xdist, each worker has a run directory of its own.

    No properties: some versions of pytest get every attribute of a plug-in, to look for fixtures.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Raises pytest.UsageError for options that cannot be."""
        self.config = config
        self.markers = Markers(config)
        self._asked = asked_for(config)
        self._holding: Holding | None = None
        self._planned: Planned | None = None
        self._run_path: Path | None = None
        self._run_id = new_run_id()
        self._selected: list[Job] = []
        self._trouble: str | None = None
        add_to_arguments(config, list(self._asked.suites))

    def planned(self) -> Planned:
        """All suites' jobs; made when the first is collected."""
        self._planned = self._planned or planned(self._asked)
        return self._planned

    def run_path(self) -> Path:
        """The run directory; with xdist, the one that holds those of the workers.

        Raises SkillupError if its parents cannot be made.
        """
        if self._run_path is None:
            given: dict[str, str] = getattr(self.config, "workerinput", {})
            root = workspace_root(self._asked.directory)
            if _RUN in given:
                self._run_path = Path(given[_RUN])
            else:
                self._run_path = self._asked.out or default_run_path(root, self._run_id)
        return self._run_path

    def holding(self) -> Holding:
        """The session's run; made when it is first asked for. Raises SkillupError."""
        if self._holding is None:
            worker = getattr(self.config, "workerinput", {}).get("workerid")
            self._holding = Holding(
                self._asked,
                self._selected_plan(),
                self.run_path() / worker if worker else self.run_path(),
                None if worker else self._run_id,
                indexed=worker is None,
            )
        return self._holding

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
        """Hold the trial. Raises SkillupError if the run cannot be made or gone on with."""
        grade = self.holding().hold(job)
        if grade is None:
            raise SkillupError(f"not held: {self.holding().stopped or 'it was cancelled'}")
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

    def pytest_report_collectionfinish(self) -> list[str]:
        """Warnings of validation."""
        return [f"skillup: {line}" for line in self.planned().warnings] if self._selected else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """The controller of pytest-xdist tells each worker where the session's run is."""
        try:
            node.workerinput[_RUN] = str(self.run_path())
        except SkillupError as error:
            raise pytest.UsageError(error.message) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End agents that are still there, and write the result."""
        holding, self._holding = self._holding, None
        if holding is None:
            return
        workers = "workerinput" in vars(self.config)
        wanted = [] if workers else [job.id for job in self._selected]
        try:
            holding.close(wanted)
        except SkillupError as error:
            self._trouble = error.message

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Where the records are; with xdist, in which runs."""
        if self._trouble is not None:
            terminalreporter.write_line(f"skillup: the result was not written: {self._trouble}")
        if self._run_path is not None and self._run_path.is_dir():
            where = f"skillup: {shown_path(self._run_path)}"
            workers = runs_in(self._run_path)
            if workers:
                where += f": a run of each worker, none of them indexed: {listed_ids(workers)}"
            terminalreporter.write_line(where)
