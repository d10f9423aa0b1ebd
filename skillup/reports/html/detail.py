"""One trial for the page: its conversation as it happened, and what was made of it.

Places in texts count UTF-16 code units, as JavaScript does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from skillup.checks.context import original_span, plain
from skillup.checks.nearest import near_words
from skillup.dataclass import frozen
from skillup.reports.html.run_files import RawFiles, Read, add_images
from skillup.reports.result import error_data
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, EvidenceSpan, Grade
from skillup.schema.record import HistoryItem, Record, ToolCall, TranscriptItem, TurnRecord

Json = dict[str, Any]
# What the page has of a record, a turn and a grade just as they have it.
OF_RECORD = {
    "case_id", "suite", "engine", "variant", "trial", "attempt", "session_id", "started_at",
    "variables", "notes", "skills", "skipped",
}  # fmt: skip
OF_TURN = {
    "turn_number", "status", "reason", "source", "model", "started_at", "duration_ms", "usage",
    "cost_usd", "session_id", "session_verified", "counted_by", "post_condition_passed", "notes",
    "simulator",
}  # fmt: skip
OF_GRADE = {
    "status", "score", "reason", "warnings", "execution_mode", "usage", "cost_usd", "duration_ms",
    "judging", "simulator",
}  # fmt: skip


@frozen
class PageLimits:
    """Characters of texts, which are shortened in the middle; bytes of pictures."""

    tool: int  # A tool's result, and each of its arguments
    text: int  # A message, an answer, a diff
    image: int = 0  # Bytes of a picture; a larger one is only named
    images: int = 0  # Bytes of all pictures of a conversation


ORDINARY = PageLimits(tool=20_000, text=100_000, image=400_000, images=1_000_000)
WIDE = PageLimits(tool=400_000, text=1_000_000, image=5_000_000, images=20_000_000)
"""For a page that asks for one conversation at a time."""
TIGHTER = (
    PageLimits(ORDINARY.tool, ORDINARY.text),  # pictures go before a word does
    *(PageLimits(tool, 6 * tool) for tool in (8_000, 3_000, 1_200, 500, 150)),
)
"""For a file that would be too large otherwise, one after the other."""


def shortened(text: str, limit: int) -> str:
    """`text`; of a longer one its beginning and its end, with a note of what is left out."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    note = f"\n… {len(text) - limit} characters left out; whole in the raw stream …\n"
    return text[:head] + note + text[-tail:]


