"""`skillup init`: a skill's first suite."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillup.errors import UsageError

if TYPE_CHECKING:
    from skillup.app.suites.new import NewSuite


def init(
    skill_dir: Annotated[
        Path, typer.Argument(metavar="SKILL_DIR", help="The skill: the directory of its SKILL.md.")
    ] = Path(),
    engine: Annotated[
        str | None, typer.Option("--engine", "-e", help="Who runs the cases. Default: scripted.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The engine's model. Default: its own.")] = None,
    name: Annotated[
        str | None, typer.Option(help="The suite's name. Default: the skill's.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="What a user says who needs the skill.")
    ] = None,
    other_request: Annotated[
        str | None, typer.Option(help="What a user says who does not need it. Default: a sum.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Also write a profile of the engine, engines/NAME.yaml.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Make a small sample skill, too.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
) -> int:
    """Write evals/ for a skill: a case that needs it, one that does not, and one of two turns.

    On a terminal it asks, and shows what it will write before it does.
    """
    from skillup.app.suites import new

    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    skill, description = new.skill_of(skill_dir, name, example=example)
    new.check_profile(profile, skill_dir)
    suite = new.NewSuite(
        skill=skill,
        name=name or skill,
        engine=new.checked_engine(engine or "scripted", skill_dir, profile),
        model=model,
        request=request or new.request_from(description, skill),
        other_request=other_request,
        profile=profile,
    )
    there = new.existing(skill_dir, new.all_files(suite, skill_dir, example=example))
    if there and not force:
        raise UsageError(
            f"{skill_dir} has already: {', '.join(there[:6])}"
            + (f" and {len(there) - 6} more" if len(there) > 6 else ""),
            hint="run them with `skillup run`; --force replaces the files that init writes, "
            "and leaves the others",
        )
    try:
        if asks:
            suite = _asked(suite, skill_dir, engine, request)
        files = new.all_files(suite, skill_dir, example=example)
        for path in sorted(files):
            verb = "write  "
            if os.path.lexists(skill_dir / path):
                verb = "add to " if path == new.IGNORE else "REPLACE"
            _say(f"  {verb}  {skill_dir / path}")
        if asks and not typer.confirm("Write them?", default=True, err=True):
            _say("nothing was written")
            return 0
    except typer.Abort:
        _say("\nnothing was written")
        raise
    new.write_suite(skill_dir, files)
    # From there: runs are kept where the command is given, and there they are ignored.
    cd = "" if str(skill_dir) == "." else f"cd {shlex.quote(str(skill_dir))} && "
    _say(f"next: {cd}skillup run .")
    if suite.engine == "scripted":
        _say("with a real agent, there: skillup run . --engine claude_code")
    _say(f"then say in {skill_dir / 'evals/cases'} what your skill must do")
    return 0


def _asked(suite: NewSuite, directory: Path, engine: str | None, request: str | None) -> NewSuite:
    """`suite` with what was not given as an option, asked for. Ctrl-C raises typer.Abort."""
    from skillup.app.suites.new import checked_engine

    _say(f"A suite for the skill {suite.skill}. Enter takes what stands in brackets.")
    while engine is None:
        _say("Who runs the cases? scripted: offline, to try it out; claude_code; codex")
        given = typer.prompt("engine", default=suite.engine, err=True)
        try:
            engine = checked_engine(given.strip(), directory, suite.profile)
        except UsageError as unknown:
            _say(f"{unknown.message}; {unknown.hint}")
    if request is None:
        _say(f"What does a user say who needs the skill?\n  [{suite.request}]")
        request = typer.prompt(
            "request", default=suite.request, show_default=False, err=True
        ).strip()
    return replace(suite, engine=engine, request=request or suite.request)


def _say(text: str) -> None:
    from skillup.reports.text import plain

    sys.stderr.write(plain(text) + "\n")
