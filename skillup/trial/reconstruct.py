"""Rebuilding variables from a history, as the live conversation would have filled them.

Only from what was said before: what the first live message says is for the agent to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillup.checks.evidence import beginning
from skillup.checks.finding import CannotEvaluateError
from skillup.checks.folding import plain
from skillup.checks.patterns import Searcher
from skillup.schema.conversation import HistoryMessage
from skillup.schema.patterns import kept_group
from skillup.schema.reconstruct import Pairs, Reconstruct

if TYPE_CHECKING:
    import regex


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The values by variable; a miss says what was not found, and what to do."""

    values: dict[str, str] = field(default_factory=dict)
    miss: str | None = None


def rebuild(rule: Reconstruct, messages: Sequence[HistoryMessage]) -> Rebuilt:
    """Apply one rule to the cleaned history."""
    if rule.pairs is not None:
        return _paired(rule.pairs, messages)
    assert rule.capture is not None
    wanted = [m for m in messages if rule.role in ("any", m.role) and m.role != "tool"]
    if rule.take == "last":
        wanted.reverse()
    elif rule.take == "last_message":
        wanted = wanted[-1:]
    name, pattern = rule.capture.variable, rule.capture.pattern or ""
    search = Searcher()
    for message in wanted:
        try:
            match = search.search(pattern, plain(message.content))
            value = match[kept_group(pattern)] if match is not None else None
        except (CannotEvaluateError, ValueError) as trouble:
            # A default stands for what was not said, not for a rule that cannot be used.
            return Rebuilt(miss=f"capture `{name}`: {trouble}")
        if value is not None and value.strip():
            return Rebuilt({name: value})
    if rule.capture.default is not None:
        return Rebuilt({name: rule.capture.default})
    whose = "no message" if rule.role == "any" else f"no message of the {rule.role}"
    text = f"capture `{name}`: {whose} of the history has /{rule.capture.pattern}/"
    return Rebuilt(miss=f"{text}; correct it, or give it a `default`")


@dataclass(slots=True, eq=False)
class _Question:
    text: str
    answer: str | None = None


def _paired(rule: Pairs, messages: Sequence[HistoryMessage]) -> Rebuilt:
    """The nth question that was asked for the first time belongs to the nth field.

    A question that is asked again, in the same words, is the same one: the later answer counts.
    """
    try:
        asked, pending = _questions(rule.marker, messages)
    except CannotEvaluateError as trouble:
        return Rebuilt(miss=f"`pairs`: {trouble}")
    values: dict[str, str] = {}
    for name, question in zip(rule.fields, asked, strict=False):
        if question.answer is not None:
            values[name] = question.answer
    if rule.pending is not None:
        values[rule.pending] = "" if pending is None else pending.text
    if rule.pending_field is not None:
        place = len(rule.fields) if pending is None else asked.index(pending)
        values[rule.pending_field] = rule.fields[place] if place < len(rule.fields) else ""
    missing = [name for name in rule.fields if name not in values]
    if missing and rule.default is None:
        heard = ", ".join(f'"{beginning(question.text)}"' for question in asked) or "none"
        text = f"`{missing[0]}` was not answered in the history (questions found: {heard})"
        return Rebuilt(values, f"{text}; correct the `marker`, or give a `default`")
    return Rebuilt({**dict.fromkeys(missing, rule.default or ""), **values})


def _questions(
    marker: str, messages: Sequence[HistoryMessage]
) -> tuple[list[_Question], _Question | None]:
    """In the order in which they were first asked, and the one that is still open."""
    search = Searcher()
    asked: list[_Question] = []
    waiting: _Question | None = None
    for message in messages:
        if message.role == "user":
            if waiting is not None and message.content.strip():
                said = message.content.strip()
                waiting.answer = said if waiting.answer is None else f"{waiting.answer}\n\n{said}"
            continue
        if message.role != "assistant":
            continue
        match = search.search(marker, plain(message.content))
        if match is None:
            if waiting is not None and waiting.answer is not None:
                waiting = None  # what the user says now answers something else
            continue
        text = _question_text(match)
        known = next((q for q in asked if _same(q.text, text)), None)
        waiting = known or _Question(text)
        waiting.answer = None
        if known is None:
            asked.append(waiting)
    return asked, waiting if waiting is not None and waiting.answer is None else None


def _question_text(match: regex.Match[str]) -> str:
    named = match.groupdict().get("question")
    if named is not None and named.strip():
        return named.strip()
    rest = match.string[match.end() :].partition("\n")[0].strip()
    return rest or match[0].strip()


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()
