"""A run directory as the page shows it: finished, running, cut short or damaged."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import ValidationError

from skillup.errors import RunDirectoryError, UsageError
from skillup.reports.html.detail import PageLimits, detail_of
from skillup.reports.html.page_data import (
    Decided,
    PageCaseHistory,
    PageEngine,
    PageIndex,
    PageRow,
    PageRunHead,
    Sides,
)
from skillup.reports.html.run_files import (
    Fork,
    PlannedJob,
    RawFiles,
    planned_jobs,
    progress_of,
    turn_under_way,
)
from skillup.reports.result import summarize
from skillup.reports.sheets import deciding
from skillup.reports.view_model import row_of, total_tokens
from skillup.schema.grade import BASELINE, Analysis, Grade, Summary
from skillup.store import RunDirectory
from skillup.store.files import read_regular
from skillup.store.places import RESULT_FILE, writer_of
from skillup.store.trials import GRADE_FILE, RECORD_FILE

PAGE_VERSION = "skillup.page/1"


@dataclass(slots=True)
class _Ended:
    """What was read of a trial that is over: neither its record nor its grade changes."""

    stamp: tuple[int, ...]
    row: PageRow
    light: Grade  # Without turns and checks: for the sums
    version: str | None


class RunData:
    """One run, for one thread at a time; :meth:`read` looks again. Raises RunDirectoryError."""

    def __init__(self, path: Path, *, base: str = "") -> None:
        """`base`: what links to files of the run begin with."""
        self.path = path.absolute()
        self._directory = RunDirectory.open(self.path)
        self._base = base
        self._ended: dict[str, _Ended] = {}
        self._places: dict[str, Path] = {}
        self.read()

    def read(self) -> None:
        self.info = self._directory.run_info()
        self.progress = progress_of(self._directory.events())
        self.result = _object(self.path / RESULT_FILE)
        self.result.pop("cases", None)
        self.running = not self.progress.ended and self.is_still_running()
        self.jobs = planned_jobs(self.info)
        self._by_n = {job.n: job for job in self.jobs}
        self._saved = frozenset(() if self.running else self.not_needed())
        self._raw = RawFiles(self.path, self.progress.forks, self._base)
        self.rows = [self._row(job) for job in self.jobs]
        mark_flaky(self.rows)
        self._trees = ForkTrees(self.progress.forks, self.rows)

    @property
    def run_id(self) -> str:
        return str(self.info.get("run_id") or self.path.name)

    @property
    def started_at(self) -> str:
        return str(self.info.get("started_at") or "")

    def detail(self, n: int, limits: PageLimits, *, shift: int = 0) -> dict[str, Any]:
        """The trial `n`; called `n + shift` in it; one that is not over, as far as it is known."""
        job = self._by_n.get(n)
        if job is None:
            raise UsageError(f"the run has no trial {n}", hint=f"it has {len(self.jobs)}")
        row = self.rows[n - 1]
        raw, read = self._raw, self._directory.blobs.read_state
        try:
            if (self._place(job) / RECORD_FILE).is_file():
                return detail_of(
                    n + shift,
                    job.id,
                    self._directory.read_record(job.id),
                    self._directory.read_grade(job.id),
                    limits=limits,
                    raw=raw,
                    family=self._trees.of(job.id, shift),
                    read=read,
                )
            checkpoint = self._directory.read_checkpoint(job.id)
            if row["status"] != "RUNNING" or checkpoint is None:
                named = {"job": row["job"], "case_id": row["case_id"]}
                return {"n": n + shift, **named, "waiting": row["reason"]}
            record = checkpoint.record  # as far as it is known, without checks
            shown = detail_of(n + shift, job.id, record, None, limits=limits, raw=raw, read=read)
            return {**shown, "live": row["reason"]}
        except RunDirectoryError as error:
            problem = error.message
        except Exception as defect:  # noqa: BLE001 - one conversation must not cost all others
            problem = f"it cannot be shown: {type(defect).__name__}: {defect}; please report it"
        return {"n": n + shift, "job": job.id, "problem": problem}

    def is_still_running(self) -> bool:
        """Whether the process that writes it is there: one that was killed leaves no word."""
        return writer_of(self.path) is not None

    def running_jobs(self) -> list[str]:
        return [row["job"] for row in self.rows if row["status"] == "RUNNING"]

    def recorded(self) -> list[int]:
        return [job.n for job in self.jobs if (self._place(job) / RECORD_FILE).is_file()]

    def head(self) -> PageRunHead:
        profiles, suites = self.info.get("profiles"), self.info.get("suites")
        versions: dict[str, str] = {}  # as the first record of each profile has it
        for known in self._ended.values():
            if known.version is not None:
                versions.setdefault(known.row["engine"], known.version)
        engines: list[PageEngine] = [
            {
                "profile": name,
                "adapter": about.get("engine"),
                "model": about.get("model"),
                "version": versions.get(name),
            }
            for name, about in (profiles.items() if isinstance(profiles, dict) else ())
            if isinstance(about, dict)
        ]
        named = list(suites) if isinstance(suites, dict) else []
        return {
            "run_id": self.run_id,
            "started_at": self.started_at,
            "finished": bool(self.result.get("finished")) and not self.running,
            "running": self.running,
            "stopped": None if self.running else self.result.get("stopped"),
            "path": str(self.path),
            "engines": engines,
            "suites": named or list(dict.fromkeys(row["suite"] for row in self.rows)),
            "skillup_version": self.info.get("skillup_version"),
        }

    def index(
        self,
        mode: Literal["report", "view"],
        history: list[PageCaseHistory] | None = None,
        sides: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The page's index, in the form of `docs/reports.md`; `mode`: ``report`` or ``view``."""
        analysis = None if self.running else self.result.get("analysis")
        warnings = self.result.get("warnings")
        try:
            words = list(deciding(Analysis.model_validate(analysis).cases))
        except ValidationError:  # there is none, or it is another version's
            words = []
        not_needed = self.not_needed()
        needless = frozenset(not_needed)
        saved = Counter(job.key for job in self.jobs if job.id in needless)
        waiting = ("NOT_RUN", "RUNNING", "WAITING")
        decided = [  # of a run that is running, so far; else it is in the analysis
            {**key._asdict(), "decision": {**decision, "saved": saved[key]}}
            for key, decision in (self.progress.decided.items() if self.running else ())
        ]
        page: PageIndex = {
            "schema": PAGE_VERSION,
            "mode": mode,
            "run": self.head(),
            "summary": cast("Summary", self.summary()),
            "analysis": _shown(analysis),
            "deciding": words,
            "decided": cast("list[Decided]", decided),
            "rows": self.rows,
            "not_run": [row["job"] for row in self.rows if row["status"] in waiting],
            "not_needed": not_needed,
            "warnings": [str(text) for text in warnings] if isinstance(warnings, list) else [],
            "history": history,
            "sides": cast("Sides | None", sides),
        }
        return dict(page)

    def summary(self) -> dict[str, Any]:
        """`result.json`'s; of a run that is running or was cut short, of the trials that ended."""
        summary = self.result.get("summary")
        if isinstance(summary, dict) and not self.running:
            return summary
        grades = [self._ended[job.id].light for job in self.jobs if job.id in self._ended]
        try:
            first, last = (
                datetime.fromisoformat(time or "")
                for time in (self.progress.first_time, self.progress.last_time)
            )
            duration = round((last - first).total_seconds() * 1000)
        except (ValueError, TypeError):
            duration = 0
        return summarize(grades, duration).model_dump(mode="json", by_alias=True)

    def not_needed(self) -> list[str]:
        """Trials that `--until-decided` saved; of a run that is running, so far."""
        if self.running:
            return [row["job"] for row in self.rows if row["status"] == "NOT_NEEDED"]
        jobs = self.result.get("not_needed")
        return [str(job) for job in jobs] if isinstance(jobs, list) else []

    def _place(self, job: PlannedJob) -> Path:
        if job.id not in self._places:  # which takes most of looking again at thousands
            self._places[job.id] = self._directory.trial_directory(job.id)
        return self._places[job.id]

    def _row(self, job: PlannedJob) -> PageRow:
        directory = self._place(job)
        stamp = _stamp(f"{directory}/{GRADE_FILE}", f"{directory}/{RECORD_FILE}")
        known = self._ended.get(job.id)
        if stamp is not None and (known is None or known.stamp != stamp):
            known = self._read_ended(job, directory, stamp)
        if known is not None and stamp is not None:
            return known.row.copy()
        self._ended.pop(job.id, None)
        has_record = (directory / RECORD_FILE).is_file()
        if self.running and has_record:
            return running_row(job, None, "being judged")
        if self.running and job.id in self.progress.started:
            return running_row(job, turn_under_way(directory / "raw"), "being prepared")
        if job.id in self._saved or (self.running and job.key in self.progress.decided):
            return plain_row(job, "NOT_NEEDED", "its case was decided without it")
        if has_record:
            return plain_row(job, "NOT_RUN", "run, but not judged: `skillup judge RUN`")
        if self.running:
            return plain_row(job, "WAITING", "not started yet")
        return plain_row(job, "NOT_RUN", "not run")

    def _read_ended(
        self, job: PlannedJob, directory: Path, stamp: tuple[int, ...]
    ) -> _Ended | None:
        try:
            grade = Grade.model_validate_json(read_regular(directory / GRADE_FILE))
        except (OSError, ValidationError):
            return None
        record = _object(directory / RECORD_FILE)
        engine, branch_of = record.get("engine"), record.get("branch_of")
        version = engine.get("version") if isinstance(engine, dict) else None
        self._ended[job.id] = known = _Ended(
            stamp,
            graded_row(job, grade, branch_of if isinstance(branch_of, str) else None),
            grade.model_copy(update={"turns": [], "assertions": []}),
            version if isinstance(version, str) else None,
        )
        return known


