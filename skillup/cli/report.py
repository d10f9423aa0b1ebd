"""`skillup report`: write a run's reports again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    formats: Annotated[
        list[str] | None,
        typer.Option("--report", help="junit, markdown; with commas, or repeated."),
    ] = None,
) -> int:
    """Write a run's reports from its result.json; default: all of them."""
    from skillup.reports.formats import FORMATS, parse_formats, write_reports
    from skillup.store import RunDirectory

    directory = RunDirectory.open(run)
    names = parse_formats(formats or [",".join(FORMATS)])
    # What is in a result.json was masked when it was written.
    for path in write_reports(directory.read_result(), names, directory.path, lambda text: text):
        sys.stdout.write(f"{path}\n")
    return 0
