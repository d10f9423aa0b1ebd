"""What judges and simulated users are shown: the record as exchanges, each text after its speaker.

Every line of ours around the texts of an exchange carries a code that is computed from them and
all before, and occurs in no text: nobody can forge the end of the material, another speaker, or
instructions of ours. Longer conversations begin with the very same characters as shorter ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from skillup.checks.context import INVISIBLE, VISIBLE, beginning, is_said
from skillup.dataclass import frozen
from skillup.engines.events import shortened
from skillup.schema import templates
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import Record, TurnRecord
from skillup.trial.history import as_turns

# Control characters become their pictures, but for tabs and the ends of lines.
_SHOWN = VISIBLE | {0x09: "\t", 0x0A: "\n", 0xAD: "", 0x2028: "\n", 0x2029: "\n"}
_STYLES = frozenset(("\u200c", "\u200d", "\ufe0e", "\ufe0f", "\ufe0f\u200d"))
"""What emoji and joined scripts are made of: one such between two characters hides nothing."""


def harmless(text: str) -> str:
    """`text` with invisible characters named; what emoji and joined scripts are made of stays."""
    if text.isascii() and text.isprintable():
        return text
    return INVISIBLE.sub(_named, text.replace("\r\n", "\n").translate(_SHOWN))


def _named(found: re.Match[str]) -> str:
    run, before = found[0], found.string[: found.start()][-1:]
    if run in _STYLES and before and not (before.isascii() and before not in "#*0123456789"):
        return run
    return f"[U+{ord(run):04X}]" if len(run) == 1 else f"[{len(run)} invisible characters]"


def codes_for(groups: Sequence[Sequence[str]]) -> list[str]:
    """Of each group sixteen hexadecimal digits, by it and those before; they are in no text."""
    everything = "\0".join(text for texts in groups for text in texts).lower()
    codes: list[str] = []
    while len(codes) < len(groups) or any(code in everything for code in codes):
        digest, codes = "".join(codes), []
        for texts in groups:
            digest = hashlib.sha256((digest + json.dumps(texts)).encode()).hexdigest()
            codes.append(digest[:16])
    return codes


def fenced(
    pieces: Sequence[tuple[str, str]], what: str = "MATERIAL", code: str | None = None
) -> str:
    """Texts, each after its label, between the lines that begin and end them.

    `code` is that of all labels and texts; None: of `pieces`.
    """
    code = code or codes_for([[text for piece in pieces for text in piece]])[0]
    lines = [f"=====[ {code} BEGIN {what} ]====="]
    for label, text in pieces:
        lines += [f"-----[ {code} {label} ]-----", text]
    return "\n".join([*lines, f"=====[ {code} END {what} ]====="])


PartKind = Literal["setting", "user", "message", "call", "result", "answer", "files"]


@frozen
class Part:
    kind: PartKind
    label: str  # Who or what, in a few words: `user`, `tool call 1: Bash (shell)`
    text: str
    span: EvidenceSpan | None = None  # Where in the record it is; None: nowhere
    recorded: str | None = None  # The text as it is recorded there; None: the span means the whole
    exchange: str = "setting"  # The label of what it is part of


@frozen
class Exchange:
    """One message of the user and everything up to the agent's answer."""

    label: str  # `turn 2`, `turn 2, follow-up 1`, `earlier exchange 1`
    turn: int  # The turn it is part of; 0 and below: before the first one
    parts: tuple[Part, ...]
    step: TurnRecord | None = None  # Of what was run; None: it came from the history

    def labelled(self) -> list[Part]:
        own = self.label
        return [replace(p, label=f"{own} · {p.label}", exchange=own) for p in self.parts]


LONGEST: dict[PartKind, int] = {
    "answer": 24_000,
    "user": 12_000,
    "files": 6_000,
    "setting": 6_000,
    "message": 4_000,
    "result": 3_000,
    "call": 2_000,
}
"""Characters of each text; in long conversations a half, a quarter, … of it."""
LONGEST_IN_ALL = 160_000
_MOST_HALVINGS = 4
_LONGEST_NAME = 80


