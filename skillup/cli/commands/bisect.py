"""`skillup bisect`: which commit of a skill, or version of a CLI, broke a case."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from skillup.cli import options as o
from skillup.cli.options import option
from skillup.errors import UsageError

_CASE = "A case's id (a glob that one case matches), or its file."
_CLI = "Search versions of this engine's CLI, from npm, not commits of the skill."


def bisect(
    case: str = typer.Argument(..., metavar="CASE", help=_CASE),
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
    from skillup.app.bisect import session
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
    return session.bisect(
        run, (good, bad), of_cli=cli is not None, error=error, most_trials=trials_budget
    )
