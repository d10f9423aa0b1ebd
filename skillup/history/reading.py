"""From a run directory to its outcomes.

Files are read leniently, as plain JSON: runs of older versions have to be readable for years, and
of a grade only a few fields matter here. Format of the files: `docs/runs.md`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from skillup.errors import RunDirectoryError
from skillup.history.comparison import digests_of
from skillup.history.outcomes import (
    CaseKey,
    RunOutcomes,
    Status,
    TrialOutcome,
    planned_key,
    selection_of,
)
from skillup.store.files import disk_errors, read_regular
from skillup.store.places import START_ANEW, check_shape_of_run
from skillup.store.run_directory import RESULT_FILE, RUN_FILE
from skillup.store.trials import GRADE_FILE

_LONGEST_REASON = 500


def run_told_in(path: Path) -> tuple[str, str] | None:
    """When the run in the directory `path` began, and its id; None: there is none.

    Raises RunDirectoryError if that cannot be read.
    """
    info = _json_object(path / RUN_FILE)
    return None if info is None else _begin(info, path)


def start_told_in(path: Path) -> Path | None:
    """The directory in which the run in the directory `path` was started; None: that is not told.

    Raises RunDirectoryError if `run.json` cannot be read.
    """
    request = (_json_object(path / RUN_FILE) or {}).get("request")
    told = request.get("directory") if isinstance(request, dict) else None
    return Path(told) if isinstance(told, str) and told and "\0" not in told else None


def _begin(info: Mapping[str, Any], path: Path) -> tuple[str, str]:
    return str(info.get("started_at") or ""), str(info.get("run_id") or path.name)


def read_run(path: Path) -> RunOutcomes:
    """The outcomes of the run in the directory `path`.

    They are those of `result.json`; a run that was killed has none, so then those of the
    `grading.json` files of the trials that had finished. Raises RunDirectoryError if it is no run,
    or holds nothing that can be read.
    """
    path = path.absolute()
    info = _json_object(path / RUN_FILE)
    if info is None:
        what = "is no run directory" if path.is_dir() else "does not exist"
        raise RunDirectoryError(f"{path} {what}", hint="give the directory that holds run.json")
    check_shape_of_run(info, path / RUN_FILE)
    result = _result(path / RESULT_FILE)
    suites = info.get("suites") or {}
    grades = result["cases"] if result is not None else _single_grades(path)
    trials = [trial for grade in grades if (trial := _outcome(grade)) is not None]
    not_held = _not_held(info, result, trials, suites)
    started_at, run_id = _begin(info, path)
    return RunOutcomes(
        run_id=run_id,
        started_at=started_at,
        path=str(path),
        finished=not not_held,
        trials=(*trials, *not_held),
        gates={name: about.get("gates") or {} for name, about in suites.items()},
        until_decided=_until_decided(info),
        selection=selection_of(info),
        digests=digests_of(info, {trial.key.suite for trial in trials}),
    )


def _until_decided(info: Mapping[str, Any]) -> bool:
    request = info.get("request")
    return isinstance(request, dict) and bool(request.get("until_decided"))


def _result(path: Path) -> dict[str, Any] | None:
    """`result.json`, with its lists; None if there is none. RunDirectoryError if it is damaged."""
    hint = "`skillup run --resume` writes it anew, from the trials' grades"
    result = _json_object(path, hint=hint)
    if result is not None and not (
        isinstance(result.get("cases"), list) and isinstance(result.get("not_run") or [], list)
    ):
        raise RunDirectoryError(f"{path} is damaged", hint=hint)
    return result


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
            continue  # cut short: the trial counts as not held


def _outcome(grade: Any) -> TrialOutcome | None:
    """What a grade says; None if it is none."""
    try:
        status: Status = grade["status"]
        if status not in get_args(Status):
            return None
        cost = grade.get("cost_usd")
        return TrialOutcome(
            key=CaseKey(*(str(grade[name]) for name in ("suite", "case_id", "engine", "variant"))),
            trial=int(grade["trial"]),
            status=status,
            score=float(grade["score"]),
            cost_usd=None if cost is None else float(cost),
            duration_ms=int(grade["duration_ms"]),
            reason=" ".join(str(grade["reason"]).split())[:_LONGEST_REASON],
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _not_held(
    info: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    trials: Iterable[TrialOutcome],
    suites: Mapping[str, Any],
) -> list[TrialOutcome]:
    """The trials that were planned and are not among `trials`."""
    held = Counter((trial.key, trial.trial) for trial in trials)
    known = {key.suite for key, _ in held}
    missing = []
    for job in info.get("jobs") or () if result is None else result.get("not_run") or ():
        key, number = planned_key(str(job), suites, known)
        # Of two suites of the same name, one may have held what the other has not.
        if result is None and held[key, number]:
            held[key, number] -= 1
        else:
            missing.append(TrialOutcome(key, number, "NOT_HELD", reason="not held"))
    return missing
