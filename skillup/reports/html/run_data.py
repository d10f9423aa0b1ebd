"""A run directory as the page shows it: finished, running, cut short or damaged."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from pydantic_core import to_jsonable_python

from skillup.dataclass import mutable
from skillup.errors import RunDirectoryError, UsageError
from skillup.history.runs import CaseKey, planned_key
from skillup.reports.html.detail import PageLimits, detail_of
from skillup.reports.html.page_data import (
    Decided,
    PageCaseHistory,
    PageEngine,
    PageIndex,
    PageRow,
    PageRunHead,
    RowTurn,
    Sides,
    Status,
)
from skillup.reports.html.run_files import Fork, Progress, RawFiles
from skillup.reports.result import Row, summarize, total_tokens
from skillup.reports.tables import deciding
from skillup.schema.grade import BASELINE, Analysis, Grade, RunResult
from skillup.schema.line import TrialLine, grouped, line_of
from skillup.store import RunDirectory
from skillup.store.places import RESULT_FILE, RUN_FILE, is_being_written

PAGE_VERSION = "skillup.page/1"
_UNJUDGED: RowTurn = {"status": "completed", "ok": None, "unjudged": True}
_COPIED = {
    "suite", "case_id", "title", "tags", "engine", "variant", "trial", "status", "reason",
    "duration_ms", "cost_usd",
}  # fmt: skip
_UNKNOWN = dict.fromkeys(
    ("score", "end", "duration_ms", "cost_usd", "tokens", "error_kind", "branch_of", "simulator")
)


@mutable
class _Ended:
    """What was read of a trial that is over: neither its record nor its grade changes."""

    stamp: tuple[int, int]
    row: PageRow
    line: TrialLine  # For the sums
    version: str | None


class RunData:
    """One run, for one thread at a time; :meth:`read` looks again. Raises RunDirectoryError."""

    def __init__(self, path: Path, *, base: str | None = None) -> None:
        """`base`: what links to files of the run begin with; None: there are none."""
        self.path = path.absolute()
        self._base = base
        self._ended: dict[str, _Ended] = {}
        self._directory = RunDirectory.open(self.path)
        self.stamp: object = None
        """Differs when a trial has begun, ended or come to another turn, or anything else is new"""
        self._files: object = None
        self.read()

    def read(self) -> bool:
        """Looks again; False: `stamp` is the same."""
        [file, _, result], writing = files = run_stamp(self.path)
        if files == self._files:
            return False
        directory = RunDirectory.open(self.path)  # it may be another run's by now
        stamp = file and file[0], result, writing, directory.progress_stamp()
        if stamp == self.stamp:
            directory.close()
            self._files = files
            return False
        self._directory.close()
        self._directory = directory
        self._recorded = self._directory.ended()
        self.info = self._directory.run_info()
        self.run_id = str(self.info.get("run_id") or self.path.name)
        self.started_at = str(self.info.get("started_at") or "")
        self.progress = Progress(self._directory.events())
        # A process that was killed leaves no word in the journal.
        self.running = not self.progress.ended and writing
        self.result: RunResult | None = None
        if result is not None and not self.running:
            with suppress(RunDirectoryError):  # it is damaged
                self.result = self._directory.read_result(cases=False)
        # Of a run that is running, its journal says so.
        self._saved = frozenset(self.result.not_needed if self.result is not None else ())
        self._raw = RawFiles(self._directory.trial_files, self._base)
        self.rows = [self._row(planned) for planned in planned_rows(self.info)]
        mark_flaky(self.rows)
        self._trees = grouped(self.rows, lambda row: _root(row["job"], self.progress.forks))
        self.stamp, self._files = stamp, files  # now that all was read
        return True

    def detail(self, n: int, limits: PageLimits, *, shift: int = 0) -> dict[str, Any]:
        """The trial `n`; called `n + shift` in it; one that is not over, as far as it is known."""
        if not 1 <= n <= len(self.rows):
            raise UsageError(f"the run has no trial {n}", hint=f"it has {len(self.rows)}")
        row = self.rows[n - 1]
        job, raw, read = row["job"], self._raw, self._directory.blobs.read_state
        try:
            if job in self._recorded:
                record, grade = self._directory.read_record(job), self._directory.read_grade(job)
                family = self._family(row, shift)
                return detail_of(
                    n + shift, job, record, grade, limits=limits, raw=raw, family=family, read=read
                )
            checkpoint = self._directory.read_checkpoint(job)
            if row["status"] != "RUNNING" or checkpoint is None:
                named = {"n": n + shift, "job": job, "case_id": row["case_id"]}
                return {**named, "waiting": row["reason"]}
            record = checkpoint.record  # as far as it is known, without checks
            shown = detail_of(n + shift, job, record, None, limits=limits, raw=raw, read=read)
            return {**shown, "live": row["reason"]}
        except RunDirectoryError as error:
            problem = error.message
        except Exception as defect:  # noqa: BLE001 - one conversation must not cost all others
            problem = f"it cannot be shown: {type(defect).__name__}: {defect}; please report it"
        return {"n": n + shift, "job": job, "problem": problem}

    def _family(self, row: PageRow, shift: int) -> dict[str, Any] | None:
        """``{of, tree}``; None: the trial shares no turns. `shift` is added to each `n`.

        `tree`: its trials, each with the one in whose name the turns before its fork ran.
        """
        forks = self.progress.forks
        members = self._trees[_root(row["job"], forks)]
        numbers = {member["job"]: member["n"] + shift for member in members}
        tree = []
        for member in members:
            fork = forks.get(member["job"])
            tree.append(
                {
                    **{name: member[name] for name in ("job", "case_id", "trial", "status")},
                    "n": member["n"] + shift,
                    "forks_at": fork.after_turn + 1 if fork is not None else 1,
                    "parent_n": numbers.get(fork.parent) if fork is not None else None,
                }
            )
        return {"of": row["branch_of"] or row["case_id"], "tree": tree} if len(tree) > 1 else None

    def recorded(self) -> list[int]:
        return [r["n"] for r in self.rows if r["job"] in self._recorded]

    def head(self) -> PageRunHead:
        # As the first record of each profile has it.
        ended = [known for known in self._ended.values() if known.version is not None]
        versions = {known.row["engine"]: known.version for known in reversed(ended)}
        engines: list[PageEngine] = [
            {
                "profile": name,
                "adapter": about.get("engine"),
                "model": about.get("model"),
                "version": versions.get(name),
            }
            for name, about in (self.info.get("profiles") or {}).items()
        ]
        suites = self.info.get("suites") or {row["suite"]: {} for row in self.rows}
        skills = dict.fromkeys(n for one in suites.values() for n in one.get("skills") or ())
        return {
            "run_id": self.run_id,
            "started_at": self.started_at,
            "finished": self.result is not None and self.result.finished,
            "running": self.running,
            "stopped": to_jsonable_python(self.result and self.result.stopped),
            "path": str(self.path),
            "engines": engines,
            "suites": list(suites),
            "skills": list(skills),
            "skillup_version": self.info.get("skillup_version"),
        }

    def index(
        self,
        mode: Literal["report", "view"],
        history: list[PageCaseHistory] | None = None,
        sides: Sides | None = None,
        compared: Sequence[str] = (),
    ) -> PageIndex:
        result = self.result
        analysis = result.analysis if result is not None else None
        saved = Counter(case_of(row) for row in self.rows if row["status"] == "NOT_NEEDED")
        waiting = ("NOT_RUN", "RUNNING", "WAITING")
        decided = [  # of a run that is running, so far; else it is in the analysis
            {**key._asdict(), "decision": {**decision, "saved": saved[key]}}
            for key, decision in (self.progress.decided.items() if self.running else ())
        ]
        return {
            "schema": PAGE_VERSION,
            "mode": mode,
            "run": self.head(),
            "summary": self.summary(),
            "analysis": _shown(analysis),
            "deciding": list(deciding(analysis.cases)) if analysis is not None else [],
            "decided": cast("list[Decided]", decided),
            "rows": self.rows,
            "not_run": [row["job"] for row in self.rows if row["status"] in waiting],
            "not_needed": [row["job"] for row in self.rows if row["status"] == "NOT_NEEDED"],
            "warnings": result.warnings if result is not None else [],
            "history": history,
            "sides": sides,
            "compared": list(compared),
        }

    def summary(self) -> Any:
        """`result.json`'s; of a run that is running or was cut short, of the trials that ended."""
        if self.result is not None:
            return to_jsonable_python(self.result.summary)
        lines, duration = [known.line for known in self._ended.values()], 0
        with suppress(ValueError, TypeError):
            last = datetime.fromisoformat(self.progress.last_time or "")
            began = datetime.fromisoformat(self.started_at)
            duration = round((last - began).total_seconds() * 1000)
        return to_jsonable_python(summarize(lines, duration))

    def _row(self, planned: PageRow) -> PageRow:
        job = planned["job"]
        stamp = self._recorded.get(job)
        known = self._ended.get(job)
        if stamp is not None and stamp[1] and (known is None or known.stamp != stamp):
            known = self._read_ended(planned, stamp)
        if known is not None and stamp is not None and stamp[1]:
            return known.row.copy()
        self._ended.pop(job, None)
        status: Status = "NOT_RUN"
        if self.running and (stamp is not None or job in self.progress.started):
            turn = self._directory.turn_under_way(job)
            status, reason = "RUNNING", "being prepared"
            if stamp is not None:
                reason = "being judged"
            elif turn:
                reason = f"turn {turn} is running"
                planned["turns"] = [_UNJUDGED] * (turn - 1)
        elif job in self._saved or (self.running and case_of(planned) in self.progress.decided):
            status, reason = "NOT_NEEDED", "its case was decided without it"
        elif stamp is not None:
            reason = "run, but not judged: `skillup judge RUN`"
        elif self.running:
            status, reason = "WAITING", "not started yet"
        else:
            reason = "not run"
        return {**planned, "status": status, "reason": reason}

    def _read_ended(self, planned: PageRow, stamp: tuple[int, int]) -> _Ended | None:
        [found] = self._directory.finished([planned["job"]])
        grade = found.grade()
        if grade is None:
            return None
        version = branch_of = None
        with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
            record = json.loads(found.record_json)  # it may be damaged
            branch_of, version = record.get("branch_of"), record["engine"].get("version")
        self._ended[planned["job"]] = known = _Ended(
            stamp,
            graded_row(planned, grade, branch_of if isinstance(branch_of, str) else None),
            line_of(grade),
            version if isinstance(version, str) else None,
        )
        return known


