"""`skillup init`: a skill's first suite."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillup.errors import InvalidFilesError, UsageError

if TYPE_CHECKING:
    from skillup.app.suites.new import NewSuitePlan


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
    from skillup.load.discover import workspace_root
    from skillup.load.json_schema import json_schema

    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    skill, description = _skill_of(skill_dir, name, example=example)
    _check_profile(profile, skill_dir)
    plan = new.NewSuitePlan(
        skill=skill,
        name=name or skill,
        engine=_checked_engine(engine or "scripted", skill_dir, profile),
        model=model,
        request=request or new.request_from(description, skill),
        other_request=other_request,
        profile=profile,
    )
    files = {"SKILL.md": new.example_skill(skill)} if example else {}
    for which in ("suite", "case", *(["profile"] if profile else [])):
        text = json.dumps(json_schema(which), indent=2, ensure_ascii=False)
        files[f"evals/schema/{which}.schema.json"] = text + "\n"
    _refuse_existing(skill_dir, {**files, **new.suite_files(plan)}, force=force)
    try:
        if asks:
            plan = _asked(plan, skill_dir, engine, request)
        files |= new.suite_files(plan)
        # Within a workspace runs go into that one's `.skillup/`, which is its own business.
        own = workspace_root(skill_dir) == skill_dir.resolve()
        ignored = new.ignore_line(skill_dir) if own or profile is not None else None
        if ignored is not None:
            files[new.IGNORE] = ignored
        _show(skill_dir, files)
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
    if plan.engine == "scripted":
        _say("with a real agent, there: skillup run . --engine claude_code")
    _say(f"then say in {skill_dir / 'evals/cases'} what your skill must do")
    return 0


def _refuse_existing(skill_dir: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Raises UsageError if one of `files` is there and may not be replaced."""
    from skillup.app.suites import new

    there = new.existing(skill_dir, files)
    if there and not force:
        raise UsageError(
            f"{skill_dir} has already: {', '.join(there[:6])}"
            + (f" and {len(there) - 6} more" if len(there) > 6 else ""),
            hint="run them with `skillup run`; --force replaces the files that init writes, "
            "and leaves the others",
        )


def _skill_of(directory: Path, name: str | None, *, example: bool) -> tuple[str, str]:
    """The skill's name and description. Raises UsageError, InvalidFilesError if there is none."""
    from skillup.workspace.skills import SKILL_FILE, skill_description, skill_name, skill_problem

    file = directory / SKILL_FILE
    if example:
        if os.path.lexists(file):
            raise UsageError(
                f"{file} is there already",
                hint="leave --example out to write evals/ for this skill",
            )
        wish = "Use whenever the user wants to note a book in the reading list"
        return name or "reading-list", wish
    if not file.exists():
        where = "has no SKILL.md" if directory.is_dir() else "is no directory"
        raise UsageError(
            f"{directory} {where}",
            hint="give a skill's directory; or make a sample skill: skillup init DIR --example",
        )
    problem = skill_problem(directory)
    if problem is not None:
        raise InvalidFilesError([problem])
    found = skill_name(directory)
    if any("\ud800" <= character <= "\udfff" for character in found):
        raise UsageError(
            f"the name of {directory} is not UTF-8 text, so no case can name the skill",
            hint="write its `name` in the front matter of SKILL.md",
        )
    return found, skill_description(directory)


def _checked_engine(name: str, directory: Path, profile: str | None) -> str:
    """`name` if it is an engine or a profile; a new `profile` can be one of an engine only."""
    from skillup.load.discover import workspace_root
    from skillup.load.profiles import load_profile

    found = load_profile(name, workspace_root(directory), os.environ)
    if profile is not None and found.engine != name:
        raise UsageError(
            f"--profile {profile} would be one of {name}, which is a profile itself",
            hint=f"give --engine {found.engine}, or leave --profile out",
        )
    return name


def _check_profile(name: str | None, directory: Path) -> None:
    from skillup.load.discover import workspace_root

    if name is None:
        return
    if not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"--profile {name}: no name", hint="letters, digits, - and _")
    root = workspace_root(directory)
    if root != directory.resolve():
        raise UsageError(
            f"--profile {name}: profiles of this workspace are in {root / 'engines'}",
            hint="write it there, and give its name with --engine",
        )


def _asked(
    plan: NewSuitePlan, directory: Path, engine: str | None, request: str | None
) -> NewSuitePlan:
    """`plan` with what was not given as an option, asked for. Ctrl-C raises typer.Abort."""
    _say(f"A suite for the skill {plan.skill}. Enter takes what stands in brackets.")
    while engine is None:
        _say("Who runs the cases? scripted: offline, to try it out; claude_code; codex")
        given = typer.prompt("engine", default=plan.engine, err=True)
        try:
            engine = _checked_engine(given.strip(), directory, plan.profile)
        except UsageError as unknown:
            _say(f"{unknown.message}; {unknown.hint}")
    if request is None:
        _say(f"What does a user say who needs the skill?\n  [{plan.request}]")
        request = typer.prompt(
            "request", default=plan.request, show_default=False, err=True
        ).strip()
    return replace(plan, engine=engine, request=request or plan.request)


def _show(directory: Path, files: dict[str, str]) -> None:
    for name in sorted(files):
        verb = "write  "
        if os.path.lexists(directory / name):
            verb = "add to " if name == ".gitignore" else "REPLACE"
        _say(f"  {verb}  {directory / name}")


def _say(text: str) -> None:
    from skillup.reports.text import plain

    sys.stderr.write(plain(text) + "\n")
