"""`skillup init`: a skill's first suite."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import Force, option


def init(
    skill_dir: Annotated[
        Path, typer.Argument(metavar="SKILL_DIR", help="The skill: the directory of its SKILL.md.")
    ] = Path(),
    engine: Annotated[str, option("Who runs the cases.", "--engine", "-e")] = "scripted",
    request: Annotated[str | None, option("What a user says who needs the skill.")] = None,
    force: Force = False,
) -> int:
    """Write evals/ for a skill: a case that needs it, one that does not, and one of two turns."""
    from skillup.app.suites.new import new_suite, write_suite
    from skillup.load.discover import workspace_root
    from skillup.load.profiles import load_profile
    from skillup.reports.text import plain

    load_profile(engine, workspace_root(skill_dir), os.environ)  # raises if there is none
    files = new_suite(skill_dir, engine, request)
    write_suite(skill_dir, files, force=force)
    lines = [f"wrote {path}" for path in sorted(files)]
    # From there: runs are kept where the command is given, and there they are ignored.
    cd = "" if str(skill_dir) == "." else f"cd {shlex.quote(str(skill_dir))} && "
    lines.append(f"next: {cd}skillup run .")
    if engine == "scripted":
        lines.append("with a real agent, there: skillup run . --engine claude_code")
    lines.append(f"then say in {skill_dir / 'evals/cases'} what your skill must do")
    sys.stderr.writelines(plain(line) + "\n" for line in lines)
    return 0
