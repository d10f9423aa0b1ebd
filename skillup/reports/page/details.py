"""One trial for the page: its conversation as it happened, and what was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from skillup.reports.page.advice import error_data
from skillup.reports.page.attempts import earlier_attempts
from skillup.reports.page.captures_used import captures_of, prompt_of
from skillup.reports.page.check_data import Asked
from skillup.reports.page.images import Read, add_images
from skillup.reports.page.items import history_of
from skillup.reports.page.limits import Limits
from skillup.reports.page.raw_files import RawFiles, TurnLinks
from skillup.reports.page.turns import step_data
from skillup.schema.case import Case
from skillup.schema.conversation import Turn
from skillup.schema.grade import Grade, TurnGrade
from skillup.schema.record import Record, TurnRecord

_OF_GRADE = {
    "status", "score", "reason", "warnings", "execution_mode", "usage", "cost_usd", "duration_ms",
    "judging", "simulator",
}  # fmt: skip


def detail_of(
    n: int,
    job: str,
    record: Record,
    grade: Grade | None,
    *,
    limits: Limits,
    raw: RawFiles,
    family: Mapping[str, Any] | None = None,
    read: Read = lambda _: None,
) -> dict[str, Any]:
    """The trial `job`, called `n`, in the form of `docs/reports.md`; without a grade, no checks.

    `read`: for pictures among the files of its workspace.
    """
    case = _case(record)
    turns = _turns(job, record, case, limits, raw)
    add_images(turns, record.turns, read, limits)
    asked = Asked(turns)
    graded = {turn.turn_number: turn for turn in grade.turns} if grade is not None else {}
    for turn in turns:
        _add_grade(turn, graded.get(turn["turn_number"]), asked)
    end = record.simulated_end
    return {
        "n": n,
        "job": job,
        "grade": grade.model_dump(mode="json", include=_OF_GRADE) if grade is not None else None,
        "title": record.case.get("title"),
        "case_id": record.case_id,
        "suite": record.suite,
        "engine": record.engine.model_dump(mode="json"),
        "variant": record.variant,
        "trial": record.trial,
        "attempt": record.attempt,
        "attempts": earlier_attempts(
            raw,
            job,
            record.attempt,
            lambda earlier, streams: _turns(job, earlier, _case(earlier), limits, streams),
        ),
        "session_id": record.session_id,
        "started_at": record.started_at,
        "system": case.input.system if case is not None else None,
        "history": history_of(record.history, limits),
        "turns": turns,
        "conversation_checks": asked.data(grade.assertions) if grade is not None else [],
        "variables": record.variables,
        "notes": record.notes,
        "skills": [skill.model_dump(mode="json") for skill in record.skills],
        "error": _error(record, grade),
        "skipped": record.skipped,
        "simulated_end": {"stop": end.stop, "reason": end.reason} if end is not None else None,
        "family": family,
        "raw": raw.of_trial(job),
    }


def damaged_detail(n: int, job: str, problem: str) -> dict[str, Any]:
    """In place of a trial whose record cannot be read."""
    return {"n": n, "job": job, "problem": problem}


def _case(record: Record) -> Case | None:
    """The case as it was run; None if it is one of another version's."""
    try:
        return Case.model_validate(record.case)
    except ValidationError:
        return None


def _error(record: Record, grade: Grade | None) -> dict[str, Any] | None:
    """Of the whole trial; what went wrong in a turn is said there."""
    if record.error is not None:
        return error_data(record.error)
    in_turns = any(step.error for turn in record.turns for step in turn.executed())
    return error_data(grade.error) if grade is not None and not in_turns else None


def _turns(
    job: str, record: Record, case: Case | None, limits: Limits, raw: TurnLinks
) -> list[dict[str, Any]]:
    wanted = case.input.all_turns() if case is not None else []
    wanted_of = dict(enumerate(wanted, start=1))
    turns = [
        _turn(job, turn, wanted_of.get(turn.turn_number), record, limits, raw)
        for turn in record.turns
    ]
    # Once all are there: where a value went is seen in the turns after.
    for held, turn in zip(reversed(record.turns), reversed(turns), strict=True):
        answer: Mapping[str, Any] = turn["follow_ups"][-1] if turn["follow_ups"] else turn
        turn["captures"] = captures_of(
            held, wanted_of.get(held.turn_number), turns, answer["response"], answer["follow_up"]
        )
    return turns


def _turn(
    job: str,
    turn: TurnRecord,
    wanted: Turn | None,
    record: Record,
    limits: Limits,
    raw: TurnLinks,
) -> dict[str, Any]:
    number = turn.turn_number
    template = wanted.content if wanted is not None and turn.source == "case" else None
    data = step_data(
        turn,
        template=template,
        values=record.variables_after(number - 1),
        limits=limits,
        raw=raw.of_turn(job, number),
    )
    checks = wanted.checks() if wanted is not None else []
    steps: Sequence[TurnRecord] = list(turn.executed())[1:]
    data["follow_ups"] = [
        step_data(
            step,
            template=prompt_of(checks, step.asked_by),
            values=record.variables_after(number),
            limits=limits,
            raw=raw.of_turn(job, number, place + 1),
            follow_up=place,
        )
        for place, step in enumerate(steps)
    ]
    return data


def _add_grade(turn: dict[str, Any], grade: TurnGrade | None, asked: Asked) -> None:
    turn["passed_on"] = None
    if grade is None:
        return
    turn["score"] = grade.score
    turn["passed_on"] = grade.passed_on
    turn["post_condition_passed"] = grade.post_condition_passed
    turn["checks"] = asked.data(grade.checks, turn)
    for step, level in zip(turn["follow_ups"], grade.follow_ups, strict=False):
        step["label"] = level.label
        step["passed"] = level.passed
        step["score"] = level.score
        step["checks"] = asked.data(level.checks, step)
