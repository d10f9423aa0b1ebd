"""`skillup session to-case`: an agent's session becomes a regression case."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.errors import SkillupError, UsageError

if TYPE_CHECKING:
    from skillup.sessions.fixture import Selected
    from skillup.sessions.record import RecordedSession


_FIXTURES = "fixtures"
_SHOWN = 5


def write_case(session: str, out: Path | None, *, with_fixture: bool, force: bool) -> int:
    """Write the case to `out`, or to stdout; what else there is to know to stderr.

    Raises UsageError if the session cannot become a case, or a file is there that would be lost.
    """
    from skillup.importers.write import relative, schema_files
    from skillup.sessions.case import case_of_session
    from skillup.sessions.index import (
        find_session,
        revision_of,
        session_files,
        session_format,
        session_homes,
    )
    from skillup.sessions.record import read_session

    path = find_session(session, session_files(session_homes(os.environ)))
    held = read_session(path, session_format(path))
    revision = revision_of(path)
    if out is None:
        if with_fixture:
            raise UsageError("--with-fixture needs --out", hint="the fixture lies beside the case")
        [(schema, missing)] = schema_files(Path.cwd(), ("case",)).values()
        shown = "" if missing else relative(Path.cwd(), schema)
        case = case_of_session(held, schema=shown, revision=revision)
        sys.stdout.write(_printable(case.text))
        _say_all(case.notes)
        return 0
    if out.is_dir():
        raise UsageError(f"--out {out}: that is a folder", hint="name the case's file in it")
    if os.path.lexists(out) and not force:
        raise UsageError(f"{out} is there already", hint="--force replaces it")
    return _write_files(held, out, revision, with_fixture=with_fixture, force=force)


def _write_files(
    held: RecordedSession, out: Path, revision: str | None, *, with_fixture: bool, force: bool
) -> int:
    from skillup.importers.write import relative, schema_files, slug, write_files
    from skillup.reports.terminal.listing import shown_path
    from skillup.sessions.case import case_of_session, suite_text
    from skillup.sessions.fixture import copy_files, select_files

    if out.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--out {out}: not a YAML file", hint="give it the ending .yaml")
    if out.stem == "eval":
        raise UsageError(f"--out {out}: that is a suite's name", hint="give the case another name")
    folder = out.resolve().parent
    suite = _suite_above(folder)
    fixture = folder / _FIXTURES / out.stem if with_fixture else None
    workspace = Path(held.summary.cwd or "")
    if fixture is not None and not held.summary.cwd:
        raise UsageError("--with-fixture: the session does not tell its directory")
    selected = select_files(workspace, os.environ) if fixture is not None else None
    root = suite.parent if suite is not None else folder
    if root.name == "evals" and suite is not None:
        root = root.parent
    schemas = schema_files(folder, ("case", "suite"))
    shown = {name: relative(folder, path) for name, (path, _) in schemas.items()}
    notes: list[str] = []
    case_id = slug(out.stem, otherwise="session")
    if suite is not None:
        case_id, notes = _fitting(case_id, suite, out, held.engine)
    case = case_of_session(
        held,
        schema=shown["case"],
        revision=revision,
        case_id=case_id,
        fixture=Path(os.path.relpath(fixture, root)).as_posix() if fixture is not None else None,
    )
    files = {out: case.text}
    if suite is None:
        files[folder / "eval.yaml"] = suite_text(shown["suite"], held.engine)
    if fixture is not None and selected is not None:
        copy_files(workspace, selected, fixture, force=force)
        _say_fixture(selected, fixture)
    files |= {path: text for path, text in schemas.values() if text and not path.is_file()}
    write_files({path: _printable(text) for path, text in files.items()}, force=True)
    for path in files:
        _say(f"wrote {shown_path(path)}")
    _say_all((*case.notes, *notes))
    return 0


def _printable(text: str) -> str:
    """`text` without halves of characters, which no file can hold."""
    return text.encode(errors="replace").decode()


def _fitting(case_id: str, suite: Path, out: Path, engine: str) -> tuple[str, list[str]]:
    """An id that no other case of the suite has, and what there is to know of that."""
    from skillup.importers.write import unique_name

    free = unique_name(case_id, ids_in_suite(suite, out))
    notes = []
    if free != case_id:
        notes.append(f"`{case_id}` is the id of another case of the suite: this one is `{free}`")
    engines = other_engine(suite, engine)
    return free, [*notes, *([engines] if engines else [])]


def _suite_above(folder: Path) -> Path | None:
    from skillup.load.discover import SUITE_FILE

    places = (place / name for place in (folder, *folder.parents) for name in ("", "evals"))
    found = (place / SUITE_FILE for place in places)
    return next((suite for suite in found if suite.is_file()), None)


def _say_fixture(selected: Selected, fixture: Path) -> None:
    from skillup.reports.terminal.listing import shown_path

    count = len(selected.files)
    _say(f"copied {count} file{'' if count == 1 else 's'} to {shown_path(fixture)}")
    for why, paths in selected.left_out.items():
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        _say(f"left out, {why}: {', '.join(paths[:_SHOWN])}{more}")


def _say_all(notes: tuple[str, ...]) -> None:
    for note in notes:
        _say(f"note: {note}")


def _say(text: str) -> None:
    from skillup.reports.text import one_line

    sys.stderr.write(one_line(text, 1000) + "\n")


# What a case that is written into a suite must go together with: other cases' ids, the engine.


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
    from skillup.app.engines import DEFAULT_ENGINE, root_with_engines
    from skillup.load.profiles import load_profile
    from skillup.load.suites import load_paths
    from skillup.reports.terminal.listing import shown_path

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