def _shortened_data(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return shortened(value, limit)
    if isinstance(value, dict):
        return {str(key): _shortened_data(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened_data(item, limit) for item in value]
    return value


# What was said and done.

Waiting = dict[str, deque[tuple[int, Json]]]


def items_of(
    transcript: Iterable[TranscriptItem], limits: PageLimits, waiting: Waiting | None = None
) -> tuple[list[Json], list[int]]:
    """The items in order, a result with its call; and for each of `transcript`, its place there.

    `waiting`: calls without a result, by id, the first of which gets it. There may be thousands.
    """
    found: list[Json] = []
    places: list[int] = []
    waiting = {} if waiting is None else waiting
    for item in transcript:
        call, result = item.tool_call, item.tool_result
        if result is not None and waiting.get(result.call_id):
            place, shown = waiting[result.call_id].popleft()
        else:
            place = len(found)
            if result is not None:  # nobody asked for it
                call = ToolCall(id=result.call_id, name="", kind="other")
            if call is None:
                shown = {"type": item.type, "text": shortened(item.text or "", limits.text)}
                if item.question is not None:
                    shown["outcome"] = shortened(str(item.question), limits.text)
            else:
                arguments = _shortened_data(call.arguments, limits.tool)
                shown = {"type": "tool", "id": call.id, "name": call.name, "kind": call.kind}
                shown |= {"arguments": arguments, "result": None}
                if result is None:
                    waiting.setdefault(call.id, deque()).append((place, shown))
            shown["agent"] = item.agent
            found.append(shown)
        if result is not None:
            content = shortened(result.content, limits.tool)
            shown["result"] = {"status": result.status, "content": content}
        places.append(place)
    return found, places


def history_of(history: Sequence[HistoryItem], limits: PageLimits) -> list[Json]:
    """``[{role, content, items}]``, results with their calls."""
    found: list[Json] = []
    waiting: Waiting = {}
    for message in history:
        result = message.tool_result if message.role == "tool" else None
        done = [TranscriptItem(type="tool_call", tool_call=call) for call in message.tool_calls]
        if result is not None:
            done = [TranscriptItem(type="tool_result", tool_result=result)]
        items, _ = items_of(done, limits, waiting)
        content = "" if result is not None else shortened(message.content, limits.text)
        if items or result is None:
            found.append({"role": message.role, "content": content, "items": items})
    return found


@frozen
class EvidenceStep:
    """A turn or a follow-up."""

    record: TurnRecord
    data: Json  # As the page has it: its texts may be shortened
    places: Sequence[int]  # For each item of the transcript, its place among the page's items


def _steps(
    job: str, record: Record, case: Case | None, limits: PageLimits, raw: RawFiles, attempt: int = 0
) -> list[list[EvidenceStep]]:
    """Of each turn itself and its follow-ups, without checks so far."""
    planned = case.input.all_turns() if case is not None else []
    found = []
    for turn in record.turns:
        number = turn.turn_number
        steps = []
        for place, message in enumerate(turn.executed()):
            template = None
            if place == 0 and turn.source == "case" and 0 < number <= len(planned):
                template = planned[number - 1].content
            values = record.variables_after(number if place else number - 1)
            content = shortened(message.content, limits.text)
            items, places = items_of(message.transcript, limits)
            changes: Json | None = None
            if message.changes is not None:
                paths = message.changes.model_dump(include={"added", "modified", "deleted"})
                if any(paths.values()):
                    diff = shortened(message.changes.diff, limits.text)
                    changes = {**paths, "diff": diff, "images": []}
            data = {
                **message.model_dump(include=OF_TURN),
                "follow_up": place - 1 if place else None,  # its place among the turn's
                "content": content,
                "content_parts": content_parts(template, content, values),
                "response": shortened(message.response, limits.text),
                "items": items,
                "captures": [],
                "changes": changes,
                "checks": [],
                "error": error_data(message.error),
                "follow_ups": [],
                "raw": raw.of_turn(job, number, place, attempt),
                "score": None,
            }
            steps.append(EvidenceStep(message, data, places))
        steps[0].data["follow_ups"] = [step.data for step in steps[1:]]
        found.append(steps)
    turns = [steps[0].data for steps in found]
    # Once all are there, the last first: where a value went is seen in the turns after.
    for turn, steps in zip(reversed(record.turns), reversed(found), strict=True):
        steps[0].data["captures"] = _captures(turn, turns, steps[-1].data)
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
            "differs": near_words(check.nearest) if check.nearest is not None else "",
            "evidence": evidence_of(check, steps),
        }
        for check in checks
    ]


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
    by_turn = _steps(job, record, case, limits, raw)
    turns = [steps[0].data for steps in by_turn]
    steps = [step for turn in by_turn for step in turn]
    add_images(((step.data, step.record) for step in steps), read, limits.image, limits.images)
    graded = {turn.turn_number: turn for turn in grade.turns} if grade is not None else {}
    for turn in turns:
        own = graded.get(turn["turn_number"])
        turn["passed_on"] = own and own.passed_on
        if own is None:
            continue
        turn |= {"score": own.score, "post_condition_passed": own.post_condition_passed}
        turn["checks"] = _checks(own.checks, steps)
        for step, level in zip(turn["follow_ups"], own.follow_ups, strict=False):
            step |= level.model_dump(include={"label", "passed", "score"})
            step["checks"] = _checks(level.checks, steps)
    error: Any = record.error
    if error is None and grade is not None and not any(step.record.error for step in steps):
        error = grade.error
    end = record.simulated_end
    return {
        **record.model_dump(include=OF_RECORD),
        "n": n,
        "job": job,
        "grade": grade.model_dump(mode="json", include=OF_GRADE) if grade is not None else None,
        "title": record.case.get("title"),
        "attempts": [
            _attempt(job, place, earlier, limits, raw)
            for number, (place, earlier) in sorted(raw.attempts(job).items())
            if number < record.attempt
        ],
        "system": case.input.system if case is not None else None,
        "history": history_of(record.history, limits),
        "turns": turns,
        "conversation_checks": _checks(grade.assertions, steps) if grade is not None else [],
        "error": error_data(error),
        "simulated_end": {"stop": end.stop, "reason": end.reason} if end is not None else None,
        "family": family,
        "raw": raw.of_trial(job),
    }


def _attempt(job: str, place: int, record: Record, limits: PageLimits, raw: RawFiles) -> Json:
    """An earlier attempt: its error, or what its failed turn says."""
    failed = (turn.reason for turn in record.turns if turn.status == "failed")
    of_turns = _steps(job, record, _case(record), limits, raw, place)
    return {
        "attempt": record.attempt,
        "error": error_data(record.first_error()),
        "reason": next(failed, ""),
        "turns": [steps[0].data for steps in of_turns],
    }


# Where in the page's conversation something stands: the evidence of checks, and captured values.

_OF_FILES = {"files_exist", "files_not_exist", "file_contains", "golden_file"}
_CHANGES = {"in": "changes"}


