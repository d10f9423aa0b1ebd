"""`skillup judge`: grade records again, without the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import AsJson, CaseGlobs, Tags
from skillup.errors import UsageError


def judge(
    target: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TRIAL|RECORD|SESSION",
            help="A run, a trial's directory in it, a record.json, or an agent's session.",
        ),
    ],
    cases: Annotated[
        list[Path] | None,
        typer.Option("--cases", help="Judge by these suites or cases instead; repeatable."),
    ] = None,
    case: CaseGlobs = None,
    tag: Tags = None,
    write: Annotated[
        bool, typer.Option("--write", help="Store the new grades beside the old ones.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Judge again whenever a file of --cases changes.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only what changed, and the counts.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Judge again what was recorded: offline, with the recorded or with edited cases.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR
    (infrastructure; outranks 1), 130 interrupted.
    """
    from skillup.cli.judging_cases import Selection
    from skillup.cli.judging_output import JudgeRequest, judge_once
    from skillup.cli.judging_sources import open_source
    from skillup.cli.judging_watch import judge_on_changes

    source = open_source(target)
    if source.kind == "session" and not cases:
        raise UsageError(
            "a session has no case of its own",
            hint="give one with --cases; `skillup session to-case` writes one",
        )
    if write and source.home is None:
        raise UsageError(
            "--write: skillup writes nothing beside the agents' own sessions",
            hint="keep the output of --json instead",
        )
    request = JudgeRequest(
        source=source,
        cases=tuple(cases or ()),
        selection=Selection(tuple(case or ()), tuple(tag or ())),
        write=write,
        quiet=quiet,
        as_json=as_json,
    )
    if not watch:
        return judge_once(request)
    if not cases:
        raise UsageError("--watch: nothing to watch", hint="name the files with --cases")
    if as_json or write:
        raise UsageError("--watch only shows", hint="leave --json and --write for afterwards")
    return judge_on_changes(request)