def _stamp(*paths: str) -> tuple[int, ...] | None:
    found: list[int] = []
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116 - thousands of times
        except OSError:
            return None
        found += [status.st_ino, status.st_size, status.st_mtime_ns]
    return tuple(found)


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _shown(analysis: Any) -> Any:
    """`analysis` without what the page has no place for: a run of many cases has much of it."""
    try:
        cases = [{**case, "turns": [], "at_k": []} for case in analysis["cases"]]
    except (KeyError, TypeError):  # there is none, or it is another version's
        return analysis
    return {**analysis, "cases": cases}


# A line of the page's table for each trial, whether it ran or not.

_UNKNOWN = dict.fromkeys(
    ("score", "end", "duration_ms", "cost_usd", "tokens", "error_kind", "branch_of", "simulator")
)


def plain_row(planned: PlannedJob, status: str, reason: str, **more: Any) -> PageRow:
    """A trial without a grade: NOT_RUN, NOT_NEEDED, RUNNING or WAITING."""
    row = {
        "n": planned.n,
        "job": planned.id,
        **planned.key._asdict(),
        "title": planned.title,
        "tags": list(planned.tags),
        "trial": planned.trial,
        "status": status,
        "reason": reason,
        "turns": [],
        "flaky": False,
        **_UNKNOWN,
        **more,
    }
    return cast("PageRow", row)


