"""The run of a pytest session: made when its first case is held, closed when the session ends."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from skillup.analysis import with_analysis
from skillup.app.history import index_finished_run
from skillup.app.judges import answer_cache, router_of, simulators_of
from skillup.app.limits import paces_of
from skillup.app.planning import secrets_of_plan
from skillup.app.run import directory_for, first_refusal, formats_of
from skillup.executors import RunOptions
from skillup.executors.budgets import StopPolicy
from skillup.executors.orphans import end_what_was_left
from skillup.executors.stepwise import Stepwise, unclaimed
from skillup.judges.models.client import Models
from skillup.plan import Job, Plan
from skillup.process import ProcessRegister
from skillup.pytest_plugin.asked import SessionOptions
from skillup.pytest_plugin.claims import Claims
from skillup.redaction.secrets import Secrets
from skillup.reports.formats import write_reports
from skillup.reports.result import Ending, build_result
from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.progress import PlainReporter
from skillup.schema.grade import Grade, RunResult
from skillup.store import RunDirectory
from skillup.store.trials import RECORD_FILE


class PytestRun:
    """Holds jobs of a plan as `skillup run` does, one at a time.

    Conversations are held in an event loop of their own, in a thread of their own: pytest, and
    plug-ins of it that have event loops, are not disturbed.
    """

    def __init__(
        self, asked: SessionOptions, plan: Plan, run: Path, run_id: str, worker: str | None
    ) -> None:
        """`run`: the session's run directory, which is made; `run_id`: its id.

        A `worker` of pytest-xdist has a directory of its own in it, see :class:`Claims`. Raises
        SkillupError if it cannot be made.
        """
        self.grades: dict[str, Grade] = {}
        self._asked = asked
        self._plan = plan
        self._run = run
        self._claims = Claims(run, worker) if worker is not None else None
        self._started = time.monotonic()
        end_what_was_left()
        environment, base = dict(os.environ), asked.directory
        names = tuple(dict.fromkeys(job.loaded.family for job in plan.jobs))
        request = replace(
            asked.request,
            paths=tuple(path for given in asked.suites.values() for path in given),
            cases=tuple(_literally(name) for name in names),
            jobs=tuple(job.id for job in plan.jobs),
        )
        self.secrets = secrets_of_plan(plan, base, environment)
        self.directory: RunDirectory = directory_for(
            request,
            plan,
            self._claims.own if self._claims is not None else run,
            None,
            self.secrets,
            run_id,
        )
        try:
            self._open(run_id, environment)
        except BaseException:
            self.directory.close()
            raise

    def _open(self, run_id: str, environment: dict[str, str]) -> None:
        plan, base = self._plan, self._asked.directory
        stopping = StopPolicy()
        options = RunOptions(
            run_id=run_id,
            environment=environment,
            secrets=self.secrets,
            parallel=1,
            stopping=stopping,
            paces=paces_of(self._asked.request, stopping),
        )
        cache = answer_cache(self.directory.judge_answers, base, self.secrets.mask, anew=False)
        desk = router_of(plan, base, environment, self.secrets, cache, options.paces)
        self._models: Models = desk.models
        simulators = simulators_of(desk.models, base, environment, self.secrets)
        options = replace(options, reader=desk, simulators=simulators)
        self._stopping = stopping
        observer = PlainReporter(plan, make_console(), quiet=True)
        claim = self._claims.claim if self._claims is not None else unclaimed
        self._steps = Stepwise(plan, self.directory, options, observer, self.grades, claim)
        with ExitStack() as exits:
            exits.enter_context(ProcessRegister(options.register_dir))
            self._portal: BlockingPortal = exits.enter_context(start_blocking_portal())
            self._portal.call(self._steps.open)
            self._exits = exits.pop_all()

    def hold(self, job: Job) -> Grade | None:
        """The trial's grade, see :meth:`Stepwise.hold`. Ctrl-C ends its processes."""
        future = self._portal.start_task_soon(self._steps.hold, job)
        try:
            return future.result()
        except BaseExceptionGroup as group:
            refused = first_refusal(group)
            if refused is None:
                raise
            raise refused from None
        except BaseException:
            future.cancel()
            raise

    @property
    def stopped(self) -> str | None:
        """Why no more trials are held; None: they are."""
        return self._steps.stopped

    def why_not_held(self, job: Job) -> str | None:
        """See :meth:`Stepwise.why_not_held`."""
        return self._steps.why_not_held(job)

    def record_of(self, job: Job) -> Path:
        """Where the trial's record is; that of a worker, when the session has ended."""
        place = self.directory.trial_directory(job.id).relative_to(self.directory.path)
        return self._run / place / RECORD_FILE

    def close(self, wanted: Sequence[str]) -> None:
        """End what is being held, and write the result: of the jobs `wanted`, and those held.

        Raises SkillupError if it cannot be written.
        """
        with self.directory:
            self._portal.call(self._models.close)
            self._exits.close()
            info = self.directory.run_info()
            ids = {*wanted, *self.grades}
            result = build_result(
                info["run_id"],
                info["started_at"],
                self.grades,
                [job.id for job in self._plan.jobs if job.id in ids],
                round((time.monotonic() - self._started) * 1000),
                Ending(self._stopping.reason, frozenset(), tuple(self._stopping.warnings)),
            )
            result = with_analysis(result, info)
            self.directory.write_result(result)
        if self._claims is None:
            publish(self._run, result, self._asked, self._plan, self.secrets)


def publish(
    run: Path, result: RunResult, asked: SessionOptions, plan: Plan, secrets: Secrets
) -> None:
    """Write the reports of `run` that the suites ask for, and index it. Raises SkillupError."""
    write_reports(result, formats_of(asked.request, plan), run, secrets.mask, index=None)
    index_finished_run(run, asked.directory, None)


def _literally(name: str) -> str:
    """A glob that takes just this name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
