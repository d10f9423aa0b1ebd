"""What a run was asked to do: from the command line, and back from a run's `run.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skillup.errors import RunDirectoryError, UsageError

FALLBACK_VARIABLE = "SKILLUP_JUDGE_MODEL"
"""Names the model of judges for cases that name none."""


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
    jobs: tuple[str, ...] = ()
    """Of the trials that the rest asks for only these; none: all. pytest chooses by trial."""
    item: str | None = None
    sample_size: int | None = None
    shard: str | None = None
    """``I/N``: the I-th of N parts of what the rest asks for."""
    seed: int = 0
    variables: tuple[str, ...] = ()
    baseline: bool = False
    max_fail: int | None = None
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    time_limit: float | None = None
    """In seconds."""
    until_decided: bool = False
    pass_rate: float | None = None
    """What `until_decided` compares with; None: the suite's gate, else a default."""
    rate_limit_wait: float | None = None
    """How long, in seconds, refusals are waited out; None: the default."""
    executor: str = "local"
    scheduler: str | None = None
    reports: tuple[str, ...] = ()
    """Besides result.json, and besides those that the suites ask for."""
    judge_model: str | None = None
    judge_model_fallback: str | None = None
    """From the environment, for cases that name no model of their own."""
    no_judge_cache: bool = False
    directory: str = ""
    """Where the paths are relative to."""

    @property
    def base(self) -> Path:
        """The directory that relative paths start from."""
        return Path(self.directory or ".")


def request_from(data: dict[str, Any]) -> RunRequest:
    """The request that `run.json` holds. Raises RunDirectoryError if it holds none."""
    from pydantic import TypeAdapter, ValidationError

    stored = data.get("request")
    problem = "its run.json was written by another version"
    if isinstance(stored, dict) and set(stored) <= {field.name for field in fields(RunRequest)}:
        try:
            return TypeAdapter(RunRequest).validate_python(stored)
        except ValidationError:
            problem = "its run.json is damaged: `request`"
    raise RunDirectoryError(problem, hint="start a new run instead")


def parse_vars(given: Sequence[str] | None) -> dict[str, str]:
    """``["a=1"]`` → ``{"a": "1"}``. Raises UsageError for anything else."""
    values: dict[str, str] = {}
    for item in given or []:
        name, separator, value = item.partition("=")
        if not separator or not name:
            raise UsageError(f"--var {item}: not NAME=VALUE", hint="for example --var folder=data")
        values[name] = value
    return values


def default_paths(paths: Sequence[Path] | None) -> Sequence[Path]:
    """What was given; else the suites of this folder.

    Raises UsageError if there are none.
    """
    for candidate in (Path("eval.yaml"), Path("evals"), Path("cases")):
        if not paths and candidate.exists():
            return [candidate]
    if paths:
        return paths
    raise UsageError(
        "no suite given, and no eval.yaml, evals/ or cases/ here",
        hint="name a suite, or change to a folder that has one",
    )
