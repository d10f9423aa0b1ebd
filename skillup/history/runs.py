"""A run as it is compared and indexed: its trials' outcomes, read from its directory, and tallies.

Files are read as plain JSON: of a grade only a few fields matter here. Formats: `docs/runs.md`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, get_args

from skillup.errors import RunDirectoryError
from skillup.load.discover import workspace_root
from skillup.store.files import disk_errors, read_regular
from skillup.store.places import HOME_DIRECTORY, START_ANEW, check_shape_of_run
from skillup.store.run_directory import RESULT_FILE, RUN_FILE
from skillup.store.trials import GRADE_FILE

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_HELD"]
"""A case's status; NOT_HELD: the run had planned the trial, and ended before it."""
VERDICTS = ("PASS", "FAIL")
WITH_SKILL = "with_skill"
_LONGEST_REASON = 500
_CHOICES = ("cases", "tags", "item", "sample_size", "shard", "engines")


class CaseKey(NamedTuple):
    """What makes two trials trials of the same thing, in one run or in two."""

    suite: str
    case_id: str
    engine: str  # The profile's name
    variant: str


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    key: CaseKey
    trial: int
    status: Status
    score: float = 0.0
    cost_usd: float | None = None
    duration_ms: int = 0
    reason: str = ""  # The verdict's ground, or the error's, in one line


@dataclass(frozen=True, slots=True)
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
    """A job id (`CASE/PROFILE/VARIANT/N`) as the key of its grade, and the trial's number.

    `suites` is that of `run.json`: the suite of each case, and its id where the job has another
    name for it.
    """
    label, engine, variant, trial = [*job_id.rsplit("/", maxsplit=3), "", "", ""][:4]
    number = int(trial) if trial.isdecimal() else 1
    for name, about in suites.items():
        case_id = (about.get("cases") or {}).get(label)
        if case_id is not None:
            return CaseKey(name, str(case_id), engine, variant), number
    return CaseKey("", label, engine, variant), number


# From a run directory.


def run_info(path: Path) -> dict[str, Any]:
    """`run.json` of the directory `path`. Raises RunDirectoryError if it is none, or damaged."""
    info = _json_object(path / RUN_FILE)
    if info is None:
        what = "is no run directory" if path.is_dir() else "does not exist"
        raise RunDirectoryError(f"{path} {what}", hint="give the directory that holds run.json")
    check_shape_of_run(info, path / RUN_FILE)
    return info


def read_run(path: Path) -> RunOutcomes:
    """The outcomes of the run in the directory `path`.

    They are those of `result.json`; a run that was killed has none, so then those of the
    `grading.json` files of the trials that had finished. Raises RunDirectoryError if it is no run,
    or holds nothing that can be read.
    """
    path = path.absolute()
    info = run_info(path)
    hint = "`skillup run --resume` writes it anew, from the trials' grades"
    result = _json_object(path / RESULT_FILE, hint=hint)
    lists = [] if result is None else [result.get("cases"), result.get("not_run") or []]
    if not all(isinstance(one, list) for one in lists):
        raise RunDirectoryError(f"{path / RESULT_FILE} is damaged", hint=hint)
    grades = _single_grades(path) if result is None else result["cases"]
    trials = [trial for grade in grades if (trial := _outcome(grade)) is not None]
    not_run = _not_run(info, result, trials)
    suites, request = info.get("suites") or {}, info.get("request") or {}
    return RunOutcomes(
        run_id=str(info.get("run_id") or path.name),
        started_at=str(info.get("started_at") or ""),
        path=str(path),
        finished=not not_run,
        trials=(*trials, *not_run),
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
    """By suite and case id, the digests of the cases in a `run.json`.

    A case that was run in two forms, as by `--resume`, has none.
    """
    digests = info.get("case_digests")
    found = {}
    for label, digest in digests.items() if isinstance(digests, dict) else ():
        if isinstance(digest, str):
            key, _ = planned_key(f"{label}///1", info.get("suites") or {})
            found[key.suite, key.case_id] = digest
    return found


def workspace_of(path: Path) -> Path:
    """The workspace of the run in `path`: whose `.skillup/runs` it is in, else where it began."""
    folder = path.absolute().parent
    if folder.name == "runs" and folder.parent.name == HOME_DIRECTORY:
        return folder.parent.parent
    request = (_json_object(path / RUN_FILE) or {}).get("request")
    start = request.get("directory") if isinstance(request, dict) else None
    there = isinstance(start, str) and "\0" not in start and Path(start).is_dir()
    return workspace_root(Path(start) if start and there else path)


def _json_object(path: Path, *, hint: str = START_ANEW) -> dict[str, Any] | None:
    """The object in the file; None if there is no file. RunDirectoryError if it is damaged."""
    with disk_errors("read", path):
        try:
            data = read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path} is damaged", hint=hint)
    return value


def _single_grades(path: Path) -> Iterable[Any]:
    for file in sorted((path / "trials").rglob(GRADE_FILE)):
        try:
            yield json.loads(read_regular(file))
        except (OSError, ValueError, RecursionError):
            continue  # cut short: the trial counts as not run


