"""Runs as they are compared and indexed: outcomes of trials, and tallies."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from skillup.dataclass import frozen
from skillup.errors import RunDirectoryError
from skillup.load.discover import workspace_root
from skillup.schema.grade import RunResult
from skillup.schema.line import TrialLine, grouped, line_of, lines_of
from skillup.store import RunDirectory
from skillup.store.places import HOME_DIRECTORY, RESULT_FILE

if TYPE_CHECKING:
    from skillup.schema.past_runs import CaseRef

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_RUN"]
"""A case's status; NOT_RUN: the run had planned the trial, and ended before it."""
VERDICTS = ("PASS", "FAIL")
WITH_SKILL = "with_skill"
QUARANTINE = "quarantine"
"""The tag of cases that run and are reported, and for which no gate fails."""
_WORST_FIRST = ("FAIL", "ERROR", "SKIP", "NOT_RUN")
_LONGEST_REASON = 500
_CHOICES = ("cases", "tags", "item", "sample_size", "shard", "engines")


class CaseKey(NamedTuple):
    """What makes two trials trials of the same thing, in one run or in two."""

    suite: str
    case_id: str
    engine: str  # The profile's name
    variant: str


def key_of(trial: TrialLine | CaseRef) -> CaseKey:
    return CaseKey(trial.suite, trial.case_id, trial.engine, trial.variant)


class TrialOutcome(NamedTuple):
    key: CaseKey
    trial: int
    status: Status
    score: float = 0.0
    cost_usd: float | None = None
    duration_ms: int = 0
    reason: str = ""  # The verdict's ground, or the error's, in one line


