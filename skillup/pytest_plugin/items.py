"""A suite as a file of items, and each trial as an item."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.outcomes import (
    Failed,
)  # what `pytest.fail` raises; it has no other name to derive from

from skillup.errors import SkillupError
from skillup.pytest_plugin.words import error_text, failure_text
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import one_line, plain

if TYPE_CHECKING:
    from skillup.plan import Job
    from skillup.pytest_plugin.plugin import SkillupPlugin
    from skillup.schema.grade import Grade


class NotRun(Failed):
    """The conversation could not be held or judged: an error, and no failure of the skill."""

    __module__ = "builtins"  # so that pytest's summary has the short name


class NotPassed(Failed):
    """The conversation was held, and the verdict is FAIL."""

    __module__ = "builtins"


class SuiteFile(pytest.File):
    """A suite's `eval.yaml`."""

    plugin: SkillupPlugin

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, plugin: SkillupPlugin) -> SuiteFile:
        """The suite at `path`."""
        made: SuiteFile = cls.from_parent(parent, path=path)
        made.plugin = plugin
        return made

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each trial. Raises CollectError with the problems of files that are wrong."""
        path = self.path.resolve()
        planned = self.plugin.planned()
        if path in planned.troubles:
            raise self.CollectError(planned.troubles[path])
        names: set[str] = set()
        for job in planned.jobs_of(path):
            name = item_name(job)
            while name in names:
                name += "'"
            names.add(name)
            yield TrialItem.of(self, name, job, self.plugin)


class TrialItem(pytest.Item):
    """One trial. Its conversation is held in the set-up, so that trouble there is an error of
    pytest's, too; the test itself is the verdict.
    """

    job: Job
    plugin: SkillupPlugin
    grade: Grade | None = None

    @classmethod
    def of(cls, parent: SuiteFile, name: str, job: Job, plugin: SkillupPlugin) -> TrialItem:
        """The item of `job`, marked with the tags of its case."""
        # With its id given as text, pytest 9.2 knows it again after `--lf` (the brackets count).
        nodeid = f"{parent.nodeid}::{name}"
        made: TrialItem = cls.from_parent(parent, name=name, nodeid=nodeid)
        made.job, made.plugin = job, plugin
        plugin.markers.put(made, list(job.loaded.case.tags))
        return made

    def setup(self) -> None:
        """Hold the conversation. Raises NotHeld for an ERROR; an item that skillup skips, skips."""
        if self.config.getoption("setupplan", False):
            return
        try:
            grade = self.plugin.grade_of(self.job)
        except SkillupError as error:
            hint = f"\n  hint: {error.hint}" if error.hint else ""
            raise NotRun(plain(error.message + hint), pytrace=False) from None
        self.grade = grade
        self.user_properties.extend(_properties(grade, self._record()))
        if grade.status == "SKIP":
            pytest.skip(one_line(grade.reason, 300))
        if grade.status == "ERROR":
            raise NotRun(self._masked(error_text(grade, self._record())), pytrace=False)

    def runtest(self) -> None:
        """Raises NotPassed for a FAIL; without the skill that is no failure, and skipped."""
        if self.grade is not None and self.grade.status == "FAIL":
            if self.job.variant != "with_skill":
                pytest.skip(f"without the skill: failed ({one_line(self.grade.reason, 300)})")
            text = failure_text(self.grade, self._record())
            raise NotPassed(self._masked(text), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The case's own file, which is where a person looks."""
        return self.job.loaded.path, None, self.name

    def _record(self) -> str:
        return shown_path(self.plugin.holding().record_of(self.job))

    def _masked(self, text: str) -> str:
        return self.plugin.holding().secrets.mask(text)


def item_name(job: Job) -> str:
    """``CASE[ENGINE]``; ``CASE[ENGINE-without_skill]`` the baseline, ``CASE[ENGINE-2]`` a trial."""
    case = re.sub(r"::+", ":", re.sub(r"\s+", " ", plain(job.loaded.case.id)))
    parts = [job.profile.name]
    if job.variant != "with_skill":
        parts.append(job.variant)
    if job.trial > 1:
        parts.append(str(job.trial))
    return f"{case}[{'-'.join(parts)}]"


def _properties(grade: Grade, record: str) -> Iterator[tuple[str, Any]]:
    """For JUnit XML and other reports; what is not known is left out."""
    values = {
        "status": grade.status,
        "score": grade.score,
        "session_id": grade.session_id,
        "cost_usd": grade.cost_usd,
        "judge_cost_usd": grade.judging.cost_usd if grade.judging else None,
        **{name: n for name, n in (grade.usage or {}).items() if name.endswith("_tokens")},
        "record": record,
    }
    return ((name, value) for name, value in values.items() if value is not None)
