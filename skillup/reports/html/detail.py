"""One trial for the page: its conversation as it happened, and what was made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from skillup.reports.advice import error_data
from skillup.reports.html.evidence import (
    EvidenceStep,
    captures_of,
    content_parts,
    evidence_of,
)
from skillup.reports.html.limits import PageLimits, Read, add_images, shortened, shortened_data
from skillup.reports.html.run_files import RawFiles
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import (
    HistoryItem,
    Record,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnRecord,
)

Json = dict[str, Any]
_MAX_ATTEMPTS = 1000  # A larger number stands in a damaged record
_OF_GRADE = {
    "status", "score", "reason", "warnings", "execution_mode", "usage", "cost_usd", "duration_ms",
    "judging", "simulator",
}  # fmt: skip


class _Tools:
    """Calls and results as one item each, matched by id; a turn may have ten thousand of them."""

    def __init__(self, limits: PageLimits) -> None:
        self._limits = limits
        self._open: dict[str, deque[tuple[int, Json]]] = {}

    def call(self, call: ToolCall, place: int, agent: str | None = None) -> Json:
        item = {
            "type": "tool",
            "id": call.id,
            "name": call.name,
            "kind": call.kind,
            "arguments": shortened_data(call.arguments, self._limits.tool),
            "result": None,
            "agent": agent,
        }
        self._open.setdefault(call.id, deque()).append((place, item))
        return item

    def result(
        self, result: ToolResult, place: int, agent: str | None = None
    ) -> tuple[int, Json | None]:
        """Put it with the first open call of its id, at the call's place.

        Else it is an item of its own, at `place`.
        """
        found, item, own = place, None, None
        if self._open.get(result.call_id):
            found, item = self._open[result.call_id].popleft()
        else:
            lonely = ToolCall(id=result.call_id, name="", kind="other")
            item = own = _Tools(self._limits).call(lonely, place, agent)
        content = shortened(result.content, self._limits.tool)
        item["result"] = {"status": result.status, "content": content}
        return found, own


def items_of(
    transcript: Iterable[TranscriptItem], limits: PageLimits
) -> tuple[list[Json], list[int]]:
    """The items in order, a result with its call; and for each of `transcript`, its place there."""
    found: list[Json] = []
    places: list[int] = []
    tools = _Tools(limits)
    for item in transcript:
        place, shown = len(found), None
        if item.tool_result is not None:
            place, shown = tools.result(item.tool_result, place, item.agent)
        elif item.tool_call is not None:
            shown = tools.call(item.tool_call, place, item.agent)
        else:
            text = shortened(item.text or "", limits.text)
            shown = {"type": item.type, "text": text, "agent": item.agent}
        places.append(place)
        found += [shown] if shown is not None else []
    return found, places


def history_of(history: Sequence[HistoryItem], limits: PageLimits) -> list[Json]:
    """What was put before turn 1: ``[{role, content, items}]``, results with their calls."""
    found: list[Json] = []
    tools = _Tools(limits)
    for message in history:
        if message.role == "tool" and message.tool_result is not None:
            _, item = tools.result(message.tool_result, 0)
            found += [{"role": "tool", "content": "", "items": [item]}] if item else []
            continue
        items = [tools.call(call, 0) for call in message.tool_calls]
        content = shortened(message.content, limits.text)
        found.append({"role": message.role, "content": content, "items": items})
    return found


def _step(
    turn: TurnRecord,
    template: str | None,
    values: Mapping[str, str],
    limits: PageLimits,
    raw: list[Json],
    follow_up: int | None = None,
) -> EvidenceStep:
    """A turn or a follow-up (its place among the turn's, from 0), without checks so far."""
    content = shortened(turn.content, limits.text)
    items, places = items_of(turn.transcript, limits)
    changes: Json | None = None
    if turn.changes is not None:
        paths = {name: getattr(turn.changes, name) for name in ("added", "modified", "deleted")}
        if any(paths.values()):
            changes = {**paths, "diff": shortened(turn.changes.diff, limits.text)}
    copied = (
        *("turn_number", "status", "reason", "source", "model", "started_at", "duration_ms"),
        *("cost_usd", "session_id", "session_verified", "counted_by", "post_condition_passed"),
    )
    data = {
        **{name: getattr(turn, name) for name in copied},
        "follow_up": follow_up,
        "content": content,
        "content_parts": content_parts(template, content, values),
        "response": shortened(turn.response, limits.text),
        "usage": turn.usage.model_dump() if turn.usage else None,
        "items": items,
        "captures": [],
        "changes": changes,
        "checks": [],
        "error": error_data(turn.error),
        "notes": list(turn.notes),
        "follow_ups": [],
        "raw": raw,
        "score": None,
        "simulator": turn.simulator.model_dump() if turn.simulator else None,
    }
    return EvidenceStep(turn, data, places)


def _steps(
    job: str, record: Record, limits: PageLimits, raw: RawFiles, attempt: int | None = None
) -> list[list[EvidenceStep]]:
    case = _case(record)
    turns_of_case = dict(enumerate(case.input.all_turns() if case is not None else [], start=1))
    found = []
    for turn in record.turns:
        number = turn.turn_number
        planned = turns_of_case.get(number)
        steps = []
        for place, message in enumerate(turn.executed()):
            first = place == 0
            own = first and planned is not None and turn.source == "case"
            template = planned.content if planned is not None and own else None
            values = record.variables_after(number - 1 if first else number)
            links = raw.of_turn(job, number, place, attempt)
            step = _step(message, template, values, limits, links, None if first else place - 1)
            steps.append(step)
        steps[0].data["follow_ups"] = [step.data for step in steps[1:]]
        found.append(steps)
    turns = [steps[0].data for steps in found]
    # Once all are there, the last first: where a value went is seen in the turns after.
    for turn, steps in zip(reversed(record.turns), reversed(found), strict=True):
        answer = steps[-1].data
        steps[0].data["captures"] = captures_of(
            turn, turns, answer["response"], answer["follow_up"]
        )
    return found


def _case(record: Record) -> Case | None:
    try:
        return Case.model_validate(record.case)
    except ValidationError:
        return None


def _checks(checks: Iterable[CheckResult], steps: Sequence[EvidenceStep]) -> list[Json]:
    # What looked at nothing, as a turn's gate had failed, did not fail by itself.
    gated = any(step.data["post_condition_passed"] is False for step in steps)
    return [
        {
            **check.model_dump(mode="json", exclude={"children", "spans"}),
            "evaluated": check.evaluated and (check.assertable or not gated),
            "children": _checks(check.children, steps),
            "evidence": evidence_of(check, steps),
        }
        for check in checks
    ]


def _add_grade(turns: Sequence[Json], grade: Grade | None, steps: Sequence[EvidenceStep]) -> None:
    graded = {turn.turn_number: turn for turn in grade.turns} if grade is not None else {}
    for turn in turns:
        turn["passed_on"] = None
        own = graded.get(turn["turn_number"])
        if own is None:
            continue
        turn["score"], turn["passed_on"] = own.score, own.passed_on
        turn["post_condition_passed"] = own.post_condition_passed
        turn["checks"] = _checks(own.checks, steps)
        for step, level in zip(turn["follow_ups"], own.follow_ups, strict=False):
            step["label"], step["passed"], step["score"] = level.label, level.passed, level.score
            step["checks"] = _checks(level.checks, steps)


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
) -> Json:
    """The trial `job`, called `n`, in the form of `docs/reports.md`; without a grade, no checks.

    `read`: for pictures among the files of its workspace.
    """
    case = _case(record)
    by_turn = _steps(job, record, limits, raw)
    turns = [steps[0].data for steps in by_turn]
    steps = [step for turn in by_turn for step in turn]
    add_images(turns, record.turns, read, limits)
    _add_grade(turns, grade, steps)
    error: Any = record.error
    if error is None and grade is not None and not any(step.record.error for step in steps):
        error = grade.error
    end = record.simulated_end
    copied = (
        *("case_id", "suite", "variant", "trial", "attempt", "session_id", "started_at"),
        *("variables", "notes", "skipped"),
    )
    return {
        **{name: getattr(record, name) for name in copied},
        "n": n,
        "job": job,
        "grade": grade.model_dump(mode="json", include=_OF_GRADE) if grade is not None else None,
        "title": record.case.get("title"),
        "engine": record.engine.model_dump(mode="json"),
        "attempts": [
            _attempt(job, number, limits, raw)
            for number in range(1, min(record.attempt, _MAX_ATTEMPTS))
        ],
        "system": case.input.system if case is not None else None,
        "history": history_of(record.history, limits),
        "turns": turns,
        "conversation_checks": _checks(grade.assertions, steps) if grade is not None else [],
        "skills": [skill.model_dump(mode="json") for skill in record.skills],
        "error": error_data(error),
        "simulated_end": {"stop": end.stop, "reason": end.reason} if end is not None else None,
        "family": family,
        "raw": raw.of_trial(job),
    }


def _attempt(job: str, number: int, limits: PageLimits, raw: RawFiles) -> Json:
    """An earlier attempt: its error, or what its failed turn says."""
    found: Json = {"attempt": number, "error": None, "reason": "", "turns": []}
    try:
        record = Record.model_validate_json(raw.record_of_attempt(job, number))
    except (OSError, ValidationError):
        return {**found, "reason": "its record cannot be read"}
    failed = (turn.reason for turn in record.turns if turn.status == "failed")
    turns = [steps[0].data for steps in _steps(job, record, limits, raw, number)]
    errors = (step.error for turn in record.turns for step in turn.executed() if step.error)
    error = error_data(record.error or next(errors, None))
    return {**found, "error": error, "reason": next(failed, ""), "turns": turns}


def live_detail(
    row: Mapping[str, Any], n: int, record: Record, *, limits: PageLimits, raw: RawFiles, read: Read
) -> Json:
    """A trial that is running, as far as its checkpoint knows it, without checks."""
    detail = detail_of(n, row["job"], record, None, limits=limits, raw=raw, read=read)
    return {**detail, "live": row["reason"]}
