"""`skillup session to-case`: an agent's session becomes a regression case."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from skillup.app.engines import DEFAULT_ENGINE, root_with_engines
from skillup.errors import SkillupError, UsageError
from skillup.importers.write import schema_path, slug, unique_name, write_files
from skillup.load.discover import SUITE_FILE
from skillup.load.profiles import load_profile
from skillup.load.suites import load_paths
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import one_line
from skillup.sessions.case import case_of_session, suite_text
from skillup.sessions.fixture import copy_files, select_files
from skillup.sessions.index import (
    find_session,
    session_files,
    session_format,
    session_homes,
)
from skillup.sessions.record import RecordedSession, read_session

_FIXTURES = "fixtures"
_SHOWN = 5


def write_case(session: str, out: Path | None, *, with_fixture: bool, force: bool) -> int:
    """Write the case to `out`, or to stdout; what else there is to know to stderr.

    Raises UsageError if the session cannot become a case, or a file is there that would be lost.
    """
    path = find_session(session, session_files(session_homes(os.environ)))
    recorded = read_session(path, session_format(path))
    if out is None:
        if with_fixture:
            raise UsageError("--with-fixture needs --out", hint="the fixture lies beside the case")
        schema = schema_path(Path.cwd(), "case")
        case = case_of_session(recorded, schema=schema)
        sys.stdout.write(_printable(case.text))
        _note(*case.notes)
        return 0
    problem, hint = "", None
    if out.is_dir():
        problem, hint = f"--out {out}: that is a folder", "name the case's file in it"
    elif os.path.lexists(out) and not force:
        problem, hint = f"{out} is there already", "--force replaces it"
    elif out.suffix not in (".yaml", ".yml"):
        problem, hint = f"--out {out}: not a YAML file", "give it the ending .yaml"
    elif out.stem == "eval":
        problem, hint = f"--out {out}: that is a suite's name", "give the case another name"
    elif with_fixture and not recorded.summary.cwd:
        problem = "--with-fixture: the session does not tell its directory"
    if problem:
        raise UsageError(problem, hint=hint)
    return _write_files(recorded, out, with_fixture=with_fixture, force=force)


def _write_files(recorded: RecordedSession, out: Path, *, with_fixture: bool, force: bool) -> int:
    folder = out.resolve().parent
    places = (place / name for place in (folder, *folder.parents) for name in ("", "evals"))
    suite = next((p / SUITE_FILE for p in places if (p / SUITE_FILE).is_file()), None)
    root = suite.parent if suite is not None else folder
    if root.name == "evals" and suite is not None:
        root = root.parent
    fixture = folder / _FIXTURES / out.stem if with_fixture else None
    workspace = Path(recorded.summary.cwd or "")
    selected = select_files(workspace, os.environ) if fixture is not None else None
    notes: list[str] = []
    case_id = slug(out.stem, otherwise="session")
    if suite is not None:
        case_id, notes = _in_suite(case_id, suite, out, recorded.engine)
    case = case_of_session(
        recorded,
        schema=schema_path(folder, "case"),
        case_id=case_id,
        fixture=Path(os.path.relpath(fixture, root)).as_posix() if fixture is not None else None,
    )
    if fixture is not None and selected is not None:
        copy_files(workspace, selected, fixture, force=force)
        count = len(selected.files)
        _say(f"copied {count} file{'' if count == 1 else 's'} to {shown_path(fixture)}")
        for why, paths in selected.left_out.items():
            more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
            _say(f"left out, {why}: {', '.join(paths[:_SHOWN])}{more}")
    files = {out: case.text}
    if suite is None:
        schema = schema_path(folder, "suite")
        files[folder / SUITE_FILE] = suite_text(schema, recorded.engine)
    write_files({path: _printable(text) for path, text in files.items()}, force=True)
    for path in files:
        _say(f"wrote {shown_path(path)}")
    _note(*case.notes, *notes)
    return 0


def _in_suite(case_id: str, suite: Path, out: Path, engine: str) -> tuple[str, list[str]]:
    """An id that no other case of the suite has, and what does not go together with the suite."""
    try:
        loaded = load_paths([suite])
    except UsageError:
        return case_id, []
    own = out.resolve()
    cases = [case for one in loaded.suites for case in one.cases if case.path.resolve() != own]
    taken = {name.casefold() for case in cases for name in (case.case.id, case.family)}
    # Those that are not valid have an id, too.
    broken = {problem.file for problem in loaded.problems if problem.severity == "error"}
    taken |= {path.stem.casefold() for path in broken if path.resolve() not in (own, suite)}
    free = unique_name(case_id, taken)
    notes = []
    if free != case_id:
        notes.append(f"`{case_id}` is the id of another case of the suite: this one is `{free}`")
    for one in loaded.suites[:1]:
        name = one.suite.engine.name if one.suite.engine is not None else DEFAULT_ENGINE
        try:
            adapter = load_profile(name, root_with_engines(Path.cwd(), suite), os.environ).engine
        except SkillupError:
            adapter = name
        if adapter != engine:
            notes.append(
                f"{shown_path(suite)} is run by the engine {name}, and the session ran with "
                f"{engine}: run the case with --engine {engine}"
            )
    return free, notes


def _printable(text: str) -> str:
    """`text` without halves of characters, which no file can hold."""
    return text.encode(errors="replace").decode()


def _note(*notes: str) -> None:
    for note in notes:
        _say(f"note: {note}")


def _say(text: str) -> None:
    sys.stderr.write(one_line(text, 1000) + "\n")
