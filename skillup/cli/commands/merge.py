"""`skillup merge`: one run of several shards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import AsJson, IndexUrl, Reports, option, parse_out


def merge(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="The runs of `skillup run --shard`.")
    ],
    out: Annotated[Path, option("The merged run's directory.", metavar="PATH", parser=parse_out)],
    report: Reports = None,
    index: IndexUrl = None,
    as_json: AsJson = False,
) -> int:
    """Make one run of shards that ran elsewhere.

    Exit code: that of the run, as if it had run in one place (see `skillup run`).
    """
    from skillup.app.merge import merge_runs
    from skillup.app.runs import index_finished_run, run_path
    from skillup.cli.commands.run import exit_code
    from skillup.reports.formats import parse_formats, write_reports
    from skillup.store.journal import no_mask, to_json

    formats = parse_formats(report or ())
    result = merge_runs([run_path(run) for run in runs], out)
    write_reports(result, formats, out, no_mask, index=index)
    index_finished_run(out, Path(), index)
    if as_json:
        sys.stdout.write(to_json(result, no_mask, indent=2).decode())
    counts, baseline = result.summary, result.summary.baseline
    errors = counts.error + (baseline.error if baseline is not None else 0)
    parts = {"passed": counts.passed, "failed": counts.fail, "errors": errors}
    parts |= {"skipped": counts.skip, "not run": len(result.not_run)}
    told = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
    sys.stderr.write(f"{told or 'no trials'}   {out}\n")
    return exit_code(result)
