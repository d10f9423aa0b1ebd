"""`skillup export`: a run in the form of other tools."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from skillup.cli.options import RunName, option
from skillup.errors import UsageError


class To(StrEnum):
    """What can be written."""

    anthropic = "anthropic"
    json = "json"
    junit = "junit"
    markdown = "markdown"


def export(
    run: RunName,
    format_: Annotated[To, option("What to write.", "--format")],
    out: Annotated[
        Path | None,
        option("anthropic: a new folder, by default RUN/anthropic; else a file."),
    ] = None,
) -> int:
    """Write a run as a workspace of Anthropic's skill-creator, or as one file.

    json, junit and markdown are the run's result.json, junit.xml and summary.md.
    """
    from skillup.analysis import with_analysis
    from skillup.app.runs import result_of_run, run_path
    from skillup.exporters.anthropic import export_run
    from skillup.reports.junit import junit_xml
    from skillup.reports.markdown import markdown
    from skillup.reports.terminal.listing import shown_path
    from skillup.reports.text import plain
    from skillup.store import RunDirectory
    from skillup.store.journal import to_json
    from skillup.store.run_directory import RESULT_FILE

    directory = RunDirectory.open(run_path(run))
    if format_ is To.anthropic:
        for exported in export_run(directory, out or directory.path / "anthropic"):
            runs = "1 run" if exported.graded == 1 else f"{exported.graded} runs"
            rest = f", {exported.others} not graded (see the notes)" if exported.others else ""
            what = f"{exported.suite} on {exported.engine}: {runs}{rest}"
            sys.stderr.write(plain(f"{what} → {shown_path(exported.directory)}\n"))
        return 0
    result = result_of_run(directory)
    if not (directory.path / RESULT_FILE).exists():
        sys.stderr.writelines(plain(f"warning: {warning}\n") for warning in result.warnings)
    result = with_analysis(result, directory.run_info())
    # What is in a result.json was masked when it was written.
    if format_ is To.json:
        data = to_json(result, str, indent=2)
    elif format_ is To.junit:
        data = junit_xml(result)
    else:
        data = markdown(result).encode("utf-8", "replace")
    if out is None:
        sys.stdout.buffer.write(data)
        return 0
    try:
        with out.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise UsageError(f"{out}: already there", hint="choose another --out") from None
    except OSError as error:
        raise UsageError(
            f"cannot write {out}: {error.strerror}", hint="choose another --out"
        ) from error
    return 0
