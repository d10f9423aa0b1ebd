"""What comparing needs of a run: each trial's verdict, score and cost, and the suites' gates."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

# What a run was asked to choose: so that a run of few cases is told from a whole night.

_NARROWING = ("cases", "tags", "item", "sample_size")
_CHOOSING = (*_NARROWING, "engines")
_FILES_OF_CASES = (".yaml", ".yml", ".json")


class RunSelection(NamedTuple):
    """What was asked for, and whether that left out cases of the suites that were named."""

    asked: str
    """As JSON, so that equal texts ask for the same: paths are absolute, and what was not said is
    left out."""
    narrowed: bool
    """By `-k`, `--tag`, `--item`, `--sample-size`, or the path of a single case."""


def selection_of(info: Mapping[str, Any]) -> RunSelection | None:
    """The selection that `info`, the contents of a `run.json`, tells; None: it tells none."""
    request = info.get("request")
    if not isinstance(request, dict):
        return None
    directory = str(request.get("directory") or "")
    given = request.get("paths") or ()
    paths = sorted({os.path.realpath(Path(directory, str(path))) for path in given})
    asked = {name: request[name] for name in _CHOOSING if request.get(name)}
    narrowed = any(name in asked for name in _NARROWING)
    if "sample_size" in asked:
        asked["seed"] = request.get("seed")
    text = json.dumps({"paths": paths, **asked}, sort_keys=True)
    return RunSelection(text, narrowed or any(_is_case(path, info) for path in paths))


def _is_case(path: str, info: Mapping[str, Any]) -> bool:
    suites = info.get("suites")
    about = suites.values() if isinstance(suites, dict) else ()
    files = {os.path.realpath(str(own.get("path") or "")) for own in about}
    return path.endswith(_FILES_OF_CASES) and path not in files


Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_HELD"]
"""A case's status; NOT_HELD: the run had planned the trial, and ended before it."""
VERDICTS = ("PASS", "FAIL")
WITH_SKILL = "with_skill"


class CaseKey(NamedTuple):
    """What makes two trials trials of the same thing, in one run or in two."""

    suite: str
    case_id: str
    engine: str
    """The profile's name."""
    variant: str


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What came of one trial."""

    key: CaseKey
    trial: int
    status: Status
    score: float = 0.0
    cost_usd: float | None = None
    duration_ms: int = 0
    reason: str = ""
    """The verdict's ground, or the error's, in one line."""


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """One run, as it is compared and indexed."""

    run_id: str
    started_at: str
    """UTC, ISO 8601."""
    path: str
    """Its directory when it was read."""
    finished: bool
    """False: trials were planned that were not held."""
    trials: tuple[TrialOutcome, ...]
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By suite, the gates it had when the run was held; a run of an older version has none."""
    until_decided: bool = False
    """How often each case was held depended on how it did, as `--until-decided` wants it."""
    selection: RunSelection | None = None
    """What it was asked to choose; None: not told, as of one that an older version indexed."""
    digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By suite and case id, of what the case was; only where the run's directory told it."""


# Jobs by their ids: which case, engine and variant a trial that was not held would have been.


def planned_key(
    job_id: str, suites: Mapping[str, Any], known: Collection[str]
) -> tuple[CaseKey, int]:
    """A job id (`CASE/PROFILE/VARIANT/N`) as the key of its grade, and the trial's number.

    `suites` is that of `run.json`: it names the suite of each case, and its id where the job has
    another name for it. A run of a version that did not: the suite is the one of the run's grades
    (`known`), if there is one only.
    """
    label, engine, variant, trial = [*job_id.rsplit("/", maxsplit=3), "", "", ""][:4]
    number = int(trial) if trial.isdecimal() else 1
    for name, about in suites.items():
        case_id = (about.get("cases") or {}).get(label)
        if case_id is not None:
            return CaseKey(name, str(case_id), engine, variant), number
    suite = next(iter(known)) if len(known) == 1 else ""
    return CaseKey(suite, label, engine, variant), number
