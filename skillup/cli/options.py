"""Arguments and options that several verbs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from skillup.errors import UsageError

RUN_HELP = "A run's directory, its id or the beginning of it, or `last`."
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Suites, cases, folders of suites, or skills with evals/. Default: cases/ or evals/.",
        show_default=False,
    ),
]
CaseGlobs = Annotated[
    list[str] | None, typer.Option("--case", "-k", help="Only cases whose id matches this glob.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only cases with this tag.")]
Vars = Annotated[
    list[str] | None, typer.Option("--var", help="NAME=VALUE; outranks the case's vars.")
]
Item = Annotated[
    str | None,
    typer.Option("--item", help="Only dataset items with this text in their id or message."),
]
SampleSize = Annotated[
    int | None, typer.Option("--sample-size", min=1, help="At most so many items of a dataset.")
]
Seed = Annotated[int, typer.Option("--seed", help="Which items --sample-size takes.")]
JudgeModelName = Annotated[
    str | None,
    typer.Option(
        "--judge-model", help="Who reads for the judges; outranks what suites and cases name."
    ),
]
NoJudgeCache = Annotated[
    bool, typer.Option("--no-judge-cache", help="Ask models anew; no stored answer counts.")
]


def _trust(given: bool) -> bool:
    """For all that this command starts, judges among it, as the variable would."""
    if given:
        from skillup.load.trust import VARIABLE

        os.environ[VARIABLE] = "1"
    return given


Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        callback=_trust,
        help="Suites may read outside of their project, and name addresses that keys go to.",
    ),
]


def _index(given: str | None) -> str | None:
    if given is not None and not given.strip():
        raise UsageError("--index is empty", hint="give a file or a URL; `none` keeps no index")
    return given


def parse_out(given: str) -> Path:
    """The path after `--out`; an empty one would mean the directory in which we are."""
    if not given.strip():
        raise UsageError("--out is empty", hint="give a new directory, or leave --out out")
    return Path(given)


IndexUrl = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="URL",
        callback=_index,
        help="The index of runs. Default: $SKILLUP_INDEX, else .skillup/.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Data on stdout, as JSON.")]


_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_seconds(given: str | None, option: str) -> float | None:
    """``"45m"`` → 2700.0; a bare number is seconds. Raises UsageError for anything else."""
    if given is None:
        return None
    text = given.strip().lower()
    number = text.rstrip("smh")
    try:
        value = float(number) * _SECONDS[text[len(number) :]]
    except (ValueError, KeyError):
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{option} {given}: no length of time", hint="for example 90s, 45m or 8h")
    return value
