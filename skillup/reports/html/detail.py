"""One trial for the page: its conversation as it happened, and what was made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from skillup.reports.html.advice import error_data
from skillup.reports.html.captures import captures_of, content_parts, prompt_of
from skillup.reports.html.evidence import Step, evidence_of
from skillup.reports.html.images import Read, add_images
from skillup.reports.html.limits import PageLimits, shortened, shortened_data
from skillup.reports.html.raw_files import Link, RawFiles, TurnLinks
from skillup.reports.html.rows import Row, earlier_attempts
from skillup.schema.case import Case
from skillup.schema.conversation import Turn
from skillup.schema.grade import CheckResult, Grade, TurnGrade
from skillup.schema.record import (
    Checkpoint,
    HistoryItem,
    Record,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnRecord,
    WorkspaceChanges,
)

# What was said and done within a turn, for the page: a tool's call and its result are one item.

_Waiting = dict[str, deque[dict[str, Any]]]
"""Calls without a result so far, by id; a turn may have ten thousand of them."""


def items_of(transcript: Iterable[TranscriptItem], limits: PageLimits) -> list[dict[str, Any]]:
    """The items in order; a result stands at the place of its call, or by itself if there is none.

    Results are matched by the call's id; of several calls with one id, the first that is open.
    """
    found: list[dict[str, Any]] = []
    waiting: _Waiting = {}
    for item in transcript:
        if item.tool_call is not None:
            found.append(_called(item.tool_call, limits, item.agent, waiting))
        elif item.tool_result is not None:
            if not _fill(waiting, item.tool_result, limits):
                found.append(_lonely(item.tool_result, limits, item.agent))
        else:
            text = shortened(item.text or "", limits.text)
            found.append({"type": item.type, "text": text, "agent": item.agent})
    return found


def history_of(history: Sequence[HistoryItem], limits: PageLimits) -> list[dict[str, Any]]:
    """What was put before turn 1: ``[{role, content, items}]``, results with their calls."""
    found: list[dict[str, Any]] = []
    waiting: _Waiting = {}
    for message in history:
        if message.role == "tool" and message.tool_result is not None:
            if not _fill(waiting, message.tool_result, limits):
                item = _lonely(message.tool_result, limits, None)
                found.append({"role": "tool", "content": "", "items": [item]})
            continue
        items = [_called(call, limits, None, waiting) for call in message.tool_calls]
        content = shortened(message.content, limits.text)
        found.append({"role": message.role, "content": content, "items": items})
    return found


def _tool(call: ToolCall, limits: PageLimits, agent: str | None) -> dict[str, Any]:
    return {
        "type": "tool",
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": shortened_data(call.arguments, limits.tool),
        "result": None,
        "agent": agent,
    }


def _called(
    call: ToolCall, limits: PageLimits, agent: str | None, waiting: _Waiting
) -> dict[str, Any]:
    item = _tool(call, limits, agent)
    waiting.setdefault(call.id, deque()).append(item)
    return item


def _fill(waiting: _Waiting, result: ToolResult, limits: PageLimits) -> bool:
    """Put `result` where its call is; whether there is one that waits for it."""
    calls = waiting.get(result.call_id)
    if not calls:
        return False
    calls.popleft()["result"] = _result(result, limits)
    return True


def _lonely(result: ToolResult, limits: PageLimits, agent: str | None) -> dict[str, Any]:
    call = ToolCall(id=result.call_id, name="", kind="other")
    return {**_tool(call, limits, agent), "result": _result(result, limits)}


def _result(result: ToolResult, limits: PageLimits) -> dict[str, Any]:
    return {"status": result.status, "content": shortened(result.content, limits.tool)}


# A turn of a conversation for the page: the message, the answer, and all that was done.


def step_data(
    turn: TurnRecord,
    *,
    template: str | None,
    values: Mapping[str, str],
    limits: PageLimits,
    raw: list[Link],
    follow_up: int | None = None,
) -> dict[str, Any]:
    """What a turn and a follow-up (its place among the turn's, from 0) have in common.

    `template` and `values`: what the message was made of. Checks, captures and follow-ups are
    still empty.
    """
    content = shortened(turn.content, limits.text)
    return {
        "turn_number": turn.turn_number,
        "follow_up": follow_up,
        "status": turn.status,
        "reason": turn.reason,
        "source": turn.source,
        "content": content,
        "content_parts": content_parts(template, content, values),
        "response": shortened(turn.response, limits.text),
        "model": turn.model,
        "started_at": turn.started_at,
        "duration_ms": turn.duration_ms,
        "cost_usd": turn.cost_usd,
        "usage": turn.usage.model_dump() if turn.usage else None,
        "session_id": turn.session_id,
        "session_verified": turn.session_verified,
        "held_by": turn.held_by,
        "items": items_of(turn.transcript, limits),
        "captures": [],
        "changes": _changes(turn.changes, limits),
        "checks": [],
        "post_condition_passed": turn.post_condition_passed,
        "error": error_data(turn.error),
        "notes": list(turn.notes),
        "follow_ups": [],
        "raw": raw,
        "score": None,
        "asked_by": list(turn.asked_by),
        "simulator": turn.simulator.model_dump() if turn.simulator else None,
    }


def _changes(changes: WorkspaceChanges | None, limits: PageLimits) -> dict[str, Any] | None:
    if changes is None or not (changes.added or changes.modified or changes.deleted):
        return None
    return {
        "added": changes.added,
        "modified": changes.modified,
        "deleted": changes.deleted,
        "diff": shortened(changes.diff, limits.text),
    }


# Results of checks for the page, with the place of their evidence.


class CheckData:
    """Which answers checks were asked of, in a conversation as the page has it."""

    def __init__(self, turns: Sequence[Step]) -> None:
        self._turns = turns
        self.steps = [step for turn in turns for step in (turn, *turn["follow_ups"])]

    def data(
        self, checks: Sequence[CheckResult], about: Step | None = None
    ) -> list[dict[str, Any]]:
        """`checks` of the step `about`, or of the conversation."""
        return [self._data(check, about) for check in checks]

    def _data(self, check: CheckResult, about: Step | None) -> dict[str, Any]:
        told = check.model_dump(mode="json", exclude={"children"})
        told["children"] = self.data(check.children, about)
        told["evidence"] = evidence_of(check, self._asked(check, about), self.steps)
        return told

    def _asked(self, check: CheckResult, about: Step | None) -> list[Step]:
        """The step itself; for another turn's check that turn's steps, the last first."""
        number = check.scope.removeprefix("turn ")
        if about is not None and number == str(about["turn_number"]):
            return [about]
        of = [s for s in self.steps if number == str(s["turn_number"])] or self.steps
        return of[::-1]


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
    limits: PageLimits,
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
    asked = CheckData(turns)
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
    job: str, record: Record, case: Case | None, limits: PageLimits, raw: TurnLinks
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
    limits: PageLimits,
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


def _add_grade(turn: dict[str, Any], grade: TurnGrade | None, asked: CheckData) -> None:
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


# A trial that has no record yet, for the page: what is known of it so far.


def waiting_detail(row: Row, n: int) -> dict[str, Any]:
    """Of a trial that was not begun, or was cut short: ``{n, job, case_id, waiting}``."""
    return {"n": n, "job": row["job"], "case_id": row["case_id"], "waiting": row["reason"]}


def live_detail(
    row: Row,
    n: int,
    checkpoint: Checkpoint | None,
    *,
    at: int | None,
    limits: PageLimits,
    raw: RawFiles,
    read: Read,
) -> dict[str, Any]:
    """Of a trial that is being held, in turn `at` (None: in none).

    The turns that its checkpoint has are there without checks, as they are judged at the end.
    `live` says what is being done, `under_way` has ``{turn_number, status, message, raw}`` of the
    turns that the checkpoint does not have.
    """
    job = row["job"]
    if checkpoint is None:
        known, case = 0, None
        detail = _empty(row, n)
    else:
        known = len(checkpoint.record.turns)
        case = _case_live_detail(checkpoint)
        detail = detail_of(n, job, checkpoint.record, None, limits=limits, raw=raw, read=read)
    messages = [turn.content for turn in case.input.all_turns()] if case is not None else []
    under_way = [
        {
            "turn_number": number,
            "status": "running" if number == at else "completed",
            "message": messages[number - 1] if number <= len(messages) else None,
            "raw": raw.of_turn(job, number),
        }
        for number in range(known + 1, (at or 0) + 1)
    ]
    return {**detail, "live": row["reason"], "under_way": under_way}


def _case_live_detail(checkpoint: Checkpoint) -> Case | None:
    """None if it is one of another version's."""
    try:
        return Case.model_validate(checkpoint.record.case)
    except ValidationError:
        return None


def _empty(row: Row, n: int) -> dict[str, Any]:
    """In the form of a trial, without anything that was said."""
    return {
        **{key: row[key] for key in ("job", "suite", "case_id", "title", "variant", "trial")},
        "n": n,
        "grade": None,
        "engine": {"profile": row["engine"]},
        "attempt": 1,
        "attempts": [],
        "session_id": None,
        "started_at": None,
        "system": None,
        "history": [],
        "turns": [],
        "conversation_checks": [],
        "variables": {},
        "notes": [],
        "skills": [],
        "error": None,
        "skipped": None,
        "simulated_end": None,
        "family": None,
        "raw": [],
    }
