"""The verbs about several runs: compare, trends, bisect, baseline and runs."""

from __future__ import annotations

import fnmatch
import json
import os
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.cli import options as o
from skillup.cli.options import argument, flag, option
from skillup.errors import ExitCode, UsageError
from skillup.load.discover import workspace_root
from skillup.reports.text import count, listed_ids, plain, print_json, say

if TYPE_CHECKING:
    from skillup.history.runs import CaseKey, RunOutcomes

_SHOWN = 20
_RUNS = "The run B, by default `last`, and what it is compared with, by default its reference."


Form = StrEnum("Form", ["markdown"])
Variant = StrEnum("Variant", ["with_skill", "without_skill"])
WebhookFormat = StrEnum("WebhookFormat", ["json", "slack"])


def compare(
    runs: o.Texts = argument(None, "[A] [B]", _RUNS),
    baseline: str | None = option(None, "Compare with this run alone.", metavar="RUN"),
    branch: str | None = option(None, "Compare with the nights of this branch."),
    gate: o.Texts = option(None, "NAME=VALUE; outranks the gates of all suites; repeatable."),
    report: Form | None = option(None, "On stdout, in place of the text."),
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
    from skillup.history.index import LAST
    from skillup.redaction.secrets import NO_SECRETS
    from skillup.reports import past_runs
    from skillup.reports.markdown import comparison_markdown
    from skillup.reports.notify import badge_data, error_lines, post, webhook_payload
    from skillup.reports.terminal.layout import make_console, print_sheets
    from skillup.store.files import no_mask, to_json, write_atomic

    names = runs or [LAST]
    if len(names) > 2 or (len(names) == 2 and baseline is not None):
        raise UsageError("more than two runs", hint="skillup compare A B, or --baseline A B")
    given = given_gates(gate or ())
    b, url, folder = _find(names[-1], index)
    a = names[0] if len(names) == 2 else baseline
    comparison, results = compared(b, url, folder, baseline=a, branch=branch, given=given)
    if as_json:
        print_json(past_runs.comparison_data(comparison, results).model_dump(mode="json"))
    elif report is not None:
        sys.stdout.write(comparison_markdown(comparison, results))
    else:
        print_sheets(make_console(sys.stdout), past_runs.comparison_sheets(comparison, results))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        checkout = Path(os.environ.get("GITHUB_WORKSPACE") or "")
        say(*error_lines(comparison, results, checkout))
    if badge is not None:
        write_atomic(badge, to_json(badge_data(comparison, results), no_mask, indent=2))
    if webhook:  # empty: a variable that is not set
        payload = webhook_payload(comparison, results, webhook_format.value)
        if problem := post(webhook, payload, NO_SECRETS.also_of(os.environ).mask):
            say(f"{problem}")
    return ExitCode.PASSED if all(result.passed for result in results) else ExitCode.FAILED


def trends(
    suites: o.Texts = argument(None, "[SUITE]...", "Names or globs. Default: all suites."),
    case: o.Texts = o.CASE,
    engine: o.Texts = option(None, "Only these profiles (globs); repeatable.", "--engine", "-e"),
    variant: Variant | None = option(None, "Default: both."),
    branch: str | None = option(None, "Runs on this one. Default: the one here, if it has any."),
    last: int = option(20, "The newest so many runs of each suite.", min=1),
    everything: bool = flag("--all", "Also cases of a large suite that always passed."),
    rebuild: bool = flag("--rebuild", "First index the runs that are there anew."),
    index: str | None = o.INDEX,
    as_json: bool = o.JSON,
) -> int:
    """Show how suites and their cases fared over past runs, and when a case began to fail.

    Exit code: 0 shown, 2 usage or no index, 3 the index cannot be read.
    """
    from skillup.history import index as runs
    from skillup.history.reference import accepted_since
    from skillup.history.trends import histories
    from skillup.reports.past_runs import print_trends
    from skillup.reports.terminal.layout import make_console

    url, folder = _places(index, write=rebuild)
    if rebuild:
        done = list(runs.rebuild(url, folder))
        for path, error in done:
            if error is not None:
                say(f"{path.name}: not indexed: {error.message}")
        say(f"{count(sum(error is None for _, error in done), 'run')} indexed")
    here = _here()
    every = runs.all_runs(url, here["repository"], branch or here["branch"])
    if not every and branch is None:
        every = runs.all_runs(url, here["repository"])
    with runs.open_index(url, write=False) as execute:
        marked = runs.marks(execute, here["repository"])
        rows = runs.indexed_runs(execute, here["repository"])

    def takes(key: CaseKey) -> bool:
        return variant in (None, key.variant) and all(
            not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)
            for name, globs in zip(key, (suites, case, engine), strict=False)
        )

    accepted = accepted_since(marked, [branch or here["branch"]], rows)
    found = histories(every, last, accepted, takes=takes)
    if not found.suites:
        names = sorted({trial.key.suite for run in every for trial in run.trials})
        hint = f"suites there: {listed_ids(names, _SHOWN) or 'none yet'}"
        on = f" on the branch {branch}" if branch is not None else ""
        raise UsageError(f"no indexed run{on} matches", hint=hint)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        print_trends(found, every, make_console(sys.stdout), everything=everything)
    return 0


