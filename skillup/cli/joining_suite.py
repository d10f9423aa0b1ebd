"""What a case that is written into a suite must go together with: other cases' ids, the engine."""

from __future__ import annotations

import os
from pathlib import Path

from skillup.errors import SkillupError, UsageError


def ids_in_suite(suite: Path, leave_out: Path) -> set[str]:
    """The ids of the suite's cases, in lower case, but for the case in the file `leave_out`.

    Also those of cases that are not valid, as far as they can be read: they will be mended.
    """
    from skillup.load.suites import load_paths

    try:
        loaded = load_paths([suite])
    except UsageError:
        return set()
    own = leave_out.resolve()
    found = {
        name.casefold()
        for one in loaded.suites
        for case in one.cases
        if case.path.resolve() != own
        for name in (case.case.id, case.family)
    }
    broken = {problem.file for problem in loaded.problems if problem.severity == "error"}
    return found | {path.stem.casefold() for path in broken if path.resolve() not in (own, suite)}


def other_engine(suite: Path, engine: str) -> str | None:
    """A line, if the suite's own engine is not the adapter `engine`; None if it is."""
    from skillup.cli.engines import DEFAULT_ENGINE, root_with_engines
    from skillup.load.profiles import load_profile
    from skillup.load.suites import load_paths
    from skillup.reports.problems import shown_path

    try:
        loaded = load_paths([suite])
    except UsageError:
        return None
    for one in loaded.suites:
        named = one.suite.engine.name if one.suite.engine is not None else None
        name = named or DEFAULT_ENGINE
        try:
            adapter = load_profile(name, root_with_engines(Path.cwd(), suite), os.environ).engine
        except SkillupError:
            adapter = name
        if adapter != engine:
            says = f"names the engine {name}" if named else f"names no engine (it is {name} then)"
            return (
                f"{shown_path(suite)} {says}, and the session was held with {engine}: "
                f"run the case with --engine {engine}"
            )
    return None
