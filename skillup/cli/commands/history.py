"""The verbs about several runs: compare and trends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from skillup.cli import options as o
from skillup.cli.options import option
from skillup.errors import ExitCode, UsageError
from skillup.load.discover import workspace_root
from skillup.reports.text import count, listed_ids, plain

_SHOWN = 20


def compare(
    a: str = typer.Argument(
        "previous",
        help="A run's directory, its id or the beginning of it, `last`, or `previous`: the "
        "newest one before B of the same cases and engines.",
    ),
    b: str = typer.Argument("last", help="The later run, named in the same way."),
    gate: o.Texts = option(
        None, "NAME=VALUE; outranks the suites' gates, for all suites; repeatable."
    ),
    index: str | None = o.INDEX,
    as_json: bool = o.JSON,
) -> int:
    """Compare two runs, case by case.

    Exit code: 0 every gate is met (or there is none), 1 one is not, 2 usage, or a run that cannot
    be read.
    """
    from skillup.history.comparison import check_gates, gates_by_suite, given_gates
    from skillup.history.index import (
        PREVIOUS,
        compare_with_index,
        find_run,
        index_url,
        run_before,
    )
    from skillup.reports.past_runs import comparison_json, print_comparison
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
        hint = "`skillup compare previous RUN` compares a run with the one before"
        raise UsageError(f"A and B are the same run, {later.run_id}", hint=hint)
    gates = gates_by_suite(later, given)
    comparison = compare_with_index(earlier, later, gates, url)
    results = check_gates(comparison, gates)
    if as_json:
        sys.stdout.write(comparison_json(comparison, results))
    else:
        print_comparison(comparison, results, make_console(sys.stdout))
    return ExitCode.PASSED if all(result.passed for result in results) else ExitCode.FAILED


def trends(
    suites: o.Texts = typer.Argument(
        None, metavar="[SUITE]...", help="Names or globs. Default: all suites."
    ),
    case: o.Texts = o.CASE,
    engine: o.Texts = option(None, "Only these profiles (globs); repeatable.", "--engine", "-e"),
    variant: str | None = option(None, "with_skill or without_skill. Default: both."),
    last: int = option(20, "The newest so many runs of each suite.", min=1),
    everything: bool = option(False, "Also cases of a large suite that always passed.", "--all"),
    rebuild: bool = option(False, "First index the runs that are there anew.", "--rebuild"),
    index: str | None = o.INDEX,
    as_json: bool = o.JSON,
) -> int:
    """Show how suites and their cases fared over past runs, and when a case began to fail.

    Exit code: 0 shown, 2 usage or no index, 3 the index cannot be read.
    """
    from skillup.history import index as runs
    from skillup.history.runs import SeriesFilter, histories
    from skillup.reports.past_runs import print_trends, trends_json
    from skillup.reports.terminal.layout import make_console
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
    every = runs.all_runs(url)
    chosen = SeriesFilter(tuple(suites or ()), tuple(case or ()), tuple(engine or ()), variant)
    found = histories(every, chosen, last)
    if not found:
        names = sorted({trial.key.suite for run in every for trial in run.trials})
        hint = f"suites in the index: {listed_ids(names, _SHOWN) or 'none yet'}"
        raise UsageError("no indexed run matches", hint=hint)
    if as_json:
        sys.stdout.write(trends_json(found))
    else:
        print_trends(found, make_console(sys.stdout), everything=everything)
    return 0