_CASE = "A case's id (a glob that one case matches), or its file."
_CLI = "Search versions of this engine's CLI, from npm, not commits of the skill."


def bisect(
    case: str = argument(..., "CASE", _CASE),
    paths: list[Path] | None = o.PATHS,
    good: str = option(..., "A commit, or version, with which the case passed.", metavar="REV"),
    bad: str = option(..., "A later one, with which it does not.", metavar="REV"),
    engine: str | None = option(None, "A profile, an adapter or a file.", "--engine", "-e"),
    cli: str | None = option(None, _CLI, metavar="ENGINE"),
    trials_budget: int | None = option(None, "At most so many trials, earlier ones too.", min=1),
    error: float = option(0.05, "How often the answer may be wrong.", min=0.0001, max=0.5),
    variables: o.Texts = o.VAR,
    trust: bool = o.TRUST,  # noqa: ARG001 - its callback does it
) -> int:
    """Find the commit of the skill, or the version of a CLI, that broke a case.

    Exit code: 0 it was found, 1 there is no difference or the answer is not sure, 2 usage or
    invalid files, 3 an ERROR, 130 interrupted: the same command goes on.
    """
    from skillup.app.bisect import bisect as search
    from skillup.app.planning import FALLBACK_VARIABLE, RunRequest, default_paths

    if cli is not None and engine is not None:
        raise UsageError("--cli names the engine; --engine is for commits of the skill")
    is_file = not paths and Path(case).is_file()
    engine = cli or engine
    run = RunRequest(
        paths=tuple(map(str, [Path(case)] if is_file else default_paths(paths))),
        engines=() if engine is None else (engine,),
        trials=1,
        cases=() if is_file else (case,),
        variables=tuple(variables or ()),
        judge_model_fallback=os.environ.get(FALLBACK_VARIABLE) or None,
        directory=str(Path.cwd()),
    )
    return search(run, (good, bad), of_cli=cli is not None, error=error, most_trials=trials_budget)


def _here() -> dict[str, Any]:
    """Repository and branch of the current directory."""
    import anyio

    from skillup.app.provenance import checkout

    return anyio.run(checkout, Path(), os.environ)


def _places(index: str | None, *, write: bool = False) -> tuple[str, Path]:
    """The index, and the folder of runs."""
    from skillup.history.index import index_url
    from skillup.store.places import runs_folder

    root = workspace_root(Path())
    return index_url(index, os.environ, root, write=write), runs_folder(root)


def _find(name: str, index: str | None) -> tuple[RunOutcomes, str, Path]:
    """The run that is named, the index, and the folder of runs."""
    from skillup.history.index import find_run

    url, folder = _places(index)
    return find_run(name, url, folder, _here()["repository"]), url, folder


# What runs are compared with, where that is not simply the nights before.

RUN = argument("last", "[RUN]", o.RUN_HELP)
BRANCH = option(None, "For this branch. Default: that of the run, or the one here.")
LABEL = option(None, "For runs with this label, in place of a branch.", metavar="TEXT")


def _scope(branch: str | None, label: str | None, default: str) -> str:
    from skillup.history import reference

    return reference.LABEL + label if label else branch if branch is not None else default


def set_baseline(
    run: str = RUN,
    branch: str | None = BRANCH,
    label: str | None = LABEL,
    index: str | None = o.INDEX,
) -> int:
    """Pin a run that is known to be good: from now on runs are compared with it."""
    from skillup.history.index import add_run
    from skillup.history.reference import pin

    found, url, _ = _find(run, index)
    scope = _scope(branch, label, found.about.branch)
    add_run(url, found)  # it may have been run without an index
    pin(url, found.about.repository, scope, found.run_id)
    say(f"pinned{f' for {scope}' if scope else ''}: {found.run_id}")
    return ExitCode.PASSED


def clear_baseline(
    branch: str | None = BRANCH, label: str | None = LABEL, index: str | None = o.INDEX
) -> int:
    """Pin no run any more: runs are compared with the nights before them."""
    from skillup.history.reference import pin

    here = _here()
    pin(_places(index)[0], here["repository"], _scope(branch, label, here["branch"]), None)
    return ExitCode.PASSED


