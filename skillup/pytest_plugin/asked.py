"""What the options of pytest ask for: the suites, and the request that a run of them would have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillup.app.request import RunRequest
from skillup.errors import RunDirectoryError, UsageError
from skillup.judges.models.client import FALLBACK_VARIABLE
from skillup.load.discover import find_suites
from skillup.schema.base import MOST_TRIALS
from skillup.store.run_directory import check_free

_OPTION = "--skillup"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The suites of `--skillup`, and how their cases are to be held."""

    request: RunRequest
    """Without paths."""
    suites: dict[Path, tuple[str, ...]]
    """By the suite's file (resolved), what is wanted of it: itself, or some of its case files."""
    out: Path | None
    directory: Path


def asked_for(config: pytest.Config) -> SessionOptions:
    """What `config` says. Raises pytest.UsageError where a path means no suite, and the like."""
    directory = config.invocation_params.dir
    paths = [directory / path for path in config.getoption("skillup")]
    try:
        found = find_suites(paths)
    except UsageError as error:
        raise pytest.UsageError(_with_hint(error)) from None
    out = config.getoption("skillup_out")
    request = RunRequest(
        engines=tuple(config.getoption("skillup_engine") or ()),
        model=config.getoption("skillup_model"),
        trials=_trials(config.getoption("skillup_trials")),
        baseline=config.getoption("skillup_baseline"),
        judge_model_fallback=os.environ.get(FALLBACK_VARIABLE) or None,
        directory=str(directory),
    )
    return SessionOptions(
        request,
        {s.path.resolve(): tuple(map(str, s.only or (s.path.resolve(),))) for s in found},
        directory / out if out is not None else None,
        directory,
    )


def refuse_place_in_use(asked: SessionOptions) -> None:
    """Raises pytest.UsageError if `--skillup-out` is no place for a run: once, and not by case."""
    if asked.out is not None:
        try:
            _check_below_a_directory(asked.out)
            check_free(asked.out)
        except RunDirectoryError as error:
            raise pytest.UsageError(
                f"--skillup-out: {error.message}\n  hint: name a new or empty directory"
            ) from None


def _check_below_a_directory(out: Path) -> None:
    there = next((path for path in (out, *out.parents) if path.exists()), None)
    if there is not None and not there.is_dir():
        raise RunDirectoryError(f"{there} is no directory")


def add_to_arguments(config: pytest.Config, suites: Sequence[Path]) -> None:
    """Have pytest look at the suites' files.

    `--skillup PATH` on the command line is a path to collect as any other: where it is the only
    one, `testpaths` and the working directory, which are what pytest collects for want of a path,
    are not collected. In `addopts` it adds to what is collected anyway.
    """
    typed = any(str(a).partition("=")[0] == _OPTION for a in config.invocation_params.args)
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    kept = [] if typed and not given else config.args
    named = {argument.partition("::")[0] for argument in kept}
    # One that is named on the command line is there for the items of it that are named.
    files = [str(path) for path in suites if not named & _spellings(path, config)]
    config.args[:] = [*kept, *files]
    if not kept:
        config.args_source = pytest.Config.ArgsSource.ARGS


def _spellings(path: Path, config: pytest.Config) -> set[str]:
    return {str(path), os.path.relpath(path, config.invocation_params.dir)}


def _trials(given: str | None) -> int | None:
    if given is None:
        return None
    # What has very many digits is no number to Python either.
    number = int(given) if given.isdecimal() and len(given) < 10 else 0
    if not 1 <= number <= MOST_TRIALS:
        raise pytest.UsageError(f"--skillup-trials {given}: not a number from 1 to {MOST_TRIALS}")
    return number


def _with_hint(error: UsageError) -> str:
    return f"{_OPTION} {error.message}" + (f"\n  hint: {error.hint}" if error.hint else "")