def run_stamp(run: Path) -> tuple[list[tuple[int, ...] | None], bool]:
    """Differs when anything is written, and when the run is opened, ends, is replaced or killed (of
    which no file says anything, but that nobody writes it).
    """
    names = (RUN_FILE, f"{RUN_FILE}-wal", RESULT_FILE)
    return [file_stamp(f"{run}/{name}") for name in names], is_being_written(run)


def file_stamp(path: str) -> tuple[int, ...] | None:
    """Differs when the file is written or replaced; None: it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - every half second
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _shown(analysis: Analysis | None) -> Any:
    """`analysis` without what the page has no place for: a run of many cases has much of it."""
    less: dict[str, Any] = {"at_k": []}
    cases = [case.model_copy(update=less) for case in analysis.cases] if analysis else []
    return analysis and to_jsonable_python(analysis.model_copy(update={"cases": cases}))


# A line of the page's table for each trial, whether it ran or not.


def planned_rows(info: Mapping[str, Any]) -> list[PageRow]:
    """Those of a run's `info`, before they run; what is missing there is left out."""
    suites = info.get("suites") or {}
    rows = []
    for n, job in enumerate(info.get("jobs") or (), start=1):
        key, trial = planned_key(job, suites)
        about = suites.get(key.suite, {})  # Its suite is empty where the run does not say
        tags = (about.get("tags") or {}).get(key.case_id) or ()
        row = {"n": n, "job": job, **key._asdict(), "trial": trial, "status": "NOT_RUN"}
        row |= {"title": (about.get("titles") or {}).get(key.case_id), "tags": list(tags)}
        row |= {"reason": "not run", "turns": [], "flaky": False, **_UNKNOWN}
        rows.append(cast("PageRow", row))
    return rows


