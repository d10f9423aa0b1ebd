"""Where in the page's conversation something stands: the evidence of checks, and captured values.

Places count UTF-16 code units, as JavaScript does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.checks.context import original_span, plain
from skillup.schema import templates
from skillup.schema.grade import CheckResult, EvidenceSpan
from skillup.schema.record import TurnRecord

_OF_FILES = {"files_exist", "files_not_exist", "file_contains", "golden_file"}
_CHANGES = {"in": "changes"}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EvidenceStep:
    record: TurnRecord
    data: Json  # As the page has it: its texts may be shortened
    places: Sequence[int]  # For each item of the transcript, its place among the page's items


def evidence_of(check: CheckResult, steps: Sequence[EvidenceStep]) -> Json | None:
    """``{turn, follow_up, in, item, part, argument, start, end}``; None: nothing to show.

    Of several pieces also ``more``, a list of the same.
    """
    if not check.assertable:
        return None
    found = [place for span in check.spans if (place := _of_span(span, steps)) is not None]
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
        for step in reversed(steps):
            changes = step.data["changes"]
            if step.record.turn_number > span.turn or changes is None:
                continue
            if span.path in (*changes["added"], *changes["modified"], *changes["deleted"]):
                return _place(step, **_CHANGES)
        return None
    numbers = (span.turn, span.follow_up)
    of_turn = (s for s in steps if (s.record.turn_number, s.data["follow_up"]) == numbers)
    step_or_none = next(of_turn, None)
    if step_or_none is None:
        return None
    step, within = step_or_none, (span.start, span.end)
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


def captures_of(
    turn: TurnRecord, turns: Sequence[Json], answer: str, follow_up: int | None
) -> list[Json]:
    """The turn's captures: ``{variable, value, used_in, where}``.

    `turns`: all of the page's turns; `answer`: the text the captures were taken from, as the page
    has it, which is that of `follow_up` if that is given.
    """
    found = []
    for name, value in turn.captures.items():
        span = _only_span(value, answer)
        where = None
        if span is not None:
            start, end = (utf16(answer, place) for place in original_span(answer, span))
            where = {"start": start, "end": end, "follow_up": follow_up}
        used = []  # the turns after it that it went into, up to one that took it anew
        for later in (one for one in turns if one["turn_number"] > turn.turn_number):
            steps = [later, *later["follow_ups"]]
            if any(part["variable"] == name for step in steps for part in step["content_parts"]):
                used.append(later["turn_number"])
            if any(taken["variable"] == name for taken in later["captures"]):
                break
        found.append({"variable": name, "value": value, "used_in": used, "where": where})
    return found


def _only_span(value: str, answer: str) -> tuple[int, int] | None:
    """In the plain form of the answer; None: a value that stands there twice may be either."""
    text, piece = plain(answer), plain(value)
    at = text.find(piece)
    return (at, at + len(piece)) if piece and text.count(piece) == 1 else None
