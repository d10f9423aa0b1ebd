"""The verbs about several runs: compare and trends."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path

import typer

from skillup.cli import options as o
from skillup.cli.options import option
from skillup.errors import ExitCode, UsageError
from skillup.load.discover import workspace_root
from skillup.reports.text import count, listed_ids, plain

_SHOWN = 20


WebhookFormat = StrEnum("WebhookFormat", ["json", "slack"])


def compare(
    runs: o.Texts = typer.Argument(
        None,
        metavar="[A] [B]",
        help="The run B (its directory, its id or the beginning of it, or `last`, the default), "
        "and what it is compared with: default: its reference.",
    ),
    baseline: str | None = option(None, "Compare with this run alone.", metavar="RUN"),
    branch: str | None = option(None, "Compare with the nights of this branch."),
    gate: o.Texts = option(
        None, "NAME=VALUE; outranks the suites' gates, for all suites; repeatable."
    ),
    report: str | None = option(None, "`markdown`: on stdout, in place of the text."),
    webhook: str | None = option(None, "Post the comparison to this URL.", metavar="URL"),
    webhook_format: WebhookFormat = option(WebhookFormat.json, "What the webhook reads."),
    badge: Path | None = option(None, "Write a badge for shields.io's endpoint.", metavar="FILE"),
    index: str | None = o.INDEX,
    as_json: bool = o.JSON,
) -> int:
    """Compare a run with its reference, or two runs, case by case.

    Exit code: 0 every gate is met, 1 one is not, 2 usage, or a run that cannot be read, 3 the index
    cannot be read.
    """
    from skillup.history.gates import compared, given_gates
    from skillup.history.index import LAST, find_run, index_url
    from skillup.redaction.secrets import Secrets
    from skillup.reports import past_runs
    from skillup.reports.markdown import comparison_markdown
    from skillup.reports.notify import badge_data, error_lines, post, webhook_payload
    from skillup.reports.terminal.layout import make_console
    from skillup.store.files import no_mask, to_json, write_atomic
    from skillup.store.places import runs_folder

    names = runs or [LAST]
    if len(names) > 2 or (len(names) == 2 and baseline is not None):
        raise UsageError("more than two runs", hint="skillup compare A B, or --baseline A B")
    if report not in (None, "markdown"):
        raise UsageError(f"--report {report}: no such form", hint="markdown")
    given = given_gates(gate or ())
    root = workspace_root(Path())
    url = index_url(index, os.environ, root, write=False)
    folder = runs_folder(root)
    b = find_run(names[-1], url, folder)
    a = names[0] if len(names) == 2 else baseline
    comparison, results = compared(b, url, folder, baseline=a, branch=branch, given=given)
    if as_json:
        sys.stdout.write(past_runs.as_json(past_runs.comparison_data(comparison, results)))
    elif report is not None:
        sys.stdout.write(comparison_markdown(comparison, results))
    else:
        past_runs.print_comparison(comparison, results, make_console(sys.stdout))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        checkout = Path(os.environ.get("GITHUB_WORKSPACE") or root)
        sys.stderr.writelines(f"{line}\n" for line in error_lines(comparison, results, checkout))
    if badge is not None:
        write_atomic(badge, to_json(badge_data(comparison, results), no_mask, indent=2))
    if webhook:  # empty: a variable that is not set
        payload = webhook_payload(comparison, results, webhook_format.value)
        if problem := post(webhook, payload, Secrets.from_environment(os.environ).mask):
            sys.stderr.write(f"{problem}\n")
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
    from skillup.reports.past_runs import as_json as json_of
    from skillup.reports.past_runs import history_data, print_trends
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
        sys.stdout.write(json_of(history_data(found)))
    else:
        print_trends(found, make_console(sys.stdout), everything=everything)
    return 0
