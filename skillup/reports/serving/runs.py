"""The runs that are served: a folder's or a single one; what is known of each is kept."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skillup.errors import SkillupError, UsageError
from skillup.reports.page.index import index_of
from skillup.reports.page.limits import WIDE
from skillup.reports.page.run_data import RunData
from skillup.reports.page.sides import sides_of
from skillup.reports.page.trends_data import history_data
from skillup.reports.serving.in_short import DAMAGED, in_short, of_data
from skillup.reports.serving.watching import run_stamp, turns_stamp
from skillup.store.run_directory import RUN_FILE
from skillup.store.writer import writer_of

Json = dict[str, Any]


class NoSuchRunError(UsageError):
    """The folder has no run of this name."""


class Served:
    """The runs of one folder. All methods may be called from several threads."""

    def __init__(self, folder: Path, only: str | None = None, index: str | None = None) -> None:
        """`only`: the one run of the folder to serve. `index`: of past runs, as ``--index``."""
        self.folder = folder.absolute()
        self.only = only
        self._index = index
        self._open: dict[str, _OpenRun] = {}
        self._in_short: dict[str, tuple[tuple[object, int | None], Json]] = {}
        self._lock = threading.Lock()

    def ids(self) -> list[str]:
        """The names of the run directories, the newest first."""
        if self.only is not None:
            return [self.only] if (self.folder / self.only).is_dir() else []
        try:
            found = [path.name for path in self.folder.iterdir() if (path / RUN_FILE).is_file()]
        except OSError:
            return []
        return sorted(found, reverse=True)

    def path(self, run_id: str) -> Path:
        """The run's directory. Raises NoSuchRunError."""
        if run_id not in self.ids():
            raise NoSuchRunError(f"there is no run {run_id}")
        return self.folder / run_id

    def listing(self) -> Json:
        """Every run in a few words, those that cannot be read as damaged."""
        runs = [self._told(run_id) for run_id in self.ids()]
        runs.sort(key=lambda run: (run["started_at"] or "", run["id"]), reverse=True)
        return {"folder": str(self.folder), "runs": runs}

    def index(self, run_id: str, against: str | None = None) -> Json:
        """The page's index of a run, beside another one if that is named.

        Raises NoSuchRunError, and RunDirectoryError for a run that cannot be read.
        """
        run = self._run(run_id)
        other = self._run(against) if against is not None and against != run_id else None
        runs = [run] if other is None else [run, other]
        with ExitStack() as locks:
            # In one order: two that each hold what the other waits for would wait for ever.
            for one in sorted(runs, key=lambda one: one.path):
                locks.enter_context(one.lock)
            data = run.fresh()
            sides = None
            if other is not None:
                sides = sides_of(other.fresh(), data, shift=len(data.jobs), index=self._index)
            history = run.history(self._index)
            return index_of(data, mode="view", history=history, sides=sides)

    def detail(self, run_id: str, n: int, against: str | None = None) -> Json:
        """One trial; those of `against` come after the run's own. As :meth:`index`."""
        run = self._run(run_id)
        with run.lock:
            data = run.fresh()
            shift = len(data.jobs)
            if n <= shift or against is None:
                return data.detail(n, WIDE)
        other = self._run(against)
        with other.lock:
            return other.fresh().detail(n - shift, WIDE, shift=shift)

    def _run(self, run_id: str) -> _OpenRun:
        path = self.path(run_id)
        with self._lock:
            if run_id not in self._open:
                self._open[run_id] = _OpenRun(path, _base(run_id))
            return self._open[run_id]

    def stamp(self, run_id: str) -> object:
        """Differs when the run's page would. As :meth:`index`."""
        run = self._run(run_id)
        with run.lock:
            run.fresh()
            return run.version

    def folder_stamp(self) -> object:
        """Differs when the listing would."""
        return [(run_id, self._stamp_in_list(run_id)) for run_id in self.ids()]

    def _stamp_in_list(self, run_id: str) -> tuple[object, int | None]:
        path = self.folder / run_id
        stamp = run_stamp(path)
        known = self._in_short.get(run_id)
        if known is not None and known[0][0] == stamp and known[1]["status"] == "finished":
            return known[0]
        # Of a run that was killed no file says so.
        return stamp, writer_of(path)

    def _told(self, run_id: str) -> Json:
        stamp = self._stamp_in_list(run_id)
        known = self._in_short.get(run_id)
        if known is None or known[0] != stamp:
            known = (stamp, self._look(run_id))
            self._in_short[run_id] = known
        return known[1]

    def _look(self, run_id: str) -> Json:
        try:
            told = in_short(self.folder / run_id)
            if told is None:
                run = self._run(run_id)
                with run.lock:
                    told = of_data(run.fresh())
            return {"id": run_id, **told}
        except SkillupError as error:
            problem = error.message
        except Exception as defect:  # noqa: BLE001 - one odd run must not hide the others
            problem = f"it cannot be read: {type(defect).__name__}: {defect}"
        return {"id": run_id, **DAMAGED, "run_id": run_id, "problem": problem}


class _OpenRun:
    """A run that somebody has asked for; :attr:`lock` is to be held while it is used."""

    def __init__(self, path: Path, base: str) -> None:
        self.lock = threading.Lock()
        self.path = path
        self._base = base
        self._data: RunData | None = None
        self._stamp: object = None
        self.version = 0
        """Counts what :meth:`fresh` has seen change."""
        self._history: tuple[int, list[Json] | None] | None = None

    def fresh(self) -> RunData:
        """The run as it is now. Raises RunDirectoryError if it cannot be read any more."""
        data, self._data = self._data, None  # of what was read in part, nothing stays
        if data is None:
            data = self._first()
        elif self._stamp != self._look(data) or (data.running and not data.is_still_running()):
            # Of one that was killed, nothing in its files says so.
            self._stamp = self._look(data)
            data.read()
            self.version += 1
        self._data = data
        return data

    def _first(self) -> RunData:
        self._stamp = (run_stamp(self.path), [], ())
        self.version += 1
        return RunData(self.path, base=self._base)

    def _look(self, data: RunData) -> object:
        jobs = data.running_jobs()
        return run_stamp(self.path), jobs, turns_stamp(self.path, jobs)

    def history(self, index: str | None) -> list[Json] | None:
        """Its trends; asked of the index once for each state of the run."""
        data = self.fresh()
        if self._history is None or self._history[0] != self.version:
            found = None if data.running else history_data(self.path, index)
            self._history = (self.version, found)
        return self._history[1]


def _base(run_id: str) -> str:
    return f"api/runs/{quote(run_id, safe='', errors='surrogateescape')}/files/"