def running_row(planned: PlannedJob, turn: int | None, doing: str) -> PageRow:
    """A trial that is at `turn`, or at none, and then `doing` something else."""
    done = [{"status": "completed", "ok": None, "unjudged": True} for _ in range((turn or 1) - 1)]
    reason = doing if turn is None else f"turn {turn} is running"
    return plain_row(planned, "RUNNING", reason, turns=done)


def graded_row(planned: PlannedJob, grade: Grade, branch_of: str | None) -> PageRow:
    row, user = row_of(grade), grade.simulator
    copied = ("suite", "case_id", "title", "tags", "engine", "variant", "trial", "duration_ms")
    turns = []
    for turn in grade.turns:
        checks = turn.deciding_checks()
        ok: bool | None = None  # it has no checks, or did not run to its end
        if turn.status == "failed":
            ok = False
        elif turn.status == "completed" and checks:
            ok = all(check.passed for check in checks)
        # A turn whose gate skips the rest of the case is shown as skipped itself: nothing failed.
        skips = grade.status == "SKIP" and turn.post_condition_passed is False
        status = "skipped" if skips and turn.status == "completed" else turn.status
        turns.append({"status": status, "ok": ok})
    return plain_row(
        planned,
        grade.status,
        grade.reason,
        **{name: getattr(grade, name) for name in copied},
        score=row.score,
        turns=turns,
        end=_end(grade),
        cost_usd=grade.cost_usd,
        tokens=row.tokens,
        error_kind=grade.error.get("kind") if grade.error else None,
        branch_of=branch_of if branch_of != grade.case_id else None,
        simulator=user
        and {
            "messages": user.messages,
            "cost_usd": user.cost_usd,
            "tokens": total_tokens(user.usage),
            "models": user.models,
        },
    )


