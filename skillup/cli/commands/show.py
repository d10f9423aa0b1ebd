"""`skillup show`: read conversations of a run in the terminal."""

from __future__ import annotations

import io
import json
import sys
from shlex import quote
from typing import Annotated

import typer

from skillup.cli.options import RUN_HELP, AsJson, Full, option


def show(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help=RUN_HELP)] = "last",
    case: Annotated[
        str | None, typer.Argument(metavar="[CASE_GLOB]", help="Cases whose id matches; '*': all.")
    ] = None,
    trial: Annotated[int | None, option("Only this repetition.", min=1)] = None,
    failed: Annotated[
        bool, option("Only what failed or met an error; so, too, if no case is named.", "--failed")
    ] = False,
    full: Full = False,
    as_json: AsJson = False,
) -> int:
    """Print conversations of a run, turn by turn, with what the checks found.

    Without arguments: those of the last run that failed or met an error.

    Exit code: 0, or 2 if there is no such run or case.
    """
    from skillup.app.runs import run_path
    from skillup.app.shown_trials import shown_trials
    from skillup.reports.terminal.conversation import print_trial
    from skillup.reports.terminal.layout import make_console
    from skillup.reports.text import count, plain
    from skillup.store.journal import no_mask, to_json

    only_failed = failed or (case is None and trial is None)
    shown = shown_trials(run_path(run), case, trial, only_failed=only_failed)
    if as_json:  # a trial at a time
        sys.stdout.write(f'{{"run_id": {json.dumps(shown.run_id)}, "trials": [')
        for number, one in enumerate(shown.trials()):
            data = {
                "job": one.job,
                "grade": one.grade.model_dump(mode="json", by_alias=True) if one.grade else None,
                "record": one.record.model_dump(mode="json", by_alias=True),
            }
            text = to_json(data, no_mask, indent=None).decode().rstrip("\n")
            sys.stdout.write((",\n" if number else "\n") + text)
        sys.stdout.write("\n]}\n")
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # agents' texts may hold halves of characters
    console = make_console(sys.stdout)

    def say(text: str, style: str | None = None) -> None:
        console.print(plain(text), style=style, markup=False, soft_wrap=True)

    for number, one in enumerate(shown.trials()):
        if number:
            console.print()
        print_trial(one, console, full=full)
    for job, why in shown.unreadable.items():
        say(f"{job}: {why}", "yellow")
    if not shown.jobs and not shown.ended:
        say(f"{shown.run_id}: no trial has ended: they were not run, or are running")
    elif not shown.jobs:
        ended = count(shown.ended, "trial")
        say(f"{shown.run_id}: none of the {ended} that ended failed or met an error")
        say(f"to see all: skillup show {quote(run)} {quote(case or '*')}")
    return 0
