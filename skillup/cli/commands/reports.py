"""The verbs about one run: show, report, export, merge and view."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from shlex import quote

from skillup.cli import options as o
from skillup.cli.options import argument, flag, option
from skillup.errors import UsageError
from skillup.load.discover import workspace_root
from skillup.reports.text import count, say, shown_path

_AGAINST = "An earlier run to stand beside it in report.html; or `previous`."
_MERGED = "The merged run's directory, or a URL."
_VIEWED = "A run, or a folder of runs. Default: all runs of this workspace."


def show(
    run: str = argument("last", "[RUN]", o.RUN_HELP),
    case: str | None = argument(None, "[CASE_GLOB]", "Cases whose id matches; '*': all."),
    trial: int | None = option(None, "Only this repetition.", min=1),
    failed: bool = flag("--failed", "Only what did not pass; so, too, if no case is named."),
    judgement: str | None = option(None, "Its grades, not the run's: see `judge --write`."),
    full: bool = o.FULL,
    as_json: bool = o.JSON,
) -> int:
    """Print conversations of a run, turn by turn, with what the checks found.

    Without arguments: those of the last run that failed or met an error.

    Exit code: 0, or 2 if there is no such run or case.
    """
    from pydantic_core import to_jsonable_python

    from skillup.app.runs import run_path, shown_trials
    from skillup.reports.terminal.conversation import TrialPrinter
    from skillup.reports.terminal.layout import make_console, print_line
    from skillup.store.files import no_mask, to_json

    only_failed = failed or (case is None and trial is None)
    shown = shown_trials(run_path(run), case, trial, only_failed=only_failed, judgement=judgement)
    run_id, ended, trials = shown
    if as_json:
        rows = [
            to_jsonable_python({name: getattr(one, name) for name in ("job", "grade", "record")})
            for one in trials
            if not isinstance(one, str)
        ]
        data = {"run_id": run_id, "trials": rows}
        sys.stdout.write(to_json(data, no_mask, indent=None).decode())
        return 0
    console, empty = make_console(sys.stdout), True
    for found in trials:
        if not empty:
            console.print()
        empty = False
        if isinstance(found, str):
            print_line(console, found, style="yellow", whole=True)
        else:
            TrialPrinter(found, console, full=full).print()
    if empty:
        none = f"none of the {count(ended, 'trial')} that ended failed or met an error"
        print_line(console, f"{run_id}: {none}", whole=True)
        hint = f"to see all: skillup show {quote(run)} {quote(case or '*')}"
        print_line(console, hint, whole=True)
    return 0


def report(
    run: str = o.RUN,
    formats: o.Texts = o.REPORTS,
    against: str | None = option(None, _AGAINST, metavar="RUN"),
    index: str | None = o.INDEX,
) -> int:
    """Write a run's reports from its files; default: all of them."""
    from skillup.analysis import with_analysis
    from skillup.app.runs import run_path
    from skillup.history.index import PREVIOUS, index_url
    from skillup.history.reference import reference_for
    from skillup.history.runs import read_run
    from skillup.reports.formats import FORMATS, HTML, parse_formats, write_reports
    from skillup.store import RunDirectory
    from skillup.store.files import no_mask
    from skillup.store.places import RESULT_FILE
    from skillup.store.remote import RemoteFolder, is_url

    directory = RunDirectory.open(run_path(run))
    names = parse_formats(formats or [",".join(FORMATS)])
    beside = None
    if against is not None:
        if HTML not in names:
            raise UsageError("--against is for report.html", hint="add --report html")
        if against == PREVIOUS:
            url = index_url(index, os.environ, workspace_root(Path()), write=False)
            found = reference_for(read_run(directory.path), url, Path(), baseline=PREVIOUS)
            if not found.nights:
                hint = "name a run, or index older ones with `skillup trends --rebuild`"
                raise UsageError("--against previous: it is a first night", hint=hint)
            beside = run_path(found.nights[-1].path)
        else:
            beside = run_path(against)
    result = None
    if (directory.path / RESULT_FILE).exists() and names != (HTML,):
        result = with_analysis(directory.read_result(), directory.run_info())
    # What is in a run's files was masked when it was written.
    written = write_reports(result, names, directory.path, no_mask, index=index, against=beside)
    if is_url(run):
        folder = RemoteFolder(run)
        for path in written:
            folder.put(path, path.name)
            sys.stdout.write(f"{folder.url}/{path.name}\n")
    else:
        sys.stdout.writelines(f"{path}\n" for path in written)
    return 0


