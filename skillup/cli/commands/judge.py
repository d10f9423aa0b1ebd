"""`skillup judge`: grade records again, without the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import AsJson, CaseGlobs, JudgeModelName, Tags, Trust
from skillup.errors import UsageError


def judge(
    target: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TRIAL|RECORD|INPUT|SESSION",
            help="A run (its directory, id, or `last`), a trial's directory in it, a record.json, "
            "a judge-debug file of skill-up, an agent's session, or a folder of sessions.",
        ),
    ],
    cases: Annotated[
        list[Path] | None,
        typer.Option("--cases", help="Judge by these suites or cases instead; repeatable."),
    ] = None,
    case: CaseGlobs = None,
    tag: Tags = None,
    judge_model: JudgeModelName = None,
    trust: Trust = False,  # noqa: ARG001 - its callback does it
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="Compare judges: this model, with another --against or the recorded grades.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="CSV", help="Compare judges with what people said."),
    ] = None,
    write_labels: Annotated[
        Path | None,
        typer.Option("--write-labels", metavar="CSV", help="Write a file to label, and end."),
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", help="Of a judge-debug file: its workspace.")
    ] = None,
    skill_dir: Annotated[
        Path | None, typer.Option("--skill-dir", help="Of a judge-debug file: the skill's folder.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Judge again whenever a file of --cases changes.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only what changed, and the counts.")
    ] = False,
    parallel: Annotated[
        int | None,
        typer.Option(
            "--parallel", "-j", min=1, max=64, help="Processes that judge a large run by rules."
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Judge again what was recorded: offline, with the recorded or with edited cases.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted. Of a
    comparison of judges: 0 it was made, 3 a judge failed on something.
    """
    from skillup.app.rejudge.cases import CaseSelection
    from skillup.app.rejudge.output import RejudgeRequest, judge_on_changes, judge_once
    from skillup.app.rejudge.sources import open_source

    selection = CaseSelection(tuple(case or ()), tuple(tag or ()))
    by = tuple(cases or ())
    with open_source(target, workspace=workspace, skill_dir=skill_dir) as source:
        if source.kind == "session" and not by:
            raise UsageError(
                "a session has no case of its own",
                hint="give one with --cases; `skillup session to-case` writes one",
            )
        if against or labels or write_labels:
            if watch:
                raise UsageError("--watch is not for comparisons of judges")
            if judge_model:
                raise UsageError(
                    "--judge-model is not for comparisons of judges",
                    hint=f"name it as one of them: --against {judge_model}",
                )
            from skillup.app.rejudge.compare import PanelRequest, compare_judges

            panel = PanelRequest(
                source, by, selection, tuple(against or ()), labels, write_labels, quiet, as_json
            )
            return compare_judges(panel)
        request = RejudgeRequest(source, by, selection, quiet, as_json, judge_model, parallel)
        if not watch:
            return judge_once(request)
        if not by:
            raise UsageError("--watch: nothing to watch", hint="name the files with --cases")
        if as_json:
            raise UsageError("--watch only shows", hint="leave --json for afterwards")
        return judge_on_changes(request)
