"""A run as it is compared and indexed: the outcomes of its trials, and their tallies."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

from skillup.frozen import frozen
from skillup.load.discover import workspace_root
from skillup.schema.grade import Grade
from skillup.store import RunDirectory, trials
from skillup.store.places import HOME_DIRECTORY, RESULT_FILE

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_RUN"]
"""A case's status; NOT_RUN: the run had planned the trial, and ended before it."""
VERDICTS = ("PASS", "FAIL")
WITH_SKILL = "with_skill"
_WORST_FIRST = ("FAIL", "ERROR", "SKIP", "NOT_RUN")
_LONGEST_REASON = 500
_CHOICES = ("cases", "tags", "item", "sample_size", "shard", "engines")


class CaseKey(NamedTuple):
    """What makes two trials trials of the same thing, in one run or in two."""

    suite: str
    case_id: str
    engine: str  # The profile's name
    variant: str


def key_of(grade: Grade) -> CaseKey:
    return CaseKey(grade.suite, grade.case_id, grade.engine, grade.variant)


@frozen
class TrialOutcome:
    key: CaseKey
    trial: int
    status: Status
    score: float = 0.0
    cost_usd: float | None = None
    duration_ms: int = 0
    reason: str = ""  # The verdict's ground, or the error's, in one line


@frozen
class RunOutcomes:
    """One run, as it is compared and indexed."""

    run_id: str
    started_at: str  # UTC, ISO 8601
    path: str  # Its directory when it was read
    finished: bool  # False: trials were planned that were not run
    trials: tuple[TrialOutcome, ...]
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By suite, the gates it had when it was run."""
    until_decided: bool = False
    """The number of trials of a case depended on their outcomes (`--until-decided`)."""
    selection_key: str = ""  # Equal for runs that were asked for the same cases and engines
    digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By suite and case id, of the case as it was run; not kept in the index."""

    @property
    def cases(self) -> set[tuple[str, str, str]]:
        """Suite, id and engine of every case that it planned."""
        return {trial.key[:3] for trial in self.trials}


def planned_key(job_id: str, suites: Mapping[str, Any]) -> tuple[CaseKey, int]:
    """The key and the trial's number of a job id (`CASE/PROFILE/VARIANT/N`), by the `suites` of
    `run.json`: in each the cases' ids by the name that jobs have for them.
    """
    label, engine, variant, trial = [*job_id.rsplit("/", maxsplit=3), "", "", ""][:4]
    number = int(trial) if trial.isdecimal() else 1
    for name, about in suites.items():
        case_id = (about.get("cases") or {}).get(label)
        if case_id is not None:
            return CaseKey(name, str(case_id), engine, variant), number
    return CaseKey("", label, engine, variant), number


def read_run(path: Path) -> RunOutcomes:
    """The outcomes of the run in the directory `path`: those of `result.json`, or if it was killed
    those of the `grading.json` files. Raises RunDirectoryError if it is no run, or damaged.
    """
    directory = RunDirectory.open(path)
    path, info = directory.path, directory.run_info()
    if (path / RESULT_FILE).exists():
        result = directory.read_result()
        grades, missing = result.cases, result.not_run
    else:
        ended = trials.directories_with_records(path / "trials")
        found = {job: trials.load_grade(place / trials.GRADE_FILE) for job, place in ended}
        grades = [grade for grade in found.values() if grade is not None]
        missing = [job for job in info.get("jobs") or () if found.get(job) is None]
    suites, request = info.get("suites") or {}, info.get("request") or {}
    not_run = (planned_key(job, suites) for job in missing)
    outcomes = [
        TrialOutcome(
            key=key_of(grade),
            trial=grade.trial,
            status=grade.status,
            score=grade.score,
            cost_usd=grade.cost_usd,
            duration_ms=grade.duration_ms,
            reason=" ".join(grade.reason.split())[:_LONGEST_REASON],
        )
        for grade in grades
    ]
    return RunOutcomes(
        run_id=str(info.get("run_id") or path.name),
        started_at=str(info.get("started_at") or ""),
        path=str(path),
        finished=not missing,
        trials=(
            *outcomes,
            *(TrialOutcome(key, number, "NOT_RUN", reason="not run") for key, number in not_run),
        ),
        gates={name: about.get("gates") or {} for name, about in suites.items()},
        until_decided=bool(request.get("until_decided")),
        selection_key=selection_key(info),
        digests=digests_of(info),
    )


