"""Where in the conversation the evidence of a check stands: in an answer, or in a tool's item.

It is found again from the excerpt that the result has, in the texts as the page shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from skillup.checks.evidence import one_line
from skillup.reports.page.excerpts import argument_pieces, piece_in
from skillup.reports.page.more_evidence import OF_FILES, more_places, of_changes
from skillup.reports.page.offsets import Seen, utf16
from skillup.schema.grade import CheckResult

Step = dict[str, Any]
"""A turn or a follow-up as the page has it, with `turn_number` and `follow_up`."""

_OF_TEXTS = {
    *("contains", "not_contains", "matches", "must_contain", "must_contain_all"),
    *("must_contain_any", "must_not_contain", "output_contains", "output_matches"),
    *("turn_response_contains", "turn_response_not_contains", "json"),
}
_OF_TOOLS = {
    *("tool_called", "tool_not_called", "tool_called_in_turn", "tool_not_called_in_turn"),
    *("skill_used", "skill_not_used"),
}
_WITHOUT = {
    *("equals", "glob", "not_glob", "min_tokens", "max_tokens", "exit_code", "max_cost_usd"),
    *("max_duration_seconds", "tool_sequence", "any_of", "all_of", "none_of", "follow_up"),
}
"""What they show is no piece of the conversation, or all of an answer."""
_NOTHING_FOUND = ("found none of", "not found", "nothing at this path", "the answer is not JSON")
_HEAD = 40
"""Characters by which an argument is known again."""
_NO_CALL = ("not called", "not used", "called, but")


def evidence_of(
    check: CheckResult, asked: Sequence[Step], steps: Sequence[Step]
) -> dict[str, Any] | None:
    """``{turn, follow_up, in, item, part, argument, start, end}``; None: nothing to show.

    Where it found more than one piece, also ``more``, a list of the same.

    `asked`: the steps whose answers the check was asked of, the most likely first; `steps`: all
    that were held, for what a judge quotes from elsewhere.
    """
    if not check.assertable:  # it looked at nothing
        return None
    if check.kind in OF_FILES:
        return of_changes(check, asked)
    if not check.excerpt.strip() or check.kind in _WITHOUT:
        return None
    if check.kind in _OF_TOOLS:
        if check.found.startswith(_NO_CALL):
            return None
        return _of_a_call(check, asked)
    if check.found.startswith(_NOTHING_FOUND):
        return None
    if check.kind in _OF_TEXTS:
        first = next(_in_answers(check, asked[:1]), None)
        more = more_places(check, asked[0]["response"], first) if first is not None else []
        return {**first, "more": more} if first is not None and more else first
    near = [step for step in steps if not any(step is one for one in asked)]
    for group in (asked, near):
        for where in (_in_answers, _in_items):
            hit = next(where(check, group), None)
            if hit is not None:
                return hit
    return None


def _place(step: Step, text: str, span: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {
        "turn": step["turn_number"],
        "follow_up": step.get("follow_up"),
        "in": "response",
        "item": None,
        "part": None,
        "argument": None,
        **more,
        "start": utf16(text, span[0]),
        "end": utf16(text, span[1]),
    }


def _in_answers(check: CheckResult, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        text = step["response"]
        span = _find(check, text)
        if span is not None:
            yield _place(step, text, span)


def _in_items(check: CheckResult, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        for index, item in enumerate(step["items"]):
            for part, argument, text in _texts(item):
                span = _find(check, text)
                if span is not None:
                    more = {"in": "item", "item": index, "part": part, "argument": argument}
                    yield _place(step, text, span, **more)


def _find(check: CheckResult, text: str) -> tuple[int, int] | None:
    if not text:
        return None
    if check.kind in _OF_TEXTS:
        return piece_in(Seen(text), check.excerpt, check.found)
    # A judge's quotation begins with who said it.
    for excerpt in (check.excerpt.partition(": ")[2], check.excerpt):
        for seen in (Seen(text), Seen(text, normal=False)):
            span = piece_in(seen, excerpt, check.found)
            if span is not None:
                return span
    return None


def _texts(item: dict[str, Any]) -> Iterator[tuple[str, str | None, str]]:
    """The texts of an item that can be shown with a piece marked."""
    if item["type"] != "tool":
        yield "text", None, item["text"]
        return
    if item["result"] is not None:
        yield "result", None, item["result"]["content"]
    for name, value in item["arguments"].items():
        if isinstance(value, str):
            yield "arguments", name, value


def _of_a_call(check: CheckResult, steps: Sequence[Step]) -> dict[str, Any] | None:
    """The call that the excerpt ``Bash(command: …)`` or ``Bash(command="…")`` shows."""
    told = argument_pieces(check.excerpt)
    if told is None:
        return None
    name, inside = told
    first: dict[str, Any] | None = None
    for step in steps:
        for index, item in enumerate(step["items"]):
            if item["type"] != "tool" or item["name"] != name:
                continue
            more = {"in": "item", "item": index, "part": "arguments"}
            for argument, value in item["arguments"].items():
                span = _shown_in_call(value, argument, inside)
                if span is not None:
                    return _place(step, value, span, **more, argument=argument)
            if first is None and _is_whole(item, inside):
                first = _place(step, "", (0, 0), **more)
    return first


def _shown_in_call(value: Any, argument: str, inside: str) -> tuple[int, int] | None:
    """Where in an argument's text the piece is; None: the excerpt shows none of this argument."""
    if not isinstance(value, str) or not value.strip():
        return None
    seen = Seen(value)
    if f'{argument}="' in inside:  # the whole call is shown: so is the whole argument
        head = one_line(value[:_HEAD])
        return (0, len(value)) if f'{argument}="{head}' in inside else None
    # By the name that the check gives it, which need not be the engine's: `path` is `file_path`.
    _, separator, piece = inside.partition(": ")
    if not separator:
        return None
    for end in _ends(piece):
        span = piece_in(seen, piece[:end], "")
        if span is not None:
            return span
    return None


def _ends(piece: str) -> Iterator[int]:
    """Where the first of several pieces, ``path: …, content: …``, may end."""
    yield len(piece)
    at = piece.rfind(", ")
    while at > 0:
        yield at
        at = piece.rfind(", ", 0, at)


def _is_whole(item: dict[str, Any], inside: str) -> bool:
    """Whether the call is shown by arguments that are no texts, or has none at all."""
    return not inside or any(f"{name}=" in inside for name in item["arguments"])
