"""A suite as a file of items, each trial as an item, tags of cases as markers."""

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
from skillup.pytest_plugin.failure_text import error_text, failure_text
from skillup.pytest_plugin.suites import with_hint
from skillup.reports.text import one_line, plain

if TYPE_CHECKING:
    from skillup.plan import Job
    from skillup.pytest_plugin.plugin import SkillupPlugin
    from skillup.schema.grade import Grade


class NotRun(Failed):
    """The conversation could not be run or judged: an error, and no failure of the skill."""

    __module__ = "builtins"  # so that pytest's summary has the short name


class NotPassed(Failed):
    """The conversation was run, and the verdict is FAIL."""

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
        suites = self.plugin.suites
        jobs = suites.jobs.get(path, [])
        if path in suites.problems:
            raise self.CollectError(suites.problems[path])
        names: set[str] = set()
        for job in jobs:
            name = item_name(job)
            while name in names:
                name += "'"
            names.add(name)
            yield TrialItem.of(self, name, job, self.plugin)


class TrialItem(pytest.Item):
    """One trial. Its conversation runs in the set-up, so that trouble there is an error of
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
        """Run the conversation. Raises NotRun for an ERROR; an item that skillup skips, skips."""
        if self.config.getoption("setupplan", False):
            return
        try:
            grade = self.plugin.run_trial(self.job)
        except SkillupError as error:
            raise NotRun(with_hint(error), pytrace=False) from None
        self.grade = grade
        record = self.plugin.record_of(self.job)
        self.user_properties.extend(_properties(grade, record))
        if grade.status == "SKIP":
            pytest.skip(one_line(grade.reason, 300))
        if grade.status == "ERROR":
            raise NotRun(self.plugin.mask(error_text(grade, record)), pytrace=False)

    def runtest(self) -> None:
        """Raises NotPassed for a FAIL; without the skill that is no failure, and skipped."""
        if self.grade is not None and self.grade.status == "FAIL":
            if self.job.variant != "with_skill":
                pytest.skip(f"without the skill: failed ({one_line(self.grade.reason, 300)})")
            text = failure_text(self.grade, self.plugin.record_of(self.job))
            raise NotPassed(self.plugin.mask(text), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The case's own file, which is where a person looks."""
        return self.job.loaded.path, None, self.name


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


_ODD = re.compile(r"[^\w.-]")
_TAKEN = frozenset(
    {
        # pytest does something of its own for these.
        *("filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"),
        # `-m` reads these as words of its own.
        *("and", "or", "not"),
        "skillup",
    }
)


def marker_of_tag(tag: str) -> str:
    """``needs review`` → ``needs_review``; ``skip`` → ``tag_skip``: what could not be a marker."""
    name = _ODD.sub("_", tag)
    return f"tag_{name}" if name in _TAKEN or not name or name[0] in "_.-" else name


class Markers:
    """Registers each marker once, so that `--strict-markers` knows it, and puts it on items."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._known = {str(line).partition(":")[0] for line in config.getini("markers")}
        self._register("skillup", "a case of an agent skill")

    def put(self, item: pytest.Item, tags: list[str]) -> None:
        """Mark a case's item."""
        item.add_marker("skillup")
        for tag in dict.fromkeys(tags):
            name = marker_of_tag(tag)
            self._register(name, "a tag of skillup cases")
            item.add_marker(name)

    def _register(self, name: str, about: str) -> None:
        if name not in self._known:
            self._known.add(name)
            self._config.addinivalue_line("markers", f"{name}: {about}")
