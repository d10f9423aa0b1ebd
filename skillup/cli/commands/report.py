"""`skillup report`: write a run's reports again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import RUN_HELP, IndexUrl


def report(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help=RUN_HELP),
    ],
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--report", help="html, junit, markdown, benchmark, json; with commas, or repeated."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="An earlier run to stand beside it in report.html; or `previous`."
        ),
    ] = None,
    index: IndexUrl = None,
) -> int:
    """Write a run's reports from its files; default: all of them."""
    from skillup.analysis import with_analysis
    from skillup.app.runs import run_path
    from skillup.errors import UsageError
    from skillup.reports.formats import FORMATS, HTML, parse_formats, write_reports
    from skillup.store import RunDirectory
    from skillup.store.run_directory import RESULT_FILE

    directory = RunDirectory.open(run_path(run))
    names = parse_formats(formats or [",".join(FORMATS)])
    if against is not None and HTML not in names:
        raise UsageError("--against is for report.html", hint="add --report html")
    beside = None if against is None else _beside(against, directory.path, index)
    there = (directory.path / RESULT_FILE).exists()
    result = directory.read_result() if there and names != (HTML,) else None
    if result is not None:
        # Those of older versions have no analysis.
        result = with_analysis(result, directory.run_info())
    # What is in a run's files was masked when it was written.
    written = write_reports(
        result, names, directory.path, lambda text: text, index=index, against=beside
    )
    for path in written:
        sys.stdout.write(f"{path}\n")
    return 0


def _beside(name: str, run: Path, index: str | None) -> Path:
    """The other run's directory. Raises UsageError, and IndexTroubleError for `previous`."""
    import os

    from skillup.app.runs import run_path
    from skillup.errors import UsageError
    from skillup.history.baseline import PREVIOUS, run_before
    from skillup.history.index import index_url
    from skillup.history.runs import read_run
    from skillup.load.discover import workspace_root

    if name == PREVIOUS:
        url = index_url(index, os.environ, workspace_root(Path()), write=False)
        path = Path(run_before(read_run(run), url).path)
    else:
        path = run_path(name)
    if path.resolve() == run.resolve():
        raise UsageError(f"--against {name}: that is the run itself", hint="name another one")
    return path