def _outcome(grade: Any) -> TrialOutcome | None:
    """None: it is no grade."""
    try:
        if grade["status"] not in get_args(Status):
            return None
        cost = grade.get("cost_usd")
        return TrialOutcome(
            key=CaseKey(*(str(grade[name]) for name in CaseKey._fields)),
            trial=int(grade["trial"]),
            status=grade["status"],
            score=float(grade["score"]),
            cost_usd=None if cost is None else float(cost),
            duration_ms=int(grade["duration_ms"]),
            reason=" ".join(str(grade["reason"]).split())[:_LONGEST_REASON],
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _not_run(
    info: Mapping[str, Any], result: Mapping[str, Any] | None, trials: Iterable[TrialOutcome]
) -> list[TrialOutcome]:
    """The trials that were planned and are not among `trials`."""
    done = Counter((trial.key, trial.trial) for trial in trials)
    missing = []
    for job in info.get("jobs") or () if result is None else result.get("not_run") or ():
        key, number = planned_key(str(job), info.get("suites") or {})
        # Of two suites of the same name, one may have run what the other has not.
        if result is None and done[key, number]:
            done[key, number] -= 1
        else:
            missing.append(TrialOutcome(key, number, "NOT_HELD", reason="not run"))
    return missing


# The trials of one case in one run, summed up.

State = Literal["pass", "fail", "mixed", "error", "skip", "not_held", "absent"]
"""The case in a run: all its verdicts, none, or some are PASS; or why there is no verdict."""


@dataclass(frozen=True, slots=True)
class CaseTally:
    """Counts over trials; means are over those with a verdict, and None where there is none."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    not_held: int = 0
    score: float | None = None
    cost_usd: float | None = None  # Of the trials whose cost is known
    duration_ms: float | None = None
    reason: str = ""  # Why the first trial that did not pass did not
    priced: int = 0  # Trials with a verdict whose cost is known

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    @property
    def not_run(self) -> int:
        """Trials that an error, or the end of the run, kept from a verdict."""
        return self.errors + self.not_held

    @property
    def rate(self) -> float | None:
        return self.passed / self.judged if self.judged else None

    @property
    def state(self) -> State:
        if self.judged:
            if not self.failed:
                return "pass"
            return "mixed" if self.passed else "fail"
        if self.errors:
            return "error"
        if self.not_held:
            return "not_held"
        return "skip" if self.skipped else "absent"


ABSENT = CaseTally()


def tally(trials: Iterable[TrialOutcome]) -> CaseTally:
    counts: Counter[str] = Counter()
    judged: list[TrialOutcome] = []
    reasons: dict[str, str] = {}
    for trial in trials:
        counts[trial.status] += 1
        reasons.setdefault(trial.status, trial.reason)
        if trial.status in VERDICTS:
            judged.append(trial)
    costs = [trial.cost_usd for trial in judged if trial.cost_usd is not None]
    worst = (status for status in ("FAIL", "ERROR", "SKIP", "NOT_HELD") if status in reasons)
    return CaseTally(
        passed=counts["PASS"],
        failed=counts["FAIL"],
        errors=counts["ERROR"],
        skipped=counts["SKIP"],
        not_held=counts["NOT_HELD"],
        score=fmean(trial.score for trial in judged) if judged else None,
        cost_usd=fmean(costs) if costs else None,
        duration_ms=fmean(trial.duration_ms for trial in judged) if judged else None,
        reason=reasons.get(next(worst, ""), ""),
        priced=len(costs),
    )


def together(tallies: Iterable[CaseTally]) -> CaseTally:
    """Several as one, of a case's runs or a suite's cases; each trial counts the same in means."""
    parts = list(tallies)

    def mean(values: Iterable[tuple[float | None, int]]) -> float | None:
        known = [(value, trials) for value, trials in values if value is not None and trials]
        count = sum(trials for _, trials in known)
        return sum(value * trials for value, trials in known) / count if count else None

    return CaseTally(
        passed=sum(own.passed for own in parts),
        failed=sum(own.failed for own in parts),
        errors=sum(own.errors for own in parts),
        skipped=sum(own.skipped for own in parts),
        not_held=sum(own.not_held for own in parts),
        score=mean((own.score, own.judged) for own in parts),
        cost_usd=mean((own.cost_usd, own.priced) for own in parts),
        duration_ms=mean((own.duration_ms, own.judged) for own in parts),
        reason=next((own.reason for own in parts if own.reason), ""),
        priced=sum(own.priced for own in parts),
    )


def by_case(trials: Iterable[TrialOutcome]) -> dict[CaseKey, CaseTally]:
    """The tally of each case, in the order in which cases first come."""
    groups: dict[CaseKey, list[TrialOutcome]] = {}
    for trial in trials:
        groups.setdefault(trial.key, []).append(trial)
    return {key: tally(group) for key, group in groups.items()}
