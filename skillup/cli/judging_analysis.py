"""What the grades of a judged run say together, taken as they pass by."""

from __future__ import annotations

from collections.abc import Iterator

from skillup.cli.judging import Judged
from skillup.cli.judging_sources import Source
from skillup.schema.analysis import Analysis
from skillup.store import RunDirectory
from skillup.trends.analysis import Observations


class JudgedRun:
    """Watches the grades of one judging of a run."""

    def __init__(self, source: Source, *, selected: bool) -> None:
        """`selected`: trials were chosen, so that those which are missing were not wanted."""
        self._source = source
        self._selected = selected
        self._observations = Observations()
        self._seen: set[str] = set()

    def watch(self, judged: Iterator[Judged]) -> Iterator[Judged]:
        """`judged`, once they are through."""
        for job_id, grade, change in judged:
            self._observations.add(grade)
            self._seen.add(job_id)
            yield job_id, grade, change

    def analysis(self) -> Analysis:
        """Of all that has passed; trials that have no grade are those that were not run."""
        info = RunDirectory.open(self._source.path).run_info()
        if self._selected:
            return self._observations.analysis(info)
        missing = sorted(self._source.planned - self._seen)
        saved = sorted(self._source.not_needed)
        return self._observations.analysis(info, not_run=missing, not_needed=saved)
