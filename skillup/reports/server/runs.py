"""The runs that are served: a folder's or a single one; what is known of each is kept."""

from __future__ import annotations

import json
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skillup.errors import SkillupError, UsageError
from skillup.reports.html.comparison import history_data, sides_of
from skillup.reports.html.limits import WIDE
from skillup.reports.html.page_data import PageCaseHistory
from skillup.reports.html.run_data import RunData
from skillup.reports.html.run_files import planned_jobs
from skillup.schema.grade import BASELINE
from skillup.store import RunDirectory
from skillup.store.files import open_regular
from skillup.store.places import directory_of_job
from skillup.store.run_directory import JOURNAL_FILE, RESULT_FILE, RUN_FILE
from skillup.store.runs import writer_of
from skillup.store.trials import CHECKPOINT_FILE, GRADE_FILE

Json = dict[str, Any]
_STATUSES = {"PASS": "pass", "FAIL": "fail", "ERROR": "error", "SKIP": "skip"}
"""And what each is called in a summary."""

# A run in a few words, for the list of runs; of a finished one, little of its files is read.

_HEAD = 256 * 1024
_CASES = b'\n  "cases": '


def _listed(run_id: str, summary: Json, **known: Any) -> Json:
    """An entry of the list; what is not known of a run that cannot be read stays empty."""
    return {
        "run_id": run_id,
        "started_at": None,
        "status": "damaged",
        "problem": None,
        "suites": [],
        "engines": [],
        "planned": 0,
        "done": 0,
        "counts": {status: summary.get(name) or 0 for status, name in _STATUSES.items()},
        **{name: summary.get(name) for name in ("pass_rate", "duration_ms", "cost_usd")},
        **known,
    }


def in_short(path: Path) -> Json | None:
    """The run in `path`; None: it goes on, or was cut short, and more has to be read.

    Raises RunDirectoryError if it is no run, or `run.json` is damaged.
    """
    info = RunDirectory.open(path).run_info()
    result = _head_of_result(path) if writer_of(path) is None else None
    if result is None:
        return None
    summary, started_at = result["summary"], info.get("started_at")
    suites, engines = (
        [str(name) for name in value] if isinstance(value, dict) else []
        for value in (info.get("suites"), info.get("profiles"))
    )
    return _listed(
        str(info.get("run_id") or path.name),
        summary,
        started_at=started_at if isinstance(started_at, str) else None,
        status="finished" if result.get("finished") is True else "unfinished",
        suites=suites,
        engines=engines,
        planned=len(planned_jobs(info)),
        # Verdicts are those with the skill; how far the run is, all trials say.
        done=(summary.get("total") or 0) + ((summary.get("baseline") or {}).get("total") or 0),
    )


def of_data(data: RunData) -> Json:
    head, summary = data.head(), data.summary()
    statuses: list[str] = [row["status"] for row in data.rows if row["variant"] != BASELINE]
    counts = {status: statuses.count(status) for status in _STATUSES}
    verdicts = counts["PASS"] + counts["FAIL"]
    status = "finished" if head["finished"] else "unfinished"
    return _listed(
        data.run_id,
        summary,
        started_at=data.started_at or None,
        status="running" if data.running else status,
        suites=head["suites"],
        engines=[engine["profile"] for engine in head["engines"]],
        planned=len(data.rows),
        done=sum(row["status"] in _STATUSES for row in data.rows),
        counts=counts,
        pass_rate=round(counts["PASS"] / verdicts, 6) if verdicts else None,
    )


def _head_of_result(run: Path) -> Json | None:
    """`result.json` up to its grades, which are nearly all of it; None if there is no such file.

    A line break does not stand within a JSON text: what is cut off there is whole.
    """
    try:
        with open_regular(run / RESULT_FILE) as file:
            head = file.read(_HEAD)
        before, found, _ = head.partition(_CASES)
        value = json.loads(before.rstrip().removesuffix(b",") + b"}") if found else None
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("summary"), dict) else None


# Whether something has changed in a run, or in the folder: asked of the file system, cheaply.


