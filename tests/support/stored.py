"""Small records, grades and results to store; and what may befall a run's file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from skillup.schema.grade import Grade, RunResult
from skillup.schema.record import Checkpoint, Record, SessionFingerprint, TurnError
from skillup.store.files import pack, unpack
from tests.support import graded
from tests.support.records import make_record, make_turn


def change(run: Path, sql: str, *parameters: object) -> None:
    """What an agent, or a person with an editor, might do to the file of a run that is closed."""
    with closing(sqlite3.connect(run / "run.sqlite")) as connection, connection:
        assert connection.execute(sql, parameters).rowcount > 0


def edit_stored(
    run: Path, job: str, edit: Callable[[dict[str, Any]], object], what: str = "record"
) -> None:
    """Changes the record, or the `grade`, of a finished trial in a run's closed file."""
    place = "WHERE job = ? AND state = 'finished'"
    with closing(sqlite3.connect(run / "run.sqlite")) as connection, connection:
        [[packed]] = connection.execute(f"SELECT {what} FROM attempts {place}", (job,))
        data = json.loads(unpack(packed))
        edit(data)
        stored = pack(json.dumps(data).encode())
        connection.execute(f"UPDATE attempts SET {what} = ? {place}", (stored, job))


def content_of(run: Path) -> bytes:
    """All that a run holds, unpacked: to look for what must be nowhere."""
    found = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    with closing(sqlite3.connect(run / "run.sqlite")) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        rows = (row for (name,) in tables for row in connection.execute(f"SELECT * FROM {name}"))
        for value in (value for row in rows for value in row):
            found.append(value if isinstance(value, bytes) else str(value).encode())
            with suppress(TypeError, ValueError):
                found.append(unpack(value))
    return b"\0".join(found)


def a_record(
    case_id: str = "case", *, trial: int = 1, response: str = "done", error: TurnError | None = None
) -> Record:
    turn = make_turn(
        response,
        content="go on",
        status="error" if error else "completed",
        error=error,
        duration_ms=1,
    )
    return make_record(turn, case_id=case_id, case={"id": case_id}, trial=trial).record


def a_checkpoint(**update: object) -> Checkpoint:
    session = SessionFingerprint(session_id="s", messages=1, prefix_sha256="0", prefix_bytes=1)
    made = Checkpoint(
        record=a_record(),
        variables={"name": "value"},
        messages=1,
        session=session,
        chosen_session_id="s",
        skills={},
        session_files={},
        workspace_sha256="0",
        asked_sha256="0",
        elapsed_ms=1,
        elapsed_seconds=1.0,
    )
    return made.model_copy(update=update)


def a_grade(case_id: str = "case", *, reason: str = "all checks passed") -> Grade:
    own: dict[str, Any] = {"suite": "suite", "engine": "scripted", "turns": [], "duration_ms": 1}
    return graded.a_grade(case_id, reason=reason, **own)


def a_result(*, finished: bool = True) -> RunResult:
    return graded.a_result([a_grade()], not_run=() if finished else ["other"])
