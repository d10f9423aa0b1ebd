"""Which earlier runs are of the same kind as a run, so that nights are compared with nights."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from skillup.trends.index.reading import planned_in, selections
from skillup.trends.outcomes import RunOutcomes


class Nearness(NamedTuple):
    """How near an earlier run comes to a run in what it planned; the greater, the nearer."""

    same_kind: bool
    """It was asked for the same, or planned all that the run planned."""
    unnarrowed: bool
    """False: it left out cases by `-k`, `--tag` and the like, which the run did not."""
    shared: int
    """Cases of the run, on its engines, that it planned, too; of the same kind: all count as equal,
    for a case that came or went yesterday must not make last month's night the nearer one."""


class Kin:
    """The runs of an index, by their nearness to one run. Without the skill or with it is one."""

    def __init__(self, connection: Connection, run: RunOutcomes) -> None:
        self._connection = connection
        self._selection = run.selection
        self._planned = {(t.key.suite, t.key.case_id, t.key.engine) for t in run.trials}
        self._kinds = {(suite, engine) for suite, _, engine in self._planned}
        self._selections = selections(connection)
        self.known: dict[str, Nearness | None] = {}
        """Of the runs that were asked for, by id."""

    def nearness(self, run_id: str) -> Nearness | None:
        """That of the run `run_id`; None: it held none of the suites on the same engine."""
        if run_id not in self.known:
            self.known[run_id] = self._find(run_id)
        return self.known[run_id]

    def _find(self, run_id: str) -> Nearness | None:
        planned = planned_in(self._connection, run_id)
        if self._kinds.isdisjoint((suite, engine) for suite, _, engine in planned):
            return None
        own, selection = self._selection, self._selections.get(run_id)
        alike = own is not None and selection is not None and own.asked == selection.asked
        if alike or planned >= self._planned:
            return Nearness(True, True, len(self._planned))
        narrowed = selection is not None and selection.narrowed
        whole = own is None or not own.narrowed
        return Nearness(False, not (narrowed and whole), len(planned & self._planned))
