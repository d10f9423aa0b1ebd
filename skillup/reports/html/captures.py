"""Variables: out of which words of an answer each was taken, and which messages it went into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.checks.context import CannotEvaluateError, plain
from skillup.checks.text import Searcher
from skillup.reports.html.evidence import NormalizedText, utf16
from skillup.schema import templates
from skillup.schema.checks import Check
from skillup.schema.conversation import Capture, Turn
from skillup.schema.patterns import kept_group
from skillup.schema.record import TurnRecord

Part = dict[str, Any]


def content_parts(template: str | None, content: str, values: Mapping[str, str]) -> list[Part]:
    """`content` in pieces, ``{text, variable}``: what came out of a variable, and what did not.

    One piece if it is not what `template` gives with these values, for whatever reason.
    """
    whole = [{"text": content, "variable": None}]
    if template is None:
        return whole
    parts: list[Part] = [
        {"text": text, "variable": name} for text, name in templates.pieces(template, values)
    ]
    if "".join(part["text"] for part in parts) != content:
        return whole
    return _joined(parts) or whole


def _joined(parts: Sequence[Part]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        if not part["text"] and part["variable"] is None:
            continue
        if found and part["variable"] is None and found[-1]["variable"] is None:
            found[-1] = {"text": found[-1]["text"] + part["text"], "variable": None}
        else:
            found.append(part)
    return found


def captures_of(
    turn: TurnRecord, wanted: Turn | None, turns: Sequence[Part], answer: str, follow_up: int | None
) -> list[dict[str, Any]]:
    """The turn's captures: ``{variable, value, used_in, where}``.

    `turns`: all of the page's turns; `answer`: the text the captures were asked of, as the page
    has it, which is that of `follow_up` if that is given.
    """
    rules = {rule.variable: rule for rule in wanted.capture} if wanted is not None else {}
    found = []
    for name, value in turn.captures.items():
        where = _where(rules.get(name), value, answer)
        found.append(
            {
                "variable": name,
                "value": value,
                "used_in": _used_in(name, turn.turn_number, turns),
                "where": None if where is None else {**where, "follow_up": follow_up},
            }
        )
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


def _where(rule: Capture | None, value: str, answer: str) -> dict[str, int] | None:
    if rule is None or not value:
        return None
    seen = NormalizedText(answer)
    if rule.pattern is not None:
        span = _of_pattern(rule.pattern, value, seen)
    elif (rule.jsonpath or "").replace(" ", "").startswith(("$.response", "response")):
        at = seen.plain.find(plain(value))
        # A value that stands there twice may be either.
        span = (at, at + len(plain(value))) if seen.plain.count(plain(value)) == 1 else None
    else:
        span = None
    if span is None:
        return None
    start, end = seen.back(span)
    return {"start": utf16(answer, start), "end": utf16(answer, end)}


def _of_pattern(pattern: str, value: str, seen: NormalizedText) -> tuple[int, int] | None:
    try:
        match = Searcher().search(pattern, seen.plain)
        group = kept_group(pattern)
    except (CannotEvaluateError, ValueError):
        return None
    if match is None or match[group] != value:
        return None
    start, end = match.span(group)
    return start, end


def prompt_of(checks: Sequence[Check], asked_by: Sequence[int]) -> str | None:
    """The template of the follow-up that the check at `asked_by` asked for."""
    prompt: str | None = None
    for place in asked_by:
        if not 0 <= place < len(checks):
            return None
        prompt = checks[place].prompt
        checks = checks[place].assertions or []
    return prompt
