"""Small records, grades and results to store."""

from __future__ import annotations

from skillup.schema.grade import Grade, RunResult, Summary
from skillup.schema.record import (
    Checkpoint,
    EngineInfo,
    Record,
    SessionFingerprint,
    TurnError,
    TurnRecord,
)


def a_record(
    case_id: str = "case", *, trial: int = 1, response: str = "done", error: TurnError | None = None
) -> Record:
    """A record of one turn."""
    return Record(
        run_id="run",
        suite="suite",
        case_id=case_id,
        case={"id": case_id},
        engine=EngineInfo(profile="scripted", adapter="scripted"),
        trial=trial,
        started_at="2026-01-01T00:00:00.000Z",
        duration_ms=1,
        turns=[
            TurnRecord(
                turn_number=1,
                status="error" if error else "completed",
                content="go on",
                response=response,
                error=error,
            )
        ],
    )


def a_checkpoint(**update: object) -> Checkpoint:
    """After the turn of :func:`a_record`."""
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
        held_seconds=1.0,
    )
    return made.model_copy(update=update)


def a_grade(case_id: str = "case", *, reason: str = "all checks passed") -> Grade:
    """A passing grade."""
    return Grade(
        suite="suite",
        case_id=case_id,
        engine="scripted",
        variant="with_skill",
        trial=1,
        status="PASS",
        score=1.0,
        reason=reason,
        execution_mode="multi_turn",
        session_id=None,
        duration_ms=1,
    )


def a_result(*, finished: bool = True) -> RunResult:
    """The result of a run of one case."""
    return RunResult(
        run_id="run",
        started_at="2026-01-01T00:00:00.000Z",
        finished=finished,
        summary=Summary(
            **{"pass": 1},
            total=1,
            fail=0,
            error=0,
            skip=0,
            pass_rate=1.0,
            duration_ms=1,
            cost_usd=None,
            usage={},
        ),
        cases=[a_grade()],
    )
