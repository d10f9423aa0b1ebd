"""Which processes belong to a turn: found again however they hide from their parents.

A process belongs if it is a descendant of one that does; if it was seen to belong before; if it is
in a session that members are in; if its environment carries the marker; or if it is an orphan that
came to us and no other running turn can have started it. Only a process of skillup's own adopts
orphans (:mod:`skillup.process.orphans`); there, whatever marker it bears, each is an agent's.
"""

from __future__ import annotations

import os
import threading
import time

from skillup.process.markers import has_assignment
from skillup.process.orphans import adopts_orphans, reap
from skillup.process.table import Row, Table, read_table

# Held while a process starts and becomes known, and while the table is read for a final look: so a
# process started in one thread is never taken for an orphan by a look in another.
starting = threading.Lock()
_running: set[ProcessTree] = set()


class ProcessTree:
    """The processes of one turn, or with ``main`` None all that carry ``assignment``.

    ``assignment`` is the ``NAME=value`` that members inherit in their environment; processes older
    than ``started_after`` are not looked into. ``takes_orphans`` claims those that came to us and
    that no turn could claim because several were running.
    """

    def __init__(
        self,
        main: Row | None,
        assignment: bytes,
        *,
        started_after: float = 0.0,
        takes_orphans: bool = False,
    ) -> None:
        self.main = main
        self._takes_orphans = takes_orphans or main is not None
        self._created_at = time.monotonic()
        self.assignment = assignment
        self.started_after = main.started if main else started_after
        self.known: set[tuple[int, float]] = {main.key} if main else set()
        self._sessions: set[int] = {main.session} if main else set()
        self._orphan_cpu: dict[tuple[int, float], float] = {}
        self._quiet = False
        if main is not None:
            _running.add(self)

    @staticmethod
    def any_running() -> bool:
        """Whether some turn is being held."""
        return bool(_running)

    @staticmethod
    def all_running() -> list[ProcessTree]:
        """Those of all turns that are being held."""
        return list(_running)

    def close(self) -> None:
        """Forgets the turn: its processes are gone."""
        _running.discard(self)

    @property
    def orphan_cpu_seconds(self) -> float:
        """What members used that the main process did not wait for."""
        return sum(self._orphan_cpu.values())

    def sample(self) -> list[Row]:
        """The living members by a recent, cheap look; what is seen here is remembered."""
        # A look from before this turn would make us forget what we started since.
        age = min(0.2, time.monotonic() - self._created_at)
        table = read_table(max_age_seconds=age)
        members = self._members(table, final=False)
        self.known &= {row.key for row in table.rows.values()}
        self._sessions &= {row.session for row in table.rows.values()}
        return [row for row in members if not row.zombie]

    def living(self) -> list[Row]:
        """The living members by a fresh and thorough look, which also clears away dead orphans.

        A look takes a moment in which a member can fork and die, and both be missed. So nobody
        counts as left only after two looks in a row that found neither a living member nor a new
        dead one.
        """
        while True:
            with starting:
                table = read_table()
            members = self._members(table, final=True)
            alive = [row for row in members if not row.zombie]
            reaped = [row for row in members if self._reap(row)]
            was_quiet, self._quiet = self._quiet, not alive and not reaped
            if alive or (was_quiet and self._quiet):
                return alive

    def _members(self, table: Table, *, final: bool) -> list[Row]:
        own = table.rows.get(os.getpid())
        not_ours = table.ancestors(os.getpid()) | {os.getpid(), 0, 1}
        not_ours |= {tree.main.pid for tree in list(_running) if tree.main and tree is not self}
        found: dict[int, Row] = {}
        heads = [
            row
            for row in table.rows.values()
            if row.pid not in not_ours and self._is_head(row, own, final=final)
        ]
        while heads:
            row = heads.pop()
            if row.pid not in found:
                found[row.pid] = row
                heads += [c for c in table.children.get(row.pid, ()) if c.pid not in not_ours]
        self._remember(found, own)
        return list(found.values())

    def _is_head(self, row: Row, own: Row | None, *, final: bool) -> bool:
        if row.key in self.known:
            return True
        if row.started < self.started_after:
            return False
        if row.session in self._sessions:
            return not self._is_of_another(row)
        if not final:
            return False
        return has_assignment(row.pid, self.assignment) or self._is_unclaimed_orphan(row, own)

    def _is_unclaimed_orphan(self, row: Row, own: Row | None) -> bool:
        """Whether it came to us from a parent that died, and only this turn can have started it.

        We start every process in a session of its own; a child of ours in another session than ours
        that we did not start is an orphan. While an older turn still runs, it might be that one's.
        """
        return (
            self._takes_orphans
            and adopts_orphans()
            and own is not None
            and row.parent == own.pid
            and row.session != own.session
            and not any(row.key in tree.known for tree in list(_running) if tree is not self)
            and all(tree is self or tree.started_after > row.started for tree in list(_running))
            and not self._is_of_another(row)
        )

    def _is_of_another(self, row: Row) -> bool:
        """Whether it bears the marker of another running turn; any other may be made up."""
        others = [tree.assignment for tree in list(_running) if tree is not self]
        return any(has_assignment(row.pid, assignment) for assignment in others)

    def _remember(self, found: dict[int, Row], own: Row | None) -> None:
        for row in found.values():
            self.known.add(row.key)
            if own is None or row.session != own.session:
                self._sessions.add(row.session)
            is_main = self.main is not None and row.key == self.main.key
            if not is_main and row.parent not in found:
                self._orphan_cpu[row.key] = row.cpu_seconds

    def _reap(self, row: Row) -> bool:
        """Whether a dead member was an orphan of ours and is now cleared away."""
        if row.parent != os.getpid() or (self.main is not None and row.key == self.main.key):
            return False
        used = reap(row.pid)
        if used is not None:
            self._orphan_cpu[row.key] = used
        return used is not None