def evidence_of(check: CheckResult, steps: Sequence[EvidenceStep]) -> Json | None:
    """``{turn, follow_up, in, item, part, argument, start, end}``; None: nothing to show.

    Of several pieces also ``more``, a list of the same.
    """
    if not check.assertable:
        return None
    spans = check.spans or (check.nearest.spans if check.nearest is not None else [])
    found = [place for span in spans if (place := _of_span(span, steps)) is not None]
    if not found and check.kind in _OF_FILES and not check.passed:
        # It stayed as it was: what changed in place of it.
        number = check.scope.removeprefix("turn ")
        asked = [s for s in steps if str(s.record.turn_number) == number] or steps
        changed = [step for step in asked if step.data["changes"] is not None]
        found = [_place(step, **_CHANGES) for step in changed[-1:]]
    if not found:
        return None
    more = [place for n, place in enumerate(found) if place not in found[:n]][1:]
    return {**found[0], "more": more} if more else found[0]


def utf16(text: str, place: int) -> int:
    head = text[:place]
    return len(head) if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2


def _of_span(span: EvidenceSpan, steps: Sequence[EvidenceStep]) -> Json | None:
    if span.part == "file":  # the newest step up to the span's that changed it
        for earlier in reversed(steps):
            changes = earlier.data["changes"]
            if earlier.record.turn_number > span.turn or changes is None:
                continue
            if span.path in (*changes["added"], *changes["modified"], *changes["deleted"]):
                return _place(earlier, **_CHANGES)
        return None
    numbers = (span.turn, span.follow_up)
    of_turn = (s for s in steps if (s.record.turn_number, s.data["follow_up"]) == numbers)
    if (step := next(of_turn, None)) is None:
        return None
    within = (span.start, span.end)
    if span.part == "response":
        return _piece(step, step.record.response, step.data["response"], within)
    if span.item is None or span.item >= len(step.places):
        return None
    place, recorded = step.places[span.item], step.record.transcript[span.item]
    shown = step.data["items"][place]
    where: Json = {"in": "item", "item": place}
    if span.part == "result" and recorded.tool_result is not None and shown["result"] is not None:
        text = recorded.tool_result.content
        within = (span.start, span.end or len(text))
        return _piece(step, text, shown["result"]["content"], within, **where, part="result")
    if recorded.tool_call is None:
        return None
    arguments = recorded.tool_call.arguments
    texts = [name for name, value in arguments.items() if isinstance(value, str) and value]
    named = span.argument if span.argument in texts else next(iter(texts), None)
    if named is None:
        return _piece(step, "", "", (0, 0), **where, part="arguments")
    text = arguments[named]
    if named != span.argument or not span.end:
        within = (0, len(text))
    where |= {"part": "arguments", "argument": named}
    return _piece(step, text, shown["arguments"][named], within, **where)


def _piece(
    step: EvidenceStep, recorded: str, shown: str, span: tuple[int, int], **where: Any
) -> Json | None:
    """`span` of the recorded text in the shown one; None: it was left out there."""
    start, end = span
    if recorded[:end] != shown[:end]:
        shift = len(shown) - len(recorded)
        start, end = start + shift, end + shift
        if start < 0 or shown[start:end] != recorded[slice(*span)]:
            return None
    return {**_place(step, **where), "start": utf16(shown, start), "end": utf16(shown, end)}


def _place(step: EvidenceStep, **where: Any) -> Json:
    return {
        "turn": step.record.turn_number,
        "follow_up": step.data["follow_up"],
        "in": "response",
        "item": None,
        "part": None,
        "argument": None,
        **where,
        "start": 0,
        "end": 0,
    }


# Variables: out of which words of an answer each was taken, and which messages it went into.


def content_parts(template: str | None, content: str, values: Mapping[str, str]) -> list[Json]:
    """`content` in pieces, ``{text, variable}``; one piece if it is not what `template` gives."""
    parts: list[Json] = []
    for text, name in templates.pieces(template, values) if template is not None else ():
        if name is None and parts and parts[-1]["variable"] is None:
            parts[-1]["text"] += text
        elif text or name is not None:
            parts.append({"text": text, "variable": name})
    same = parts and "".join(part["text"] for part in parts) == content
    return parts if same else [{"text": content, "variable": None}]


def _captures(turn: TurnRecord, turns: Sequence[Json], answer: Json) -> list[Json]:
    """The turn's captures: ``{variable, value, used_in, where}``.

    `turns`: all of the page's turns; `answer`: the turn or follow-up that they were taken from.
    """
    found, text = [], answer["response"]
    shown = plain(text)
    for name, value in turn.captures.items():
        piece, where = plain(value), None
        at = shown.find(piece)
        if piece and shown.count(piece) == 1:  # one that stands there twice may be either
            span = original_span(text, (at, at + len(piece)))
            start, end = (utf16(text, place) for place in span)
            where = {"start": start, "end": end, "follow_up": answer["follow_up"]}
        used = []  # the turns after it that it went into, up to one that took it anew
        for later in (one for one in turns if one["turn_number"] > turn.turn_number):
            steps = [later, *later["follow_ups"]]
            if any(part["variable"] == name for step in steps for part in step["content_parts"]):
                used.append(later["turn_number"])
            if any(taken["variable"] == name for taken in later["captures"]):
                break
        found.append({"variable": name, "value": value, "used_in": used, "where": where})
    return found