@frozen
class Material:
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()  # What of it was left out

    def fenced(self, pieces: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """Some of it, or what stands beside it, in one fence; and its code."""
        own = [text for part in self.parts for text in (part.label, part.text)]
        beside = [text for piece in pieces for text in piece if text not in own]
        (code,) = codes_for([[*own, *beside]])
        return fenced(pieces, code=code), code

    def exchanges(self) -> list[tuple[str, str, str]]:
        """Label, code and fenced text of each exchange, the setting before them.

        Whoever writes in one does not know its code, which their own words change; that of an
        earlier one ends nothing, and if it is anywhere in the texts all codes are others.
        """
        grouped = [(name, list(parts)) for name, parts in groupby(self.parts, lambda p: p.exchange)]
        texts = [[(part.label, part.text) for part in parts] for _, parts in grouped]
        codes = codes_for([[text for pair in one for text in pair] for one in texts])
        return [
            (name, code, fenced(one, name, code))
            for (name, _), code, one in zip(grouped, codes, texts, strict=True)
        ]


def material(exchanges: Sequence[Exchange], setting: Sequence[Part] = ()) -> Material:
    given = [*setting, *(part for exchange in exchanges for part in exchange.labelled())]
    parts = [replace(p, label=harmless(p.label), text=harmless(p.text)) for p in given]
    notes: list[str] = []
    for halvings in range(_MOST_HALVINGS + 1):
        kept, gone = list[Part](), list[int]()
        for part in parts:
            longest = LONGEST[part.kind] >> halvings
            if len(part.text) > longest:
                gone.append(len(part.text) - longest)
                part = replace(part, text=shortened(part.text, longest))
            kept.append(part)
        if _size(kept) <= LONGEST_IN_ALL:
            break
    if gone:
        texts = "1 long text" if len(gone) == 1 else f"{len(gone)} long texts"
        notes.append(f"the judge saw {texts} without the middle: {sum(gone):,} characters left out")
    if _size(kept) > LONGEST_IN_ALL:
        # The first quarter and the last three quarters of what fits.
        first = last = 0
        while _size(kept[: first + 1]) <= LONGEST_IN_ALL // 4:
            first += 1
        room = LONGEST_IN_ALL - _size(kept[:first])
        while _size(kept[len(kept) - last - 1 :]) <= room:
            last += 1
        dropped = len(kept) - first - last
        text = f"[… {dropped} texts are left out here …]"
        note = Part("message", "left out", text, exchange="left out")
        kept = [*kept[:first], note, *kept[len(kept) - last :]]
        notes.append(f"the judge did not see {dropped} texts in the middle of the conversation")
    return Material(tuple(kept), tuple(notes))


def _size(parts: Sequence[Part]) -> int:
    return sum(len(part.text) + len(part.label) for part in parts)


def setting_of(record: Record, variables: Mapping[str, str]) -> tuple[Part, ...]:
    given = record.case.get("input") or {}
    persona = (given.get("conversation") or {}).get("persona") or {}
    scenario = (record.case.get("user_simulator") or {}).get("scenario")
    objective = persona.get("objective") or scenario
    known = {} if given.get("literal") else record.initial_variables
    texts = (
        ("what the agent was told beforehand (system prompt)", given.get("system"), known),
        ("what the simulated user was told to want", objective, variables),
    )
    return tuple(
        Part("setting", label, "".join(piece for piece, _ in templates.pieces(text, known)))
        for label, text, known in texts
        if isinstance(text, str)
    )


def exchanges_of(record: Record, judged: TurnRecord | None) -> list[Exchange]:
    """The conversation, oldest first: all that was sent, or up to `judged`, then the last."""
    earlier = as_turns(record.history)
    found = []
    for number, turn in enumerate(earlier, start=1):
        parts = tuple(replace(p, span=None, recorded=None) for p in _parts_of(turn, 0))
        found.append(Exchange(f"earlier exchange {number}", number - len(earlier), parts))
    for turn in record.turns:
        if judged is not None and turn.turn_number >= judged.turn_number:
            break
        steps = enumerate(turn.executed())
        found += [_exchange(s, n) for n, s in steps if s.status in ("completed", "failed")]
    if judged is None:
        return found
    own = next((t for t in record.turns if t.turn_number == judged.turn_number), judged)
    number = -1
    for number, step in enumerate(own.executed()):
        if step.asked_by == judged.asked_by:
            return [*found, _exchange(judged, number)]
        if step.status in ("completed", "failed"):
            found.append(_exchange(step, number))
    # While a conversation goes on, a follow-up is not in the record yet.
    return [*found, _exchange(judged, number + 1)]


def _exchange(step: TurnRecord, follow_up: int) -> Exchange:
    """`follow_up` counts the turn's answers, from 0."""
    label = f"turn {step.turn_number}"
    if step.asked_by:
        label += f", follow-up {follow_up}"
    return Exchange(label, step.turn_number, tuple(_parts_of(step, follow_up)), step)


def _parts_of(step: TurnRecord, follow_up: int) -> Iterator[Part]:
    own = {"turn": step.turn_number, "follow_up": follow_up - 1 if follow_up else None}
    if step.content:
        yield Part("user", "user", step.content)
    numbers: dict[str, int] = {}
    answers = [
        place
        for place, item in enumerate(step.transcript)
        if item.type == "message" and item.agent is None and item.text == step.response
    ]
    for place, item in enumerate(step.transcript):
        agent = beginning(item.agent or "", _LONGEST_NAME)
        by = f" (by the sub-agent {agent})" if item.agent is not None else ""
        if (call := item.tool_call) is not None:
            span = EvidenceSpan.model_validate({**own, "part": "call", "item": place})
            number = numbers.setdefault(call.id, len(numbers) + 1)
            label = f"tool call {number}: {beginning(call.name, _LONGEST_NAME)} ({call.kind}){by}"
            arguments = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
            yield Part("call", label, arguments, span)
        elif (result := item.tool_result) is not None:
            span = EvidenceSpan.model_validate({**own, "part": "result", "item": place})
            known = numbers.get(result.call_id)
            of = f"tool call {known}" if known is not None else "a tool call"
            label = f"result of {of} ({result.status})"
            yield Part("result", label, result.content, span, result.content)
        elif item.question is not None:
            yield Part("message", f"the agent asks, while it works{by}", item.text or "")
            yield Part("user", "user, when asked", str(item.question))
        elif item.type == "message" and item.text and place not in answers[-1:]:
            yield Part("message", f"agent, while it worked{by}", item.text)
    label = "answer" if is_said(step.response) else "answer (empty)"
    span = EvidenceSpan.model_validate({**own, "part": "response"})
    yield Part("answer", label, step.response, span, step.response)
    if (changes := step.changes) is not None:
        kinds = ("added", "modified", "deleted")
        lines = [f"{kind}: {path}" for kind in kinds for path in getattr(changes, kind)]
        if text := "\n".join([*lines, *([changes.diff] if changes.diff else [])]):
            yield Part("files", "files changed", text)
