"""A run directory as the page shows it: finished, going on, cut short or damaged."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.errors import RunDirectoryError, UsageError
from skillup.reports.html.detail import damaged_detail, detail_of, live_detail, waiting_detail
from skillup.reports.html.fork_tree import Families
from skillup.reports.html.limits import PageLimits
from skillup.reports.html.progress import (
    PlannedJob,
    Progress,
    planned_jobs,
    progress_of,
    turn_under_way,
)
from skillup.reports.html.raw_files import RawFiles
from skillup.reports.html.rows import (
    Row,
    graded_row,
    mark_flaky,
    not_held_row,
    not_needed_row,
    running_row,
    waiting_row,
)
from skillup.reports.result import summarize
from skillup.schema.grade import Grade
from skillup.store import RunDirectory
from skillup.store.files import read_regular
from skillup.store.run_directory import RESULT_FILE
from skillup.store.runs import writer_of
from skillup.store.trials import GRADE_FILE, RECORD_FILE

PAGE_VERSION = "skillup.page/1"


@dataclass(slots=True)
class _Known:
    """What was read of a trial that is over: neither its record nor its grade changes."""

    stamp: tuple[int, ...]
    row: Row
    light: Grade
    """Without turns and checks: for the sums."""
    version: str | None


class RunData:
    """One run. :meth:`read` looks at it again; what is known of finished trials is kept.

    For one thread at a time. Raises RunDirectoryError if it is no run, or `run.json` is damaged.
    """

    def __init__(self, path: Path, *, base: str = "") -> None:
        """`base`: what links to files of the run begin with."""
        self.path = path.absolute()
        self._directory = RunDirectory.open(self.path)
        self._base = base
        self._known: dict[str, _Known] = {}
        self._places: dict[str, Path] = {}
        self.read()

    def read(self) -> None:
        """Look at the run's files."""
        self.info = self._directory.run_info()
        self.progress: Progress = progress_of(self._directory.events())
        self.result = _result(self.path)
        self.running = not self.progress.ended and self.is_still_running()
        self.jobs = planned_jobs(self.info, self._others())
        self._by_n = {job.n: job for job in self.jobs}
        self._saved = frozenset(() if self.running else self.not_needed())
        self._raw = RawFiles(self.path, self.progress.forks, self._base)
        self.rows = [self._row(job) for job in self.jobs]
        mark_flaky(self.rows)
        self._families = Families(self.progress.forks, self.rows)

    @property
    def run_id(self) -> str:
        """As `run.json` says; a copy has the id of what it was copied from."""
        return str(self.info.get("run_id") or self.path.name)

    @property
    def started_at(self) -> str:
        """UTC, ISO 8601; empty if `run.json` does not say."""
        return str(self.info.get("started_at") or "")

    def detail(self, n: int, limits: PageLimits, *, shift: int = 0) -> dict[str, Any]:
        """The trial `n`; called `n + shift` in it; one that is not over, as far as it is known."""
        planned = self._by_n.get(n)
        if planned is None:
            raise UsageError(f"the run has no trial {n}", hint=f"it has {len(self.jobs)}")
        directory = self._place(planned)
        try:
            if not (directory / RECORD_FILE).is_file():
                return self._so_far(planned, directory, limits, shift)
            return self._detail(planned, limits, shift)
        except RunDirectoryError as error:
            problem = error.message
        except Exception as defect:  # noqa: BLE001 - one conversation must not cost all others
            problem = f"it cannot be shown: {type(defect).__name__}: {defect}; please report it"
        return damaged_detail(n + shift, planned.id, problem)

    def _so_far(
        self, planned: PlannedJob, directory: Path, limits: PageLimits, shift: int
    ) -> dict[str, Any]:
        row = next(row for row in self.rows if row["n"] == planned.n)
        if row["status"] != "RUNNING":
            return waiting_detail(row, planned.n + shift)
        return live_detail(
            row,
            planned.n + shift,
            self._directory.read_checkpoint(planned.id),
            at=turn_under_way(directory / "raw"),
            limits=limits,
            raw=self._raw,
            read=self._directory.blobs.read_state,
        )

    def _detail(self, planned: PlannedJob, limits: PageLimits, shift: int) -> dict[str, Any]:
        record = self._directory.read_record(planned.id)
        grade = self._directory.read_grade(planned.id)
        family = self._families.of(planned.id)
        if family is not None and shift:
            family = {**family, "tree": [_shifted(node, shift) for node in family["tree"]]}
        n = planned.n + shift
        return detail_of(
            n,
            planned.id,
            record,
            grade,
            limits=limits,
            raw=self._raw,
            family=family,
            read=self._directory.blobs.read_state,
        )

    def is_still_running(self) -> bool:
        """Whether the process that writes it is there: one that was killed leaves no word."""
        return writer_of(self.path) is not None

    def running_jobs(self) -> list[str]:
        """Those that are being held."""
        return [row["job"] for row in self.rows if row["status"] == "RUNNING"]

    def held(self) -> list[int]:
        """The trials with a record, in order."""
        return [job.n for job in self.jobs if (self._place(job) / RECORD_FILE).is_file()]

    def head(self) -> dict[str, Any]:
        """What the page says of the run as a whole."""
        result = self.result or {}
        profiles = self.info.get("profiles")
        suites = self.info.get("suites")
        named = list(suites) if isinstance(suites, dict) else []
        return {
            "run_id": self.run_id,
            "started_at": self.started_at,
            "finished": bool(result.get("finished")) and not self.running,
            "running": self.running,
            # Times that run on are reckoned from these, whatever the clock of the reader says.
            "now": datetime.now(UTC).isoformat() if self.running else None,
            "since": self.progress.first_time if self.running else None,
            "stopped": None if self.running else result.get("stopped"),
            "path": str(self.path),
            "engines": [
                {
                    "profile": name,
                    "adapter": about.get("engine"),
                    "model": about.get("model"),
                    "version": self._version(name),
                }
                for name, about in (profiles.items() if isinstance(profiles, dict) else ())
                if isinstance(about, dict)
            ],
            "suites": named or list(dict.fromkeys(row["suite"] for row in self.rows)),
            "skillup_version": self.info.get("skillup_version"),
        }

    def summary(self) -> dict[str, Any]:
        """`result.json`'s; of a run that goes on or was cut short, of the trials that are over."""
        told = (self.result or {}).get("summary")
        if isinstance(told, dict) and not self.running:
            return told
        grades = [self._known[job.id].light for job in self.jobs if job.id in self._known]
        return summarize(grades, self._duration()).model_dump(mode="json", by_alias=True)

    def not_run(self) -> list[str]:
        """The trials that were planned and have no verdict of any kind, and are not needed."""
        waiting = ("NOT_HELD", "RUNNING", "WAITING")
        return [row["job"] for row in self.rows if row["status"] in waiting]

    def decided(self) -> list[dict[str, Any]]:
        """Of a run that goes on: what `--until-decided` came to so far, as in the analysis."""
        cases = self.progress.decided.items() if self.running else ()
        not_needed = set(self.not_needed())
        saved = Counter(job.key for job in self.jobs if job.id in not_needed)
        return [
            {**key._asdict(), "decision": {**decision, "saved": saved[key]}}
            for key, decision in cases
        ]

    def not_needed(self) -> list[str]:
        """Trials that `--until-decided` saved; of a run that goes on, so far."""
        if self.running:
            return [row["job"] for row in self.rows if row["status"] == "NOT_NEEDED"]
        told = (self.result or {}).get("not_needed")
        return [str(job) for job in told] if isinstance(told, list) else []

    def _others(self) -> list[str]:
        """Jobs that the journal knows and `run.json` does not: that of an old version may not."""
        if self.info.get("jobs"):
            return []
        return sorted(self.progress.ever_started)

    def _place(self, job: PlannedJob) -> Path:
        if job.id not in self._places:  # which takes most of looking again at thousands
            self._places[job.id] = self._directory.trial_directory(job.id)
        return self._places[job.id]

    def _row(self, job: PlannedJob) -> Row:
        directory = self._place(job)
        stamp = _stamp(f"{directory}/{GRADE_FILE}", f"{directory}/{RECORD_FILE}")
        known = self._known.get(job.id)
        if stamp is not None and (known is None or known.stamp != stamp):
            known = self._look(job, directory, stamp)
        if known is not None and stamp is not None:
            return dict(known.row)
        self._known.pop(job.id, None)
        has_record = (directory / RECORD_FILE).is_file()
        since = self.progress.since.get(job.id)
        if self.running and has_record:
            return running_row(job, None, "being judged", since=since)
        if self.running and job.id in self.progress.started:
            return running_row(job, turn_under_way(directory / "raw"), since=since)
        if job.id in self._saved or (self.running and job.key in self.progress.decided):
            return not_needed_row(job)
        if has_record:
            return not_held_row(job, "held, but not judged: `skillup judge RUN`")
        return waiting_row(job) if self.running else not_held_row(job, "not held")

    def _look(self, job: PlannedJob, directory: Path, stamp: tuple[int, ...]) -> _Known | None:
        try:
            grade = Grade.model_validate_json(read_regular(directory / GRADE_FILE))
        except (OSError, ValidationError):
            return None
        branch_of, version = _of_record(directory / RECORD_FILE)
        light = grade.model_copy(update={"turns": [], "assertions": []})
        known = _Known(stamp, graded_row(job, grade, branch_of), light, version)
        self._known[job.id] = known
        return known

    def _version(self, profile: str) -> str | None:
        """The CLI's, as the first record of that profile has it."""
        found = (k.version for k in self._known.values() if k.row["engine"] == profile)
        return next((version for version in found if version is not None), None)

    def _duration(self) -> int:
        try:
            first = datetime.fromisoformat(self.progress.first_time or "")
            return round((_last(self.progress) - first).total_seconds() * 1000)
        except ValueError:
            return 0


def _last(progress: Progress) -> datetime:
    return datetime.fromisoformat(progress.last_time or "")


def _shifted(node: Mapping[str, Any], shift: int) -> dict[str, Any]:
    parent = node["parent_n"]
    return {**node, "n": node["n"] + shift, "parent_n": None if parent is None else parent + shift}


def _stamp(*paths: str) -> tuple[int, ...] | None:
    """What changes when a file is replaced; None if one is not there."""
    found: list[int] = []
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116 - thousands of times
        except OSError:
            return None
        found += [status.st_ino, status.st_size, status.st_mtime_ns]
    return tuple(found)


def _of_record(path: Path) -> tuple[str | None, str | None]:
    """`branch_of` and the CLI's version; of a damaged record, nothing."""
    try:
        record = json.loads(read_regular(path))
        branch_of, version = record.get("branch_of"), record.get("engine", {}).get("version")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None, None
    return (
        branch_of if isinstance(branch_of, str) else None,
        version if isinstance(version, str) else None,
    )


def _result(run: Path) -> dict[str, Any] | None:
    """`result.json` but for its grades; None if there is none that can be read."""
    try:
        value = json.loads(read_regular(run / RESULT_FILE))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    value.pop("cases", None)
    return value
