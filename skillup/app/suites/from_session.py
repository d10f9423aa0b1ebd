"""`skillup session to-case`: an agent's session becomes a regression case."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from skillup.errors import UsageError
from skillup.importers.write import slug, write_files
from skillup.load.discover import SUITE_FILE, suite_root
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import count, listed, one_line
from skillup.sessions.case import case_of_session, copy_workspace, suite_text
from skillup.sessions.index import find_session
from skillup.sessions.record import read_session

_SHOWN = 5


def write_case(session: str, out: Path | None, *, with_fixture: bool, force: bool) -> int:
    """Write the case to `out`, or to stdout; what else there is to know to stderr.

    Raises UsageError if the session cannot become a case, or a file is there that would be lost.
    """
    recorded = read_session(find_session(session, os.environ))
    if out is None:
        if with_fixture:
            raise UsageError("--with-fixture needs --out", hint="the fixture lies beside the case")
        case = case_of_session(recorded)
        sys.stdout.write(_printable(case.text))
        _say(*(f"note: {note}" for note in case.notes))
        return 0
    problems = {
        f"--out {out}: that is a folder": out.is_dir(),
        f"{out} is there already; --force replaces it": os.path.lexists(out) and not force,
        f"--out {out}: not a YAML file": out.suffix not in (".yaml", ".yml"),
        f"--out {out}: that is a suite's name": out.stem == "eval",
    }
    for problem, is_so in problems.items():
        if is_so:
            raise UsageError(problem, hint="name the case's file, for example cases/asks.yaml")
    folder = out.resolve().parent
    places = (place / name for place in (folder, *folder.parents) for name in ("", "evals"))
    suite = next((p / SUITE_FILE for p in places if (p / SUITE_FILE).is_file()), None)
    case_id = slug(out.stem, otherwise="session")
    fixture = folder / "fixtures" / out.stem
    root = suite_root(suite) if suite is not None else folder
    shown = Path(os.path.relpath(fixture, root)).as_posix() if with_fixture else None
    case = case_of_session(recorded, case_id=case_id, fixture=shown)
    if with_fixture:
        workspace = Path(recorded.summary.cwd or "")
        copied, left_out = copy_workspace(workspace, fixture, os.environ)
        _say(f"copied {count(copied, 'file')} to {shown_path(fixture)}")
        _say(*(f"left out, {w}: {listed(p[:_SHOWN], len(p))}" for w, p in left_out.items()))
    files = {out: case.text}
    if suite is None:
        files[folder / SUITE_FILE] = suite_text(recorded.engine)
    write_files({path: _printable(text) for path, text in files.items()}, force=True)
    _say(*(f"wrote {shown_path(path)}" for path in files))
    _say(*(f"note: {note}" for note in case.notes))
    return 0


def _printable(text: str) -> str:
    """`text` without halves of characters, which no file can hold."""
    return text.encode(errors="replace").decode()


def _say(*lines: str) -> None:
    sys.stderr.writelines(one_line(line, 1000) + "\n" for line in lines)
