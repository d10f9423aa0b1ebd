"""`skillup trends`: how did suites and cases fare over past runs?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import AsJson, CaseGlobs, IndexUrl, Texts, option
from skillup.errors import UsageError

_SHOWN = 20


def trends(
    suites: Annotated[
        Texts,
        typer.Argument(metavar="[SUITE]...", help="Names or globs. Default: all suites."),
    ] = None,
    case: CaseGlobs = None,
    engine: Annotated[
        Texts,
        option("Only these profiles (globs); repeatable.", "--engine", "-e"),
    ] = None,
    variant: Annotated[str | None, option("with_skill or without_skill. Default: both.")] = None,
    last: Annotated[int, option("The newest so many runs of each suite.", min=1)] = 20,
    everything: Annotated[
        bool, option("Also cases of a large suite that always passed.", "--all")
    ] = False,
    rebuild: Annotated[
        bool, option("First index the runs that are there anew.", "--rebuild")
    ] = False,
    index: IndexUrl = None,
    as_json: AsJson = False,
) -> int:
    """Show how suites and their cases fared over past runs, and when a case began to fail.

    Exit code: 0 shown, 2 usage or no index, 3 the index cannot be read.
    """
    from skillup.history import index as runs
    from skillup.history.series import SeriesFilter, histories
    from skillup.load.discover import workspace_root
    from skillup.reports.comparison import trends_json
    from skillup.reports.terminal.layout import make_console
    from skillup.reports.terminal.trends import print_trends
    from skillup.reports.text import count, listed_ids, plain
    from skillup.store.places import runs_folder

    if variant not in (None, "with_skill", "without_skill"):
        raise UsageError(f"--variant {variant}: no such variant", hint="with_skill, without_skill")
    root = workspace_root(Path())
    url = runs.index_url(index, os.environ, root, write=rebuild)
    if not url:
        raise UsageError("--index none: there is nothing to show", hint="name an index")
    if rebuild:
        done = list(runs.rebuild(url, runs_folder(root)))
        for path, error in done:
            if error is not None:
                sys.stderr.write(plain(f"{path.name}: not indexed: {error.message}\n"))
        sys.stderr.write(f"{count(sum(error is None for _, error in done), 'run')} indexed\n")
    with runs.open_index(url, write=False) as connection:
        rows = runs.tallies_of_all_runs(connection)
    chosen = SeriesFilter(tuple(suites or ()), tuple(case or ()), tuple(engine or ()), variant)
    found = histories(rows, chosen, last)
    if not found:
        names = sorted({row.key.suite for row in rows})
        hint = f"suites in the index: {listed_ids(names, _SHOWN) or 'none yet'}"
        raise UsageError("no indexed run matches", hint=hint)
    if as_json:
        sys.stdout.write(trends_json(found))
    else:
        print_trends(found, make_console(sys.stdout), everything=everything)
    return 0
