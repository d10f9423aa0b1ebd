"""`skillup export`: a run in the form of other tools."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from skillup.cli.options import RunName, option


class To(StrEnum):
    """What can be written."""

    anthropic = "anthropic"


def export(
    run: RunName,
    format_: Annotated[To, option("What to write.", "--format")] = To.anthropic,  # noqa: ARG001
    out: Annotated[Path | None, option("A new folder. Default: RUN/anthropic.")] = None,
) -> int:
    """Write a run as a workspace of Anthropic's skill-creator."""
    from skillup.app.runs import run_path
    from skillup.exporters.anthropic import export_run
    from skillup.reports.terminal.listing import shown_path
    from skillup.reports.text import plain
    from skillup.store import RunDirectory

    directory = RunDirectory.open(run_path(run))
    for exported in export_run(directory, out or directory.path / "anthropic"):
        runs = "1 run" if exported.graded == 1 else f"{exported.graded} runs"
        rest = f", {exported.others} not graded (see the notes)" if exported.others else ""
        what = f"{exported.suite} on {exported.engine}: {runs}{rest}"
        sys.stderr.write(plain(f"{what} → {shown_path(exported.directory)}\n"))
    return 0
