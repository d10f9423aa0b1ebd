"""What a run was asked to do: from the command line, and back from a run's `run.json`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from skillup.errors import RunDirectoryError, UsageError


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of `skillup run` that decide what is run; kept in `run.json`."""

    paths: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    model: str | None = None
    parallel: int | None = None
    trials: int | None = None
    trials_from_turn: int | None = None
    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    item: str | None = None
    sample_size: int | None = None
    seed: int = 0
    variables: tuple[str, ...] = ()
    baseline: bool = False
    max_fail: int | None = None
    reports: tuple[str, ...] = ()
    """Besides result.json, and besides those that the suites ask for."""
    judge_model: str | None = None
    judge_model_fallback: str | None = None
    """From the environment, for cases that name no model of their own."""
    no_judge_cache: bool = False
    directory: str = ""
    """Where the paths are relative to."""


def request_from(data: dict[str, Any]) -> RunRequest:
    """The request that `run.json` holds. Raises RunDirectoryError if it holds none."""
    known = {field.name for field in fields(RunRequest)}
    stored = data.get("request")
    if not isinstance(stored, dict) or not set(stored) <= known:
        raise RunDirectoryError(
            "its run.json was written by another version", hint="start a new run instead"
        )
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    return RunRequest(**values)  # type: ignore[arg-type]


def requested_again(resume: Path, given: RunRequest, out: Path | None) -> RunRequest:
    """The request of the run that is resumed; only `-j` and the like may be given anew.

    Raises UsageError if anything else is given besides, RunDirectoryError if it is no run.
    """
    from skillup.store import RunDirectory

    rest = replace(given, parallel=None, max_fail=None, no_judge_cache=False)
    if out is not None or rest != RunRequest():
        raise UsageError(
            "--resume goes on with what the run was asked to do",
            hint="besides it only -j, --max-fail, --no-judge-cache, --quiet, --json and "
            "--keep-workspaces are taken",
        )
    stored = request_from(RunDirectory.open(resume).run_info())
    return replace(
        stored,
        parallel=given.parallel or stored.parallel,
        max_fail=given.max_fail,
        no_judge_cache=given.no_judge_cache or stored.no_judge_cache,
    )