@frozen
class About:
    """What a run used, as far as it is known; else empty."""

    branch: str = ""
    commit: str = ""
    dirty: bool = False  # With uncommitted changes of files that git tracks
    repository: str = ""  # Its remote without credentials, else the workspace's path
    label: str = ""
    host: str = ""
    skillup_version: str = ""
    target_branch: str = ""  # Of a pull request
    models: Mapping[str, str] = field(default_factory=dict)
    """By profile, as the engine names what answered; where it does not, as it was asked for."""
    cli_versions: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, str] = field(default_factory=dict)  # A digest of each, without its model
    skills: Mapping[str, str] = field(default_factory=dict)  # By name, a digest of each
    skill_files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By skill and path, a digest; none for a skill of very many files."""
    cases: Mapping[str, str] = field(default_factory=dict)  # By ``SUITE/CASE``, a digest of each


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
    shard: str = ""  # ``1/3``: a part of a run, which is merged with the others
    about: About = About()
    quarantined: tuple[str, ...] = ()
    """``SUITE/CASE`` of those with the tag `quarantine`: they run, and no gate is about them."""

    @property
    def cases(self) -> set[tuple[str, str, str]]:
        """Suite, id and engine of every case that it planned."""
        return {trial.key[:3] for trial in self.trials}


def planned_key(job_id: str, suites: Mapping[str, Any]) -> tuple[CaseKey, int]:
    """The key and the trial's number of a job id (`CASE/PROFILE/VARIANT/N`), by the `suites` that
    the run knows of: in each the cases' ids by the name that jobs have for them.
    """
    label, engine, variant, trial = [*job_id.rsplit("/", maxsplit=3), "", "", ""][:4]
    number = int(trial) if trial.isdecimal() else 1
    for name, about in suites.items():
        case_id = (about.get("cases") or {}).get(label)
        if case_id is not None:
            return CaseKey(name, str(case_id), engine, variant), number
    return CaseKey("", label, engine, variant), number


def read_run(path: Path, result: RunResult | None = None) -> RunOutcomes:
    """The outcomes of the run in the directory `path`: those of its `result` (None: `result.json`),
    or if it was killed those of the trials' grades. Raises RunDirectoryError if it is no run, or
    damaged.
    """
    with RunDirectory.open(path) as directory:
        directory.database.check_unchanged()
        try:
            return _outcomes_in(directory, result)
        except (AttributeError, KeyError, TypeError) as odd:  # of other kinds than what is written
            raise RunDirectoryError(f"what {path} says of the run is damaged") from odd


def _outcomes_in(directory: RunDirectory, result: RunResult | None) -> RunOutcomes:
    path, has_result = directory.path, (directory.path / RESULT_FILE).exists()
    info = directory.run_info(jobs=not has_result)
    if has_result:
        result = result or directory.read_result()
        lines, missing = lines_of(result.cases), result.not_run
    else:
        graded = ((one.job_id, one.grade()) for one in directory.finished())
        found = {job: line_of(grade) for job, grade in graded if grade is not None}
        lines = list(found.values())
        missing = [job for job in info.get("jobs") or () if job not in found]
    about = about_of(info, directory)
    suites, request = info.get("suites") or {}, info.get("request") or {}
    not_run = (planned_key(job, suites) for job in missing)
    keys: dict[CaseKey, CaseKey] = {}  # One for all trials of a case
    outcomes = (
        TrialOutcome(
            keys.setdefault(key := key_of(line), key),
            *(line.trial, line.status, line.score, line.cost_usd, line.duration_ms),
            reason=_in_one_line(line.reason),
        )
        for line in lines
    )
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
        shard=str(request.get("shard") or ""),
        about=about,
        quarantined=tuple(
            f"{suite}/{case_id}"
            for suite, own in suites.items()
            for case_id, tags in (own.get("tags") or {}).items()
            if QUARANTINE in tags
        ),
    )


@lru_cache(100)  # Most are the same
def _in_one_line(reason: str) -> str:
    return " ".join(reason.split())[:_LONGEST_REASON]


def selection_key(info: Mapping[str, Any]) -> str:
    """What a run was asked to choose, by its info: paths (as the repository has them, which may be
    checked out elsewhere), engines, -k, --tag and the like.
    """
    request = info.get("request") or {}
    directory, root = str(request.get("directory") or ""), (info.get("used") or {}).get("root")
    paths = {os.path.realpath(Path(directory, str(path))) for path in request.get("paths") or ()}
    if root:
        paths = {os.path.relpath(path, os.path.realpath(root)) for path in paths}
    chosen = {name: request[name] for name in _CHOICES if request.get(name)}
    if "sample_size" in chosen:
        chosen["seed"] = request.get("seed")
    return json.dumps({"paths": sorted(paths), **chosen}, sort_keys=True) if request else ""


def about_of(info: Mapping[str, Any], directory: RunDirectory) -> About:
    """What the run knows of itself; of models and CLIs, what some of its records say."""
    used, suites = info.get("used") or {}, info.get("suites") or {}
    profiles, finished = info.get("profiles") or {}, directory.finished_jobs()
    models: dict[str, str] = {}
    versions: dict[str, str] = {}
    for name, profile in profiles.items():
        own = sorted(job for job in finished if job.rsplit("/", maxsplit=3)[1:2] == [name])
        # A few, over the whole run, of those that went well: an error says nothing of the model.
        some = dict.fromkeys([*own[:: len(own) // 3 or 1], *own[:20]])
        with suppress(RunDirectoryError):
            records = (trial.record() for trial in directory.finished(list(some)))
            good = [*islice((r for r in records if r.first_error() is None), 3)]
            # Of resumed conversations some CLIs name it otherwise.
            first = [record.turns[0] for record in good if record.turns]
            if any(turn.started_at for turn in first):
                answered = sorted({turn.model for turn in first if turn.model})
                models[name] = ", ".join(answered) or str(profile.get("model") or "")
            versions[name] = ", ".join(sorted({r.engine.version for r in good if r.engine.version}))
    return About(
        **{name: str(used.get(name) or "") for name in _USED},
        dirty=bool(used.get("dirty")),
        label=str(info.get("label") or ""),
        skillup_version=str(info.get("skillup_version") or ""),
        models={name: model for name, model in models.items() if model},
        cli_versions={name: version for name, version in versions.items() if version},
        profiles={name: _digest({**own, "model": None}) for name, own in profiles.items()},
        skills={name: str(own["digest"]) for name, own in (used.get("skills") or {}).items()},
        skill_files={name: own["files"] for name, own in (used.get("skills") or {}).items()},
        cases={
            "/".join(planned_key(f"{label}///1", suites)[0][:2]): digest
            for label, digest in (info.get("case_digests") or {}).items()
        },
    )


_USED = ("branch", "commit", "repository", "host", "target_branch")


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def workspace_of(path: Path) -> Path:
    """The workspace of the run in `path`: whose `.skillup/runs` it is in, else where it began."""
    folder = path.absolute().parent
    if folder.name == "runs" and folder.parent.name == HOME_DIRECTORY:
        return folder.parent.parent
    with RunDirectory.open(path) as run:
        request = run.run_info().get("request") or {}
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


def fields_of(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def together(tallies: Iterable[CaseTally]) -> CaseTally:
    """Several as one, of a case's runs or a suite's cases; each trial counts the same in means."""
    return CaseTally(trial for own in tallies for trial in own.trials)


def by_case(trials: Iterable[TrialOutcome]) -> dict[CaseKey, CaseTally]:
    """The tally of each case, in the order in which cases first come."""
    groups = grouped(trials, lambda trial: trial.key)
    return {key: CaseTally(group) for key, group in groups.items()}
