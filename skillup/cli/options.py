"""Arguments and options that several verbs share, and those of the verbs that have many."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from skillup.errors import UsageError


def option(text: str, *names: str, **more: Any) -> Any:
    """An option with `text` as its help; without `names` it is called as its parameter."""
    return typer.Option(*names, help=text, **more)


def parse_seconds(given: str) -> float:
    """``"45m"`` → 2700.0; a bare number is seconds. Raises UsageError for anything else."""
    text = given.strip().lower()
    number = text.rstrip("smh")
    try:
        value = float(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[text[len(number) :]]
    except (ValueError, KeyError):
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{given}: no length of time", hint="for example 90s, 45m or 8h")
    return value


def parse_out(given: str) -> Path:
    """The path after `--out`; an empty one would mean the directory in which we are."""
    if not given.strip():
        raise UsageError("--out is empty", hint="give a new directory, or leave --out out")
    return Path(given)


def _trust(given: bool) -> bool:
    """For all that this command starts, judges among it, as the variable would."""
    if given:
        from skillup.load.discover import TRUST

        os.environ[TRUST] = "1"
    return given


def _index(given: str | None) -> str | None:
    if given is not None and not given.strip():
        raise UsageError("--index is empty", hint="give a file or a URL; `none` keeps no index")
    return given


_PATHS = "Suites, cases, folders of suites, or skills with evals/. Default: cases/ or evals/."
_TARGET = (
    "A run (its directory, id, or `last`), a trial's directory in it, a record.json, a judge-debug "
    "file of skill-up, an agent's session, or a folder of sessions."
)
_INDEX = "The index of runs: a file or postgresql://… Default: $SKILLUP_INDEX, else .skillup/."
_SHARD = "Only the I-th of N parts; `skillup merge` joins them."
_RESUME = "Go on with this run (a directory, an id, or `last`); finished trials are kept."
_WAIT = "How long agents, judges and simulated users wait out rate limits: 10m; 0: not at all."
_SURE_OF = "What --until-decided compares with. Default: the suite's gate, or 0.8."
_REPORTS = "Also write: html, junit, markdown, benchmark, json; with commas, or repeated."
_TRUST = "Suites may read outside of their project, and name addresses that keys go to."
_AGAINST = "Compare judges: this model, with another --against or the recorded grades."
_JUDGE_MODEL = "Who reads for the judges; outranks what suites and cases name."
RUN_HELP = "A run's directory, its id or the beginning of it, or `last`."

Texts = list[str] | None
Paths = Annotated[list[Path] | None, typer.Argument(help=_PATHS, show_default=False)]
CaseGlobs = Annotated[Texts, option("Only cases whose id matches this glob.", "--case", "-k")]
Tags = Annotated[Texts, option("Only cases with this tag.", "--tag")]
Vars = Annotated[Texts, option("NAME=VALUE; outranks the case's vars.", "--var")]
Item = Annotated[str | None, option("Only dataset items with this text in their id or message.")]
SampleSize = Annotated[int | None, option("At most so many items of a dataset.", min=1)]
Seed = Annotated[int, option("Which items --sample-size takes.")]
JudgeModelName = Annotated[str | None, option(_JUDGE_MODEL, "--judge-model")]
Trust = Annotated[bool, option(_TRUST, "--trust", callback=_trust)]
IndexUrl = Annotated[str | None, option(_INDEX, "--index", metavar="URL", callback=_index)]
AsJson = Annotated[bool, option("Data on stdout, as JSON.", "--json")]
Quiet = Annotated[bool, option("Only the counts, and what stands out.", "--quiet", "-q")]
Full = Annotated[bool, option("Nothing shortened.", "--full")]
Force = Annotated[bool, option("Replace files that are there.", "--force")]
Reports = Annotated[Texts, option(_REPORTS, "--report")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]

# Those of `run`.

Shard = Annotated[str | None, option(_SHARD, metavar="I/N")]
NoJudgeCache = Annotated[
    bool, option("Ask models anew; no stored answer counts.", "--no-judge-cache")
]
Engines = Annotated[Texts, option("A profile, an adapter or a file; repeatable.", "--engine", "-e")]
Model = Annotated[str | None, option("Outranks the profile's model.")]
Parallel = Annotated[int | None, option("Trials at once.", "--parallel", "-j", min=1, max=256)]
Trials = Annotated[int | None, option("How often to run each case.", min=1, max=10_000)]
TrialsFromTurn = Annotated[
    int | None, option("The trials of a case share the turns before this one.", min=1)
]
RunSeed = Annotated[int, option("Of --sample-size, and of what the scripted engine draws.")]
Baseline = Annotated[bool, option("Run each case without the skill, too.", "--baseline")]
Resume = Annotated[str | None, option(_RESUME, metavar="RUN")]
RetryErrors = Annotated[
    bool, option("With --resume: trials with an ERROR run again.", "--retry-errors")
]
MaxFail = Annotated[int | None, option("Start no more trials after so many bad ones.", min=1)]
MaxCost = Annotated[float | None, option("Start no more trials once so much is spent.", min=0)]
MaxTokens = Annotated[int | None, option("Start no more trials after so many tokens.", min=1)]
TimeLimit = Annotated[
    float | None,
    option("Start no more trials after so long: 90s, 8h.", metavar="TIME", parser=parse_seconds),
]
UntilDecided = Annotated[
    bool, option("Stop repeating a case whose pass rate is sure.", "--until-decided")
]
PassRate = Annotated[float | None, option(_SURE_OF)]
RateLimitWait = Annotated[float | None, option(_WAIT, metavar="TIME", parser=parse_seconds)]
Executor = Annotated[str, option("local, or dask: on a cluster.")]
Scheduler = Annotated[str | None, option("The Dask scheduler's address: tcp://host:8786.")]
KeepWorkspaces = Annotated[
    bool, option("Leave each trial's scratch directory.", "--keep-workspaces")
]
Verbose = Annotated[bool, option("Show the conversations as they go on.", "--verbose", "-v")]
RunOut = Annotated[
    Path | None,
    option("The run directory. Default: .skillup/runs/…", metavar="PATH", parser=parse_out),
]

# Those of `judge`.

JudgeTarget = Annotated[str, typer.Argument(metavar="RUN|TRIAL|RECORD|INPUT|SESSION", help=_TARGET)]
EditedCases = Annotated[
    list[Path] | None, option("Judge by these suites or cases instead; repeatable.", "--cases")
]
Against = Annotated[Texts, option(_AGAINST, metavar="MODEL")]
Labels = Annotated[Path | None, option("Compare judges with what people said.", metavar="CSV")]
WriteLabels = Annotated[Path | None, option("Write a file to label, and end.", metavar="CSV")]
Watch = Annotated[bool, option("Judge again whenever a file of --cases changes.", "--watch")]
InputWorkspace = Annotated[
    Path | None, option("Of a judge-debug file: its workspace.", "--workspace")
]
InputSkillDir = Annotated[
    Path | None, option("Of a judge-debug file: the skill's folder.", "--skill-dir")
]