def _end(grade: Grade) -> bool | None:
    """Whether the checks of the whole conversation passed.

    None: there are none, or no verdict, or a turn's gate kept them from being evaluated.
    """
    if not grade.assertions or grade.status not in ("PASS", "FAIL"):
        return None
    failed = [check for check in grade.assertions if not check.passed]
    gated = any(turn.post_condition_passed is False for turn in grade.turns)
    if gated and failed and not any(check.assertable for check in failed):
        return None
    return not failed


def mark_flaky(rows: Sequence[PageRow]) -> None:
    """Note in each row whether some trials of its case, with the skill, passed and some failed."""
    seen: dict[tuple[str, ...], set[str]] = {}
    keys = [(row["suite"], row["case_id"], row["engine"], row["variant"]) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        seen.setdefault(key, set()).add(row["status"])
    for row, key in zip(rows, keys, strict=True):
        counted = row["variant"] != BASELINE and row["status"] != "NOT_NEEDED"
        row["flaky"] = counted and {"PASS", "FAIL"} <= seen[key]


# Trials that share turns, as trees: which turns they share, and where each goes its own way.


class ForkTrees:
    def __init__(self, forks: Mapping[str, Fork], rows: Sequence[PageRow]) -> None:
        # A journal that somebody has edited may go round.
        self._forks = {job: fork for job, fork in forks.items() if _root(job, forks) is not None}
        self._rows = {row["job"]: row for row in rows}
        self._members: dict[str | None, list[PageRow]] = {}
        for row in rows:
            self._members.setdefault(_root(row["job"], self._forks), []).append(row)

    def of(self, job: str, shift: int = 0) -> dict[str, Any] | None:
        """``{of, tree}``; None: the trial shares no turns. `shift` is added to each `n`.

        `tree`: its trials, each with the one in whose name the turns before its fork ran.
        """
        members = self._members.get(_root(job, self._forks), [])
        if len(members) < 2:
            return None
        tree = []
        for row in members:
            fork = self._forks.get(row["job"])
            parent = self._rows.get(fork.parent) if fork is not None else None
            tree.append(
                {
                    "job": row["job"],
                    "case_id": row["case_id"],
                    "trial": row["trial"],
                    "status": row["status"],
                    "n": row["n"] + shift,
                    "forks_at": fork.after_turn + 1 if fork is not None else 1,
                    "parent_n": parent["n"] + shift if parent is not None else None,
                }
            )
        own = self._rows[job]
        return {"of": own["branch_of"] or own["case_id"], "tree": tree}


def _root(job: str, forks: Mapping[str, Fork]) -> str | None:
    """The trial that a chain of forks comes from; None: it goes round."""
    seen = {job}
    while job in forks:
        job = forks[job].parent
        if job in seen:
            return None
        seen.add(job)
    return job