def _stamp(path: str, *, size: bool = True) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - every second, for thousands of files
    except OSError:
        return None
    return (status.st_ino, status.st_size if size else 0, status.st_mtime_ns)


def _run_stamp(run: Path) -> object:
    """Differs when a trial starts or ends, and when the run is opened, ends or is replaced."""
    return [_stamp(f"{run}/{name}") for name in (RUN_FILE, JOURNAL_FILE, RESULT_FILE)]


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
        for run_id in self.ids():
            stamp = self._stamp_in_list(run_id)
            known = self._in_short.get(run_id)
            if known is None or known[0] != stamp:
                known = self._in_short[run_id] = (stamp, self._read_in_short(run_id))
            runs.append(known[1])
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
            return data.index("view", run.history(self._index), sides)

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

    def stamp(self, run_id: str) -> object:
        """Differs when the run's page would. As :meth:`index`."""
        run = self._run(run_id)
        with run.lock:
            run.fresh()
            return run.version

    def folder_stamp(self) -> object:
        return [(run_id, self._stamp_in_list(run_id)) for run_id in self.ids()]

    def _run(self, run_id: str) -> _OpenRun:
        path = self.path(run_id)
        with self._lock:
            return self._open.setdefault(run_id, _OpenRun(path))

    def _stamp_in_list(self, run_id: str) -> tuple[object, int | None]:
        path = self.folder / run_id
        stamp = _run_stamp(path)
        known = self._in_short.get(run_id)
        if known is not None and known[0][0] == stamp and known[1]["status"] == "finished":
            return known[0]
        # Of a run that was killed no file says so.
        return stamp, writer_of(path)

    def _read_in_short(self, run_id: str) -> Json:
        try:
            entry = in_short(self.folder / run_id)
            if entry is None:
                run = self._run(run_id)
                with run.lock:
                    entry = of_data(run.fresh())
            return {"id": run_id, **entry}
        except SkillupError as error:
            problem = error.message
        except Exception as defect:  # noqa: BLE001 - one odd run must not hide the others
            problem = f"it cannot be read: {type(defect).__name__}: {defect}"
        return {"id": run_id, **_listed(run_id, {}, problem=problem)}


class _OpenRun:
    """A run that has been opened; take :attr:`lock` to use it."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.Lock()
        self.path = path
        self._data: RunData | None = None
        self._stamp: object = None
        self.version = 0  # Counts what :meth:`fresh` has seen change
        self._history: tuple[int, list[PageCaseHistory] | None] | None = None

    def fresh(self) -> RunData:
        """The run as it is now. Raises RunDirectoryError if it cannot be read any more."""
        data, self._data = self._data, None  # of what was read in part, nothing stays
        if data is None:
            name = quote(self.path.name, safe="", errors="surrogateescape")
            self._stamp = (_run_stamp(self.path), [], [])
            data = RunData(self.path, base=f"api/runs/{name}/files/")
            self.version += 1
        else:
            stamp = self._look(data)
            # Of one that was killed, nothing in its files says so.
            if self._stamp != stamp or (data.running and not data.is_still_running()):
                self._stamp = stamp
                data.read()
                self.version += 1
        self._data = data
        return data

    def _look(self, data: RunData) -> object:
        """Also when one of the running trials begins or ends a turn, or is judged."""
        jobs = data.running_jobs()
        places = [f"{self.path}/trials/{directory_of_job(job)}" for job in jobs]
        turns = [
            (
                _stamp(f"{place}/raw", size=False),
                _stamp(f"{place}/{CHECKPOINT_FILE}"),
                _stamp(f"{place}/{GRADE_FILE}"),
            )
            for place in places
        ]
        return _run_stamp(self.path), jobs, turns

    def history(self, index: str | None) -> list[PageCaseHistory] | None:
        """Its trends; read from the index once for each state of the run."""
        data = self.fresh()
        if self._history is None or self._history[0] != self.version:
            found = None if data.running else history_data(self.path, index)
            self._history = (self.version, found)
        return self._history[1]