def show_baseline(index: str | None = o.INDEX) -> int:
    """Show the pinned runs of this repository, and from which run on cases were accepted."""
    from skillup.history.index import marks, open_index

    with open_index(_places(index)[0], write=False) as execute:
        marked = marks(execute, _here()["repository"])
    for (scope, subject), run_id in marked.items():
        case = "/".join(filter(None, json.loads(subject))) if subject else ""
        what = f"accepted: {case}" if case else "pinned"
        sys.stdout.write(plain(f"{scope or '(no branch)'}  {run_id}  {what}\n"))
    if not marked:
        say("nothing is pinned or accepted: runs are compared with the nights before them")
    return ExitCode.PASSED


def accept_cases(
    cases: o.Texts = argument(None, "[CASE]...", "Ids or globs. Default: all that got worse."),
    run: str = option("last", "The run with which their reference begins anew."),
    index: str | None = o.INDEX,
) -> int:
    """Take what cases do now as what they are to do; what was before does not count any more."""
    from skillup.history.gates import cases_gone, compared
    from skillup.history.index import add_run
    from skillup.history.reference import accept

    found, url, folder = _find(run, index)
    comparison, _ = compared(found, url, folder)
    gone = {key for _, keys in cases_gone(comparison) for key in keys}
    keys = [*(case.key for case in comparison.counted if case.b.judged), *sorted(gone)]
    if cases:
        keys = [k for k in keys if any(fnmatch.fnmatchcase(k.case_id, glob) for glob in cases)]
    else:
        fallen = {one.suite for one in comparison.of_suites if one.kind == "fewer_passes"}
        worse = {one.key for one in comparison.assessment.regressed} | gone
        fewer = [case.key for case in comparison.cases if case.change == "fewer_passes"]
        worse |= {key for key in fewer if key.suite in fallen}
        keys = [key for key in keys if key in worse]
    if not keys:
        what = f"no case of {found.run_id} " + ("matches" if cases else "got worse")
        raise UsageError(what, hint="name cases: skillup baseline accept CASE")
    add_run(url, found)  # it may have been run without an index
    accept(url, found, keys)
    names = listed_ids(sorted({key.case_id for key in keys}), _SHOWN)
    say(f"accepted as in {found.run_id}: {names}")
    return ExitCode.PASSED


def list_runs(
    branch: str | None = option(None, "Only those on this branch."),
    label: str | None = option(None, "Only those with this label.", metavar="TEXT"),
    last: int = option(20, "The newest so many.", min=1),
    index: str | None = o.INDEX,
) -> int:
    """List the runs of this repository that the index has, the newest first."""
    from skillup.history.index import indexed_runs, open_index, outcomes_of
    from skillup.history.runs import CaseTally

    with open_index(_places(index)[0], write=False) as execute:
        found = indexed_runs(execute, _here()["repository"])
        found = [r for r in found if branch in (None, r.branch) and label in (None, r.label)]
        for row in found[-last:][::-1]:
            run = outcomes_of(execute, row.run_id)
            total, commit = CaseTally(run.trials), run.about.commit[:8] + "+" * run.about.dirty
            missing = f"{total.not_run} not run" if total.not_run else ""
            words = (f"{f'{total.passed}/{total.judged}':>9}", row.branch, commit, row.label)
            line = "  ".join(filter(None, (row.run_id, *words, missing)))
            sys.stdout.write(plain(line) + "\n")
    return ExitCode.PASSED


def label_run(
    run: str = o.RUN,
    text: str = argument(..., "TEXT", "The label; an empty one takes it away."),
    index: str | None = o.INDEX,
) -> int:
    """Give a run a name."""
    from skillup.history.index import add_run
    from skillup.store import RunDirectory
    from skillup.store.places import is_run

    found, url, _ = _find(run, index)
    if is_run(Path(found.path)):
        with RunDirectory.open(Path(found.path), writable=True) as directory:
            info = directory.run_info()
            if info.get("run_id") == found.run_id:
                directory.write_run_info({**info, "label": text})
    add_run(url, replace(found, about=replace(found.about, label=text)))
    return ExitCode.PASSED


def prune(
    keep: float = option(..., "Of this age and younger: 30d.", metavar="AGE", parser=o.parse_age),
    dry_run: bool = flag("--dry-run", "Only tell what would go."),
    index: str | None = o.INDEX,
) -> int:
    """Remove old runs of this repository: their files here, and what the index has of them.

    Pinned runs, those that something was accepted from, runs in progress and files that are not
    skillup's stay; the index keeps the newest 60 runs of each branch.
    """
    from skillup.app.runs import prune_runs

    url, folder = _places(index)
    gone, kept, freed = prune_runs(url, folder, _here()["repository"], keep, dry_run=dry_run)
    for run_id, why in kept.items():
        say(f"kept {run_id}: {why}")
    if dry_run:
        sys.stdout.writelines(plain(f"{path}\n") for path in gone.values())
    would = "would be removed" if dry_run else "removed"
    say(f"{count(len(gone), 'run')} {would}, {freed / 1e6:.1f} MB")
    return ExitCode.PASSED
