"""`skillup compare`: what became better or worse from one run to another?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import AsJson, IndexUrl, Texts, option
from skillup.errors import ExitCode, UsageError


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="A run's directory, its id or the beginning of it, `last`, or `previous`: the "
            "newest one before B of the same cases and engines."
        ),
    ] = "previous",
    b: Annotated[str, typer.Argument(help="The later run, named in the same way.")] = "last",
    gate: Annotated[
        Texts, option("NAME=VALUE; outranks the suites' gates, for all suites; repeatable.")
    ] = None,
    index: IndexUrl = None,
    as_json: AsJson = False,
) -> int:
    """Compare two runs, case by case.

    Exit code: 0 every gate is met (or there is none), 1 one is not, 2 usage, or a run that cannot
    be read.
    """
    from skillup.history.baseline import PREVIOUS, compare_with_index, find_run, run_before
    from skillup.history.gates import check_gates, gates_by_suite, given_gates
    from skillup.history.index import index_url
    from skillup.load.discover import workspace_root
    from skillup.reports.comparison import comparison_json
    from skillup.reports.terminal.comparison import print_comparison
    from skillup.reports.terminal.layout import make_console
    from skillup.store.places import runs_folder

    given = given_gates(gate or ())
    root = workspace_root(Path())
    url = index_url(index, os.environ, root, write=False)
    folder = runs_folder(root)
    later = find_run(b, url, folder)
    earlier = run_before(later, url) if a == PREVIOUS else find_run(a, url, folder)
    # A run that was copied is the same run; its id alone may be a mere name of a directory.
    if (earlier.run_id, earlier.started_at) == (later.run_id, later.started_at):
        raise UsageError(
            f"A and B are the same run, {later.run_id}",
            hint="`skillup compare previous RUN` compares a run with the one before",
        )
    gates = gates_by_suite(later, given)
    comparison = compare_with_index(earlier, later, gates, url)
    results = check_gates(comparison, gates)
    if as_json:
        sys.stdout.write(comparison_json(comparison, results))
    else:
        print_comparison(comparison, results, make_console(sys.stdout))
    return ExitCode.PASSED if all(result.met for result in results) else ExitCode.FAILED
