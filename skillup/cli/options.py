"""Arguments and options that several verbs share, and how all of them are written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from skillup.errors import UsageError


def option(default: Any, text: str, *names: str, **more: Any) -> Any:
    """An option with `text` as its help; without `names` it is called as its parameter. It is
    needed if `default` is ``...``. `min`, `max`: of a number; `parser`: what reads a path or URL.
    """
    return default, text, names, more


def flag(name: str, text: str) -> Any:
    """A switch; there is no `--no-…`."""
    return option(False, text, name)


def argument(default: Any, metavar: str, text: str) -> Any:
    return default, text, None, {"metavar": metavar}


def parse_seconds(given: str) -> float:
    """``"45m"`` → 2700.0; a bare number is seconds. Raises UsageError for anything else."""
    text = given.strip().lower()
    number = text.rstrip("smhd")
    try:
        value = float(number) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[text[len(number) :]]
    except (ValueError, KeyError):
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{given}: no length of time", hint="for example 90s, 45m, 8h or 30d")
    return value


def parse_age(given: str) -> float:
    """As :func:`parse_seconds`, but with its unit: who means days shall not give seconds."""
    if given.strip()[-1:].isdigit():
        raise UsageError(f"{given}: no length of time", hint=f"give its unit: {given}d is days")
    return parse_seconds(given)


def parse_out(given: str) -> str:
    """The path or URL after `--out`; an empty one would mean the directory in which we are."""
    if not given.strip():
        raise UsageError("--out is empty", hint="give a new directory, or leave --out out")
    from skillup.store.remote import is_url

    if is_url(given) and "://" not in given:
        raise UsageError(f"--out {given}: a URL has two slashes", hint="s3://bucket/nights/monday")
    return given


def parse_local(given: str) -> Path:
    """A path that is no URL: of what is written here only."""
    from skillup.store.remote import is_url

    if is_url(given):
        raise UsageError(f"{given}: this is written to a path here, not to a URL", hint="./out")
    return Path(given)


def _trust(_: object, __: object, given: bool) -> bool:
    """For all that this command starts, judges among it, as the variable would."""
    if given:
        from skillup.load.discover import TRUST

        os.environ[TRUST] = "1"
    return given


Texts = list[str] | None
_PATHS = "Suites, cases, folders of suites, or skills with evals/. Default: cases/ or evals/."
_INDEX = "The index of runs: a file or postgresql://… Default: $SKILLUP_INDEX, else .skillup/."
_REPORTS = "Also write: html, junit, markdown, benchmark, json; with commas, or repeated."
_TRUST = "Suites may read outside of their project, and name addresses that keys go to."
RUN_HELP = "A run's directory, its URL, its id or the beginning of it, or `last`."
_ENGINES = "A profile, an adapter or a file; repeatable."

PATHS = argument(None, "[PATH]...", _PATHS)
RUN = argument(..., "RUN", RUN_HELP)
ENGINES = option(None, _ENGINES, "--engine", "-e")
CASE = option(None, "Only cases whose id matches this glob.", "--case", "-k")
TAG = option(None, "Only cases with this tag.", "--tag")
VAR = option(None, "NAME=VALUE; outranks the case's vars.", "--var")
ITEM = option(None, "Only dataset items with this text in their id or message.")
SAMPLE_SIZE = option(None, "At most so many items of a dataset.", min=1)
JUDGE_MODEL = option(None, "Who reads for the judges; outranks what suites and cases name.")
TRUST = option(False, _TRUST, "--trust", callback=_trust)
INDEX = option(None, _INDEX, metavar="URL")
JSON = flag("--json", "Data on stdout, as JSON.")
QUIET = option(False, "Only the counts, and what stands out.", "--quiet", "-q")
FULL = flag("--full", "Nothing shortened.")
PORT = option(None, "Default: 7575, or any if that is in use; 0: any.", min=0, max=65535)
NO_OPEN = flag("--no-open", "Do not open a browser.")
FORCE = flag("--force", "Replace files that are there.")
REPORTS = option(None, _REPORTS, "--report")
