"""The runs that are served: a folder's or a single one; what is known of each is kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skillup.errors import SkillupError, UsageError
from skillup.reports.html.comparison import history_data, sides_of
from skillup.reports.html.detail import WIDE
from skillup.reports.html.run_data import RunData
from skillup.store import RunDirectory
from skillup.store.places import JOURNAL_FILE, RESULT_FILE, RUN_FILE, directory_of_job, writer_of
from skillup.store.trials import CHECKPOINT_FILE, GRADE_FILE

Json = dict[str, Any]
_STATUSES = {"PASS": "pass", "FAIL": "fail", "ERROR": "error", "SKIP": "skip"}
"""And what each is called in a summary."""


def _listed(info: Mapping[str, Any], summary: Mapping[str, Any], **known: Any) -> Json:
    """An entry of the list; what is not known of a run that cannot be read stays empty."""
    baseline = summary.get("baseline") or {}
    return {
        "problem": None,
        "suites": list(info.get("suites") or ()),
        "engines": list(info.get("profiles") or ()),
        "planned": len(info.get("jobs") or ()),
        # Verdicts are those with the skill; how far the run is, all trials say.
        "done": (summary.get("total") or 0) + (baseline.get("total") or 0),
        "counts": {status: summary.get(name) or 0 for status, name in _STATUSES.items()},
        **{name: summary.get(name) for name in ("pass_rate", "duration_ms", "cost_usd")},
        **known,
    }


def _stamp(path: str, *, size: bool = True) -> tuple[int, ...] | None:
    """Differs when the file is written or replaced."""
    try:
        status = os.stat(path)  # noqa: PTH116 - every second, for thousands of files
    except OSError:
        return None
    return (status.st_ino, status.st_size if size else 0, status.st_mtime_ns)


def _run_stamp(run: Path) -> object:
    """Differs when a trial starts or ends, and when the run is opened, ends or is replaced.

    Of a run that was killed no file says so, but that nobody writes it.
    """
    files = [_stamp(f"{run}/{name}") for name in (RUN_FILE, JOURNAL_FILE, RESULT_FILE)]
    return files, writer_of(run)


class NoSuchRunError(UsageError):
    """The folder has no run of this name."""


class Served:
    """The runs of one folder. All methods may be called from several threads, one at a time."""

    def __init__(self, folder: Path, only: str | None = None, index: str | None = None) -> None:
        """`only`: the one run of the folder to serve. `index`: of past runs, as ``--index``."""
        self.folder = folder.absolute()
        self.only = only
        self._index = index
        self._open: dict[str, _OpenRun] = {}
        self._entries: dict[str, tuple[object, Json]] = {}
        self._lock = threading.Lock()

    def ids(self) -> list[str]:
        if self.only is not None:
            return [self.only] if (self.folder / self.only).is_dir() else []
        try:
            found = [path.name for path in self.folder.iterdir() if (path / RUN_FILE).is_file()]
        except OSError:
            return []
        return sorted(found, reverse=True)

    def path(self, run_id: str) -> Path:
        if run_id not in self.ids():
            raise NoSuchRunError(f"there is no run {run_id}")
        return self.folder / run_id

    def listing(self) -> Json:
        """Every run in a few words, those that cannot be read as damaged."""
        runs = []
        with self._lock:
            for run_id in self.ids():
                stamp = _run_stamp(self.folder / run_id)
                known = self._entries.get(run_id)
                if known is None or known[0] != stamp:
                    known = self._entries[run_id] = (stamp, self._entry(run_id))
                runs.append(known[1])
        runs.sort(key=lambda run: (run["started_at"] or "", run["id"]), reverse=True)
        return {"folder": str(self.folder), "runs": runs}

    def index(self, run_id: str, against: str | None = None) -> Json:
        """The page's index of a run, beside another one if that is named.

        Raises NoSuchRunError, and RunDirectoryError for a run that cannot be read.
        """
        with self._lock:
            data, sides = self._run(run_id).fresh(), None
            if against is not None and against != run_id:
                other = self._run(against).fresh()
                sides = sides_of(other, data, shift=len(data.jobs), index=self._index)
            history = None if data.running else history_data(data.path, self._index)
            return data.index("view", history, sides)

    def detail(self, run_id: str, n: int, against: str | None = None) -> Json:
        """One trial; those of `against` come after the run's own. As :meth:`index`."""
        with self._lock:
            data = self._run(run_id).fresh()
            shift = len(data.jobs)
            if n <= shift or against is None:
                return data.detail(n, WIDE)
            return self._run(against).fresh().detail(n - shift, WIDE, shift=shift)

    def stamp(self, run_id: str) -> object:
        """Differs when the run's page would. As :meth:`index`."""
        with self._lock:
            run = self._run(run_id)
            run.fresh()
            return run.version

    def folder_stamp(self) -> object:
        return [(run_id, _run_stamp(self.folder / run_id)) for run_id in self.ids()]

    def _run(self, run_id: str) -> _OpenRun:
        return self._open.setdefault(run_id, _OpenRun(self.path(run_id)))

    def _entry(self, run_id: str) -> Json:
        try:
            return {"id": run_id, **self._read_entry(self.folder / run_id)}
        except SkillupError as error:
            problem = error.message
        except Exception as defect:  # noqa: BLE001 - one odd run must not hide the others
            problem = f"it cannot be read: {type(defect).__name__}: {defect}"
        known = {"run_id": run_id, "started_at": None, "status": "damaged", "problem": problem}
        return {"id": run_id, **_listed({}, {}, **known)}

    def _read_entry(self, path: Path) -> Json:
        directory = RunDirectory.open(path)
        if writer_of(path) is None and (path / RESULT_FILE).is_file():
            result = directory.read_result()
            return _listed(
                directory.run_info(),
                result.summary.model_dump(mode="json", by_alias=True),
                run_id=result.run_id,
                started_at=result.started_at,
                status="finished" if result.finished else "unfinished",
            )
        data = self._run(path.name).fresh()
        return _listed(
            data.info,
            data.summary(),
            run_id=data.run_id,
            started_at=data.started_at,
            status="running" if data.running else "unfinished",
        )


class _OpenRun:
    """A run that has been opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data: RunData | None = None
        self._stamp: object = None
        self.version = 0  # Counts what :meth:`fresh` has seen change

    def fresh(self) -> RunData:
        """The run as it is now. Raises RunDirectoryError if it cannot be read any more."""
        data, of_run = self._data, _run_stamp(self._path)
        if data is None or (of_run, self._turns(data)) != self._stamp:
            self._data = None  # of what was read in part, nothing stays
            if data is None:
                name = quote(self._path.name, safe="", errors="surrogateescape")
                data = RunData(self._path, base=f"api/runs/{name}/files/")
            else:
                data.read()
            self._stamp = of_run, self._turns(data)
            self._data = data
            self.version += 1
        return data

    def _turns(self, data: RunData) -> object:
        """Differs when one of the running trials begins or ends a turn, or is judged."""
        places = [f"{self._path}/trials/{directory_of_job(job)}" for job in data.running_jobs()]
        return [
            (
                _stamp(f"{place}/raw", size=False),
                _stamp(f"{place}/{CHECKPOINT_FILE}"),
                _stamp(f"{place}/{GRADE_FILE}"),
            )
            for place in places
        ]