def selection_key(info: Mapping[str, Any]) -> str:
    """What the run of a `run.json` was asked to choose: paths, engines, -k, --tag and the like."""
    request = info.get("request") or {}
    directory = str(request.get("directory") or "")
    paths = {os.path.realpath(Path(directory, str(path))) for path in request.get("paths") or ()}
    chosen = {name: request[name] for name in _CHOICES if request.get(name)}
    if "sample_size" in chosen:
        chosen["seed"] = request.get("seed")
    return json.dumps({"paths": sorted(paths), **chosen}, sort_keys=True) if request else ""


def digests_of(info: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """By suite and case id, the digests of the cases in a `run.json`."""
    suites, digests = info.get("suites") or {}, info.get("case_digests") or {}
    return {planned_key(f"{label}///1", suites)[0][:2]: d for label, d in digests.items()}


def workspace_of(path: Path) -> Path:
    """The workspace of the run in `path`: whose `.skillup/runs` it is in, else where it began."""
    folder = path.absolute().parent
    if folder.name == "runs" and folder.parent.name == HOME_DIRECTORY:
        return folder.parent.parent
    request = RunDirectory.open(path).run_info().get("request") or {}
    start = Path(request.get("directory") or path)
    return workspace_root(start if start.is_dir() else path)


State = Literal["pass", "fail", "mixed", "error", "skip", "not_started", "absent"]
"""The case in a run: all its verdicts, none, or some are PASS; or why there is no verdict."""


def mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


class CaseTally:
    """Counts over trials; means are over those with a verdict, and None where there is none."""

    def __init__(self, trials: Iterable[TrialOutcome] = ()) -> None:
        self.trials = tuple(trials)
        counts = Counter(trial.status for trial in self.trials)
        self.passed, self.failed = counts["PASS"], counts["FAIL"]
        self.errors, self.skipped = counts["ERROR"], counts["SKIP"]
        self.not_started = counts["NOT_RUN"]
        self.judged = self.passed + self.failed
        self.not_run = self.errors + self.not_started
        """Trials that an error, or the end of the run, kept from a verdict."""
        self.rate = self.passed / self.judged if self.judged else None
        judged = [trial for trial in self.trials if trial.status in VERDICTS]
        self.score = mean_known(trial.score for trial in judged)
        self.cost_usd = mean_known(trial.cost_usd for trial in judged)
        """Of the trials whose cost is known."""
        self.duration_ms = mean_known(trial.duration_ms for trial in judged)
        reasons = (t.reason for status in _WORST_FIRST for t in self.trials if t.status == status)
        self.reason = next(reasons, "")
        """Why the first trial that did not pass did not."""

    @property
    def state(self) -> State:
        if self.judged:
            return ("mixed" if self.passed else "fail") if self.failed else "pass"
        if self.not_run:
            return "error" if self.errors else "not_started"
        return "skip" if self.skipped else "absent"


ABSENT = CaseTally()


def together(tallies: Iterable[CaseTally]) -> CaseTally:
    """Several as one, of a case's runs or a suite's cases; each trial counts the same in means."""
    return CaseTally(trial for own in tallies for trial in own.trials)


def by_case(trials: Iterable[TrialOutcome]) -> dict[CaseKey, CaseTally]:
    """The tally of each case, in the order in which cases first come."""
    groups: dict[CaseKey, list[TrialOutcome]] = {}
    for trial in trials:
        groups.setdefault(trial.key, []).append(trial)
    return {key: CaseTally(group) for key, group in groups.items()}
