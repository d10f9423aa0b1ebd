"""Where in the page's conversation the evidence of a check stands, from the spans it recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.checks.context import one_line
from skillup.schema.grade import CheckResult, EvidenceSpan
from skillup.schema.record import TurnRecord

_OF_FILES = {"files_exist", "files_not_exist", "file_contains", "golden_file"}
_JUDGED = {"rubric", "criterion", "aspect", "window"}
_AROUND = 60
"""Characters on either side of a judge's quotation in its excerpt."""


@dataclass(frozen=True, slots=True)
class EvidenceStep:
    """A turn or a follow-up."""

    record: TurnRecord
    data: dict[str, Any]
    """As the page has it: its texts may be shortened."""
    places: Sequence[int]
    """For each item of the transcript, its place among the page's items."""


def evidence_of(check: CheckResult, steps: Sequence[EvidenceStep]) -> dict[str, Any] | None:
    """``{turn, follow_up, in, item, part, argument, start, end}``; None: nothing to show.

    Of several pieces also ``more``, a list of the same. Places count UTF-16 code units.
    """
    if not check.assertable:
        return None
    found = [place for span in check.spans if (place := _of_span(span, steps)) is not None]
    if not found and (not check.spans or check.kind in _OF_FILES):
        found = list(_without_spans(check, steps))[:1]
    if not found:
        return None
    more = [place for n, place in enumerate(found) if place not in found[:n]][1:]
    return {**found[0], "more": more} if more else found[0]


def utf16(text: str, place: int) -> int:
    """The character offset `place` in UTF-16 code units, as JavaScript counts."""
    head = text[:place]
    return len(head) if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2


def _of_span(span: EvidenceSpan, steps: Sequence[EvidenceStep]) -> dict[str, Any] | None:
    if span.part == "file":
        return _of_file(span, steps)
    step = next((s for s in steps if _number(s) == (span.turn, span.follow_up)), None)
    if step is None:
        return None
    if span.part == "response":
        return _piece(step, step.record.response, step.data["response"], (span.start, span.end))
    if span.item is None or span.item >= len(step.places):
        return None
    place, recorded = step.places[span.item], step.record.transcript[span.item]
    shown = step.data["items"][place]
    where: dict[str, Any] = {"in": "item", "item": place}
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
    within = (span.start, span.end) if named == span.argument and span.end else (0, len(text))
    where |= {"part": "arguments", "argument": named}
    return _piece(step, text, shown["arguments"][named], within, **where)


def _of_file(span: EvidenceSpan, steps: Sequence[EvidenceStep]) -> dict[str, Any] | None:
    """The newest step up to the span's that changed the file."""
    for step in reversed(steps):
        changes = step.data["changes"]
        if step.record.turn_number > span.turn or changes is None:
            continue
        if span.path in (*changes["added"], *changes["modified"], *changes["deleted"]):
            return _place(step, path=span.path)
    return None


def _without_spans(check: CheckResult, steps: Sequence[EvidenceStep]) -> Iterator[dict[str, Any]]:
    """What changed in place of a file that stayed as it was; what a judge quotes."""
    number = check.scope.removeprefix("turn ")
    asked = [s for s in steps if str(s.record.turn_number) == number] or steps
    if check.kind in _OF_FILES:
        changed = [step for step in asked if step.data["changes"] is not None]
        if changed and not check.passed:
            yield _place(changed[-1], path=None)
    elif check.kind in _JUDGED:
        excerpt = check.excerpt.partition(": ")[2]
        piece = excerpt.removeprefix("…").removesuffix("…")
        others = [step for step in steps if step not in asked]
        for step in (*reversed(asked), *others):
            for text, where in _texts(step):
                at = one_line(text).find(piece) if piece.strip() and "\r" not in text else -1
                if at >= 0:
                    start = at + (_AROUND if piece != excerpt and excerpt[0] == "…" else 0)
                    end = at + len(piece) - (_AROUND if excerpt[-1] == "…" else 0)
                    within = (start, end) if start < end else (at, at + len(piece))
                    yield _piece(step, text, text, within, **where) or {}


def _texts(step: EvidenceStep) -> Iterator[tuple[str, dict[str, Any]]]:
    yield step.data["response"], {}
    for place, item in enumerate(step.data["items"]):
        where = {"in": "item", "item": place}
        if item["type"] != "tool":
            yield item["text"], {**where, "part": "text"}
            continue
        if item["result"] is not None:
            yield item["result"]["content"], {**where, "part": "result"}
        for name, value in item["arguments"].items():
            if isinstance(value, str):
                yield value, {**where, "part": "arguments", "argument": name}


def _number(step: EvidenceStep) -> tuple[int, int | None]:
    return step.record.turn_number, step.data["follow_up"]


def _piece(
    step: EvidenceStep, recorded: str, shown: str, span: tuple[int, int], **where: Any
) -> dict[str, Any] | None:
    """`span` of the recorded text in the shown one; None: it was left out there."""
    start, end = span
    if recorded[:end] != shown[:end]:
        shift = len(shown) - len(recorded)
        start, end = start + shift, end + shift
        if start < 0 or shown[start:end] != recorded[slice(*span)]:
            return None
    return {**_place(step, **where), "start": utf16(shown, start), "end": utf16(shown, end)}


def _place(step: EvidenceStep, **where: Any) -> dict[str, Any]:
    return {
        "turn": step.record.turn_number,
        "follow_up": step.data["follow_up"],
        "in": "changes" if "path" in where else "response",
        "item": None,
        "part": None,
        "argument": None,
        **where,
        "start": 0,
        "end": 0,
    }
