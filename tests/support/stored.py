"""Small records, grades and results to store."""

from __future__ import annotations

from typing import Any

from skillup.schema.grade import Grade, RunResult
from skillup.schema.record import Checkpoint, Record, SessionFingerprint, TurnError
from tests.support import graded
from tests.support.records import make_record, make_turn


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