To = StrEnum("To", ["anthropic", "files"])


def export(
    run: str = o.RUN,
    format_: To = option(To.anthropic, "`files`: a folder for each trial.", "--format"),
    out: Path | None = option(None, "A new folder. Default: RUN/FORMAT.", parser=o.parse_local),
) -> int:
    """Write a run as files: Anthropic's skill-creator's, or all that it holds."""
    from skillup.app.runs import run_path
    from skillup.reports.anthropic import GRADED, export_run
    from skillup.store import RunDirectory
    from skillup.store.remote import is_url

    if is_url(run) and out is None:
        raise UsageError(f"{run}: a folder for its files is needed", hint="give it with --out")
    directory = RunDirectory.open(run_path(run))
    out = out or directory.path / format_.value
    if format_ is To.files:
        from skillup.store.export import export_files

        many = export_files(directory, out)
        say(f"{count(many, 'trial')} → {shown_path(out)}")
        return 0
    left = len(directory.run_info().get("jobs", []))
    for folder, grades in export_run(directory, out):
        left -= len(grades)
        others = sum(grade.status not in GRADED for grade in grades)
        rest = f", {others} not graded (see the notes)" if others else ""
        what = (
            f"{grades[0].suite} on {grades[0].engine}: {count(len(grades) - others, 'run')}{rest}"
        )
        say(f"{what} → {shown_path(folder)}")
    if left > 0:
        say(f"left out, for want of a grade that can be read: {left} of its trials")
    return 0


def merge(
    runs: list[str] = argument(..., "RUN...", "The runs of `skillup run --shard`."),
    out: str = option(..., _MERGED, metavar="PATH|URL", parser=o.parse_out),
    report: o.Texts = o.REPORTS,
    index: str | None = o.INDEX,
    as_json: bool = o.JSON,
) -> int:
    """Make one run of shards that ran elsewhere.

    Exit code: that of the run, as if it had run in one place (see `skillup run`).
    """
    from skillup.app.run_session import index_finished_run
    from skillup.app.runs import merge_runs, run_path
    from skillup.reports.formats import parse_formats, write_reports
    from skillup.reports.result import exit_code
    from skillup.store.files import no_mask
    from skillup.store.remote import RemoteRun, is_url
    from skillup.store.stored_run import result_json

    formats = parse_formats(report or ())
    with RemoteRun(out) if is_url(out) else nullcontext() as remote:
        path = remote.path if remote is not None else Path(out)
        result = merge_runs([run_path(run) for run in runs], path)
        write_reports(result, formats, path, no_mask, index=index)
        if remote is not None:
            remote.upload(ended=True)
        index_finished_run(path, result, Path(), index, remote.url if remote is not None else None)
        if as_json:
            sys.stdout.writelines(map(bytes.decode, result_json(result, no_mask)))
    summary, missing = result.summary, len(result.not_run)
    say(f"{summary.passed} of {summary.total} passed, {missing} not run   {out}")
    return exit_code(summary, missing, result.stopped)


def view(
    run: str | None = argument(None, "[RUN]", _VIEWED),
    port: int | None = o.PORT,
    no_open: bool = o.NO_OPEN,
    index: str | None = o.INDEX,
) -> int:
    """Serve runs on 127.0.0.1 for a browser, with what happens in them, until Ctrl-C.

    Exit code: 0 ended by Ctrl-C, 2 no such run, or a port that cannot be had.
    """
    from skillup.app.runs import run_path
    from skillup.reports.server import LoopbackServer, Served, view_pages
    from skillup.store.places import RUN_FILE, runs_folder, runs_in

    usual = folder = runs_folder(workspace_root(Path())).absolute()
    first = None
    if run is not None:
        folder = run_path(run).absolute()
        if (folder / RUN_FILE).is_file():
            folder, first = folder.parent, folder.name
        elif not folder.is_dir() or not runs_in(folder):
            raise UsageError(f"{run} holds no runs", hint="give a run's directory, or its folder")
    only = first if folder != usual else None
    served = Served(folder, only=only, index=index)
    server = LoopbackServer(view_pages(served, first), port)
    what = f"run {first}" if served.only else f"the runs in {served.folder}"
    say(f"{what}; Ctrl-C ends it")
    try:
        server.serve(open_browser=not no_open)
    finally:
        served.close()
    return 0
