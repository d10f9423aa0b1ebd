"""`skillup show`: read conversations of a run in the terminal."""

from __future__ import annotations

import io
import json
import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from skillup.cli.options import RUN_HELP, AsJson

if TYPE_CHECKING:
    from skillup.app.shown_trials import ShownTrials


def show(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help=RUN_HELP)] = "last",
    case: Annotated[
        str | None,
        typer.Argument(
            metavar="[CASE_GLOB]", help="Cases whose id matches; '*': all. See also --failed."
        ),
    ] = None,
    trial: Annotated[
        int | None, typer.Option("--trial", min=1, help="Only this repetition.")
    ] = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed", help="Only what failed or met an error; the default if no case is named."
        ),
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Nothing shortened.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print conversations of a run, turn by turn, with what the checks found.

    Without arguments: those of the last run that failed or met an error.

    Exit code: 0, or 2 if there is no such run or case.
    """
    from skillup.app.runs import run_path
    from skillup.app.shown_trials import TrialFilter, shown_trials

    only_failed = failed or (case is None and trial is None)
    shown = shown_trials(run_path(run), TrialFilter(case, trial, only_failed))
    if as_json:
        _print_json(shown)
    else:
        _print(shown, run, case, full)
    return 0


def _print(shown: ShownTrials, run: str, case: str | None, full: bool) -> None:
    from rich.markup import escape

    from skillup.reports.terminal.conversation import print_trial
    from skillup.reports.terminal.layout import make_console
    from skillup.reports.text import plain

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # agents' texts may hold halves of characters
    console = make_console(sys.stdout)
    for number, trial in enumerate(shown.trials()):
        if number:
            console.print()
        print_trial(trial, console, full=full)
    for job, why in shown.unreadable.items():
        console.print(f"[yellow]{escape(plain(job))}: {escape(plain(why))}[/]", soft_wrap=True)
    if not shown.jobs:
        every = f"skillup show {quote(run)} {quote(case or '*')}"
        ended = f"{shown.ended} trial{'s' if shown.ended != 1 else ''}"
        what = f"none of the {ended} that ended failed or met an error"
        if not shown.ended:
            what = "no trial has ended: they were not run, or are running"
        console.print(plain(f"{shown.run_id}: {what}"), markup=False, soft_wrap=True)
        if shown.ended:
            console.print(plain(f"to see all: {every}"), markup=False, soft_wrap=True)


def _print_json(shown: ShownTrials) -> None:
    """``{"run_id", "trials": [{"job", "grade", "record"}]}``, a trial at a time."""
    from skillup.store.journal import no_mask, to_json

    sys.stdout.write(f'{{"run_id": {json.dumps(shown.run_id)}, "trials": [')
    separator = "\n"
    for trial in shown.trials():
        data = {
            "job": trial.job,
            "grade": trial.grade.model_dump(mode="json", by_alias=True) if trial.grade else None,
            "record": trial.record.model_dump(mode="json", by_alias=True),
        }
        sys.stdout.write(separator + to_json(data, no_mask, indent=None).decode().rstrip("\n"))
        separator = ",\n"
    sys.stdout.write("\n]}\n")
