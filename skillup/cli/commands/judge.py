"""`skillup judge`: judge records again. `skillup label`: what people say of its judges."""

from __future__ import annotations

from pathlib import Path

from skillup.cli import options as o
from skillup.cli.entry import report
from skillup.cli.options import argument, flag, option
from skillup.errors import UsageError
from skillup.load.discover import workspace_root
from skillup.reports.text import count, say, shown_path

_TARGET = (
    "A run (its directory, id, or `last`), an exported run or trial, a record.json, a judge-debug "
    "file of skill-up, an agent's session, or a folder of sessions."
)
_AGAINST = "Compare judges: this model, with another --against or the recorded grades."
_PREFER = "Ask a model, trial by trial, which is better: this run, or that run (or engine of it)."
_PROMOTE = "Make this judgement the run's grades, and end; those before become `original`."
_SHOW_PROMPT = "Print what models and agents would be asked, and the stored answers; ask nobody."
_ESTIMATE = "Say how many requests, tokens and dollars it would take; ask nobody."
_CSV = "The file of labels. Default: labels.csv in the workspace (of a skill: in evals/)."


def judge(
    target: str = argument(..., "RUN|TRIAL|RECORD|INPUT|SESSION", _TARGET),
    cases: list[Path] | None = option(None, "Judge by these suites or cases; repeatable."),
    case: o.Texts = o.CASE,
    tag: o.Texts = o.TAG,
    judge_model: str | None = o.JUDGE_MODEL,
    trust: bool = o.TRUST,  # noqa: ARG001 - its callback does it
    against: o.Texts = option(None, _AGAINST, metavar="MODEL"),
    prefer: str | None = option(None, _PREFER, metavar="RUN|ENGINE"),
    labels: Path | None = option(None, "Compare judges with what people said.", metavar="CSV"),
    show_prompt: bool = flag("--show-prompt", _SHOW_PROMPT),
    estimate: bool = flag("--estimate", _ESTIMATE),
    batch: bool = flag("--batch", "By providers' batches: half the price, in a day."),
    write: str | None = option(None, "Keep it beside the run's grades.", metavar="NAME"),
    since: str | None = option(None, "Compare with this judgement.", metavar="NAME"),
    promote: str | None = option(None, _PROMOTE, metavar="NAME"),
    workspace: Path | None = option(None, "Of a judge-debug file: its workspace."),
    skill_dir: Path | None = option(None, "Of a judge-debug file: the skill's folder."),
    watch: bool = flag("--watch", "Judge again whenever a file of --cases changes."),
    quiet: bool = o.QUIET,
    as_json: bool = o.JSON,
) -> int:
    """Judge again what was recorded: offline, with the recorded or with edited cases.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted. Of a
    comparison of judges: 0 it was made, 3 a judge failed on something.
    """
    from skillup.app.rejudge.command import compare_judges, judge_again, judge_on_changes
    from skillup.app.rejudge.judging import RejudgeRequest
    from skillup.app.rejudge.sources import open_source
    from skillup.app.runs import check_judgement
    from skillup.plan import Selection
    from skillup.store.remote import is_url

    panel = bool(against or labels)
    if panel and judge_model:
        hint = f"name it as one of them: --against {judge_model}"
        raise UsageError("--judge-model is not for comparisons of judges", hint=hint)
    if watch and (panel or as_json or not cases):
        hint = "with --cases, and without --json, --against and --labels"
        raise UsageError("--watch shows what edited cases change", hint=hint)
    ways = (panel, watch, show_prompt, estimate, promote is not None, prefer is not None)
    if sum(ways) + (write is not None) > 1:
        what = "comparing, --watch, --show-prompt, --estimate, --write, --promote, --prefer"
        raise UsageError(f"{what}: give one")
    if write and is_url(target):
        raise UsageError("--write is for a run that is here", hint="copy the run's folder here")
    if promote is not None:
        from skillup.app.runs import promote as promote_judgement

        trials = count(promote_judgement(target, promote), "trial")
        say(f"{promote} is the grades of {trials}: skillup report {target}")
        return 0
    source = open_source(target, workspace=workspace, skill_dir=skill_dir)
    request = RejudgeRequest(
        source,
        tuple(cases or ()),
        Selection(tuple(case or ()), tuple(tag or ())),
        quiet,
        as_json,
        judge_model,
        {} if watch else None,
        write,
        batch=batch,
    )
    if since is not None:
        check_judgement(source.run, since)
        source.since = since
    if show_prompt or estimate:
        from skillup.app.rejudge.command import estimate_cost, show_questions

        return (estimate_cost if estimate else show_questions)(request)
    if prefer is not None:
        from skillup.app.rejudge.preference import prefer as ask_which

        return ask_which(request, prefer)
    if panel:
        return compare_judges(request, tuple(against or ()), labels)
    return judge_on_changes(request, report) if watch else judge_again(request)


def label(
    run: str = o.RUN,
    csv: Path | None = option(None, _CSV, "--csv", metavar="FILE"),
    sample: int = option(50, "So many items, disputed ones first.", min=1),
    port: int | None = o.PORT,
    no_open: bool = o.NO_OPEN,
    no_page: bool = flag("--no-page", "Only write the file."),
) -> int:
    """Label what judges read in a run, in a browser; `judge --labels` reads the file.

    Exit code: 0, or 2 if there is nothing to label.
    """
    from skillup.app.rejudge.labelling import Labelling
    from skillup.app.runs import run_path
    from skillup.judges.labels import read_labels
    from skillup.reports.server import LoopbackServer
    from skillup.store import RunDirectory

    path = csv or workspace_root(Path()) / "labels.csv"
    if csv is None and (path.parent / "SKILL.md").is_file():
        path = path.parent / "evals" / path.name  # where no agent under test is given it
    labels = read_labels(path) if path.exists() else []
    made = Labelling(path, RunDirectory.open(run_path(run)), sample)
    words = f"{count(len(made.items), 'item')}, {made.done()} of them labelled"
    there = f"{count(len(labels), 'label')} in {shown_path(path)}"
    say(f"{words}; {there}")
    if not no_page:
        say("each label is saved at once; Ctrl-C ends it")
        LoopbackServer(made.pages, port, writes=True).serve(open_browser=not no_open)
    return 0
