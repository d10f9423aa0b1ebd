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
Shard = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Only the I-th of N parts; `skillup merge` joins them."),
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


Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", "-e", help="A profile, an adapter or a file; repeatable."),
]
Model = Annotated[str | None, typer.Option(help="Outranks the profile's model.")]
Parallel = Annotated[
    int | None, typer.Option("--parallel", "-j", min=1, max=256, help="Trials at once.")
]
Trials = Annotated[int | None, typer.Option(min=1, max=10_000, help="How often to run each case.")]
TrialsFromTurn = Annotated[
    int | None,
    typer.Option(min=1, help="The trials of a case share the turns before this one."),
]
RunSeed = Annotated[
    int, typer.Option(help="Of --sample-size, and of what the scripted engine draws.")
]
Baseline = Annotated[bool, typer.Option("--baseline", help="Run each case without the skill, too.")]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        help="Go on with this run (a directory, an id, or `last`); finished trials are kept.",
    ),
]
RetryErrors = Annotated[
    bool, typer.Option("--retry-errors", help="With --resume: trials with an ERROR run again.")
]
MaxFail = Annotated[
    int | None, typer.Option(min=1, help="Start no more trials after so many bad ones.")
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost-usd", min=0, help="Start no more trials once so much is spent."),
]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="Start no more trials after so many tokens.")
]
TimeLimit = Annotated[
    str | None, typer.Option(help="Start no more trials after so long: 90s, 45m, 8h.")
]
UntilDecided = Annotated[
    bool, typer.Option("--until-decided", help="Stop repeating a case whose pass rate is sure.")
]
PassRate = Annotated[
    float | None,
    typer.Option(help="What --until-decided compares with. Default: the suite's gate, or 0.8."),
]
RateLimitWait = Annotated[
    str | None,
    typer.Option(
        help="How long agents, judges and simulated users wait out rate limits and overload: "
        "10m; 0: not at all."
    ),
]
Executor = Annotated[str, typer.Option(help="local, or dask: on a cluster.")]
Scheduler = Annotated[
    str | None, typer.Option(help="The Dask scheduler's address: tcp://host:8786.")
]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        help="Also write: html, junit, markdown, benchmark, json; with commas, or repeated.",
    ),
]
KeepWorkspaces = Annotated[
    bool, typer.Option("--keep-workspaces", help="Leave each trial's scratch directory.")
]
QuietRun = Annotated[bool, typer.Option("--quiet", "-q", help="Only the closing table.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the conversations as they go on.")
]


def parse_out(given: str) -> Path:
    """The path after `--out`; an empty one would mean the directory in which we are."""
    if not given.strip():
        raise UsageError("--out is empty", hint="give a new directory, or leave --out out")
    return Path(given)


RunOut = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", parser=parse_out, help="The run directory. Default: .skillup/runs/…"
    ),
]
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


JudgeTarget = Annotated[
    str,
    typer.Argument(
        metavar="RUN|TRIAL|RECORD|INPUT|SESSION",
        help="A run (its directory, id, or `last`), a trial's directory in it, a record.json, "
        "a judge-debug file of skill-up, an agent's session, or a folder of sessions.",
    ),
]
EditedCases = Annotated[
    list[Path] | None,
    typer.Option("--cases", help="Judge by these suites or cases instead; repeatable."),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="MODEL",
        help="Compare judges: this model, with another --against or the recorded grades.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="CSV", help="Compare judges with what people said."),
]
WriteLabels = Annotated[
    Path | None,
    typer.Option("--write-labels", metavar="CSV", help="Write a file to label, and end."),
]
InputWorkspace = Annotated[
    Path | None, typer.Option("--workspace", help="Of a judge-debug file: its workspace.")
]
InputSkillDir = Annotated[
    Path | None, typer.Option("--skill-dir", help="Of a judge-debug file: the skill's folder.")
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Judge again whenever a file of --cases changes.")
]
QuietJudge = Annotated[
    bool, typer.Option("--quiet", "-q", help="Only what changed, and the counts.")
]
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
