"""Variables: out of which words of an answer each was taken, and which messages it went into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.checks.context import CannotEvaluateError, original_span, plain
from skillup.checks.text import Searcher
from skillup.reports.html.evidence import utf16
from skillup.schema import templates
from skillup.schema.case import Capture, Turn
from skillup.schema.checks import Check
from skillup.schema.patterns import kept_group
from skillup.schema.record import TurnRecord

Part = dict[str, Any]


def content_parts(template: str | None, content: str, values: Mapping[str, str]) -> list[Part]:
    """`content` in pieces, ``{text, variable}``: what came out of a variable, and what did not.

    One piece if it is not what `template` gives with these values, for whatever reason.
    """
    parts: list[Part] = []
    for text, name in templates.pieces(template, values) if template is not None else ():
        if name is None and parts and parts[-1]["variable"] is None:
            parts[-1]["text"] += text
        elif text or name is not None:
            parts.append({"text": text, "variable": name})
    same = parts and "".join(part["text"] for part in parts) == content
    return parts if same else [{"text": content, "variable": None}]


def captures_of(
    turn: TurnRecord, case: Turn | None, turns: Sequence[Part], answer: str, follow_up: int | None
) -> list[dict[str, Any]]:
    """The turn's captures: ``{variable, value, used_in, where}``.

    `turns`: all of the page's turns; `answer`: the text the captures were taken from, as the page
    has it, which is that of `follow_up` if that is given.
    """
    rules = {rule.variable: rule for rule in case.capture} if case is not None else {}
    found = []
    for name, value in turn.captures.items():
        span = _span(rules.get(name), value, answer)
        where = None
        if span is not None:
            start, end = (utf16(answer, place) for place in original_span(answer, span))
            where = {"start": start, "end": end, "follow_up": follow_up}
        used = _used_in(name, turn.turn_number, turns)
        found.append({"variable": name, "value": value, "used_in": used, "where": where})
    return found


def _used_in(name: str, taken_in: int, turns: Sequence[Part]) -> list[int]:
    """The turns after `taken_in` that it went into, up to one that took it anew."""
    used = []
    for turn in turns:
        if turn["turn_number"] <= taken_in:
            continue
        steps = [turn, *turn["follow_ups"]]
        if any(part["variable"] == name for step in steps for part in step["content_parts"]):
            used.append(turn["turn_number"])
        if any(taken["variable"] == name for taken in turn["captures"]):
            break
    return used


def _span(rule: Capture | None, value: str, answer: str) -> tuple[int, int] | None:
    """In the plain form of the answer; None: it cannot be known."""
    if rule is None or not value:
        return None
    text, piece = plain(answer), plain(value)
    if rule.pattern is None:
        whole = (rule.jsonpath or "").replace(" ", "").startswith(("$.response", "response"))
        at = text.find(piece)
        # A value that stands there twice may be either.
        return (at, at + len(piece)) if whole and text.count(piece) == 1 else None
    try:
        match = Searcher().search(rule.pattern, text)
        group = kept_group(rule.pattern)
    except (CannotEvaluateError, ValueError):
        return None
    return match.span(group) if match is not None and match[group] == value else None


def prompt_of(checks: Sequence[Check], asked_by: Sequence[int]) -> str | None:
    """The template of the follow-up that the check at `asked_by` asked for."""
    prompt: str | None = None
    for place in asked_by:
        if not 0 <= place < len(checks):
            return None
        prompt = checks[place].prompt
        checks = checks[place].assertions or []
    return prompt
