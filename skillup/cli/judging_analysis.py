"""What the grades of a judged run say together, taken as they pass by."""

from __future__ import annotations

from collections.abc import Iterator

from skillup.cli.judging import Judged
from skillup.errors import RunDirectoryError
from skillup.schema.analysis import Analysis
from skillup.store import RunDirectory
from skillup.trends.analysis import Observations


class JudgedRun:
    """Watches the grades of one judging of a run."""

    def __init__(self, directory: RunDirectory, *, selected: bool) -> None:
        self._directory = directory
        self._selected = selected
        """Whether trials were chosen, so that those which are missing were not wanted."""
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
        info = self._directory.run_info()
        saved = self._not_needed()
        planned = () if self._selected else info.get("jobs") or ()
        missing = [job for job in planned if job not in self._seen and job not in saved]
        return self._observations.analysis(info, not_run=missing, not_needed=saved)

    def _not_needed(self) -> list[str]:
        if self._selected:
            return []
        try:
            return self._directory.read_result().not_needed
        except RunDirectoryError:
            return []  # a run that was killed has no result, or an older one that nobody can read
