"""`skillup report`: write a run's reports again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from skillup.cli.options import IndexUrl, RunName, Texts, option
from skillup.errors import UsageError


def report(
    run: RunName,
    formats: Annotated[
        Texts, option("html, junit, markdown, benchmark, json; repeatable.", "--report")
    ] = None,
    against: Annotated[
        str | None,
        option("An earlier run to stand beside it in report.html; or `previous`.", metavar="RUN"),
    ] = None,
    index: IndexUrl = None,
) -> int:
    """Write a run's reports from its files; default: all of them."""
    from skillup.analysis import with_analysis
    from skillup.app.runs import run_path
    from skillup.history.baseline import PREVIOUS, run_before
    from skillup.history.index import index_url
    from skillup.history.runs import read_run
    from skillup.load.discover import workspace_root
    from skillup.reports.formats import FORMATS, HTML, parse_formats, write_reports
    from skillup.store import RunDirectory
    from skillup.store.journal import no_mask
    from skillup.store.run_directory import RESULT_FILE

    directory = RunDirectory.open(run_path(run))
    names = parse_formats(formats or [",".join(FORMATS)])
    beside = None
    if against is not None:
        if HTML not in names:
            raise UsageError("--against is for report.html", hint="add --report html")
        if against == PREVIOUS:
            url = index_url(index, os.environ, workspace_root(Path()), write=False)
            beside = Path(run_before(read_run(directory.path), url).path)
        else:
            beside = run_path(against)
        if beside.resolve() == directory.path.resolve():
            raise UsageError(
                f"--against {against}: that is the run itself", hint="name another one"
            )
    there = (directory.path / RESULT_FILE).exists()
    result = directory.read_result() if there and names != (HTML,) else None
    if result is not None:
        result = with_analysis(result, directory.run_info())
    # What is in a run's files was masked when it was written.
    written = write_reports(result, names, directory.path, no_mask, index=index, against=beside)
    sys.stdout.writelines(f"{path}\n" for path in written)
    return 0