def case_of(row: PageRow) -> CaseKey:
    return CaseKey(row["suite"], row["case_id"], row["engine"], row["variant"])


def graded_row(planned: PageRow, grade: Grade, branch_of: str | None) -> PageRow:
    row, user = Row(grade), grade.simulator
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
    shown = {
        **planned,
        **grade.model_dump(include=_COPIED),
        "score": row.score,
        "turns": turns,
        "end": _end(grade),
        "tokens": row.tokens,
        "error_kind": grade.error.get("kind") if grade.error else None,
        "branch_of": branch_of if branch_of != grade.case_id else None,
        "simulator": user
        and {
            **user.model_dump(include={"messages", "cost_usd", "models"}),
            "tokens": total_tokens(user.usage),
        },
    }
    return cast("PageRow", shown)


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
    statuses: dict[CaseKey, set[str]] = defaultdict(set)
    for row in rows:
        statuses[case_of(row)].add(row["status"])
    for row in rows:
        counted = row["variant"] != BASELINE and row["status"] != "NOT_NEEDED"
        row["flaky"] = counted and {"PASS", "FAIL"} <= statuses[case_of(row)]


def _root(job: str, forks: Mapping[str, Fork]) -> str:
    """The trial that a chain of forks comes from; of one that goes round, itself."""
    chain = [job]
    while (fork := forks.get(chain[-1])) is not None:
        if fork.parent in chain:
            return job
        chain.append(fork.parent)
    return chain[-1]
