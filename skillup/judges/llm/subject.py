"""What a model judges: the record as exchanges, and how much of it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skillup.checks.context import one_line
from skillup.judges.evaluate import JudgeRequest
from skillup.judges.material import Material, Part, material_of
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import (
    HistoryItem,
    Record,
    ToolCall,
    ToolResult,
    TurnRecord,
    WorkspaceChanges,
)

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message of the user and everything up to the agent's answer."""

    label: str  # `turn 2`, `turn 2, follow-up 1`, `earlier exchange 1`
    turn: int  # The turn it is part of; 0 and below: before the first one
    parts: tuple[Part, ...]
    step: TurnRecord | None = None  # Of what was run; None: it came from the history

    def labels(self, kind: str) -> set[str]:
        return {f"{self.label} · {part.label}" for part in self.parts if part.kind == kind}


def material(exchanges: Sequence[Exchange], setting: Sequence[Part] = ()) -> Material:
    parts = [replace(p, label=f"{e.label} · {p.label}") for e in exchanges for p in e.parts]
    return material_of([*setting, *parts])


def setting_of(record: Record, variables: Mapping[str, str]) -> tuple[Part, ...]:
    given = record.case.get("input") or {}
    persona = (given.get("conversation") or {}).get("persona") or {}
    objective = persona.get("objective") or (record.case.get("user_simulator") or {}).get(
        "scenario"
    )
    texts = (
        ("what the agent was told beforehand (system prompt)", given.get("system"),
         {} if given.get("literal") else record.initial_variables),
        ("what the simulated user was told to want", objective, variables),
    )  # fmt: skip
    return tuple(
        Part("setting", label, "".join(piece for piece, _ in templates.pieces(text, known)))
        for label, text, known in texts
        if isinstance(text, str)
    )


def exchanges_of(record: Record, judged: TurnRecord | None) -> list[Exchange]:
    """The conversation, oldest first: all that was sent, or up to `judged`, then the last."""
    earlier = list(_history(record.history))
    found = [
        Exchange(f"earlier exchange {index + 1}", index + 1 - len(earlier), parts)
        for index, parts in enumerate(earlier)
    ]
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
    label = f"turn {step.turn_number}"
    if step.asked_by:
        label += f", follow-up {follow_up}"
    return Exchange(label, step.turn_number, tuple(parts_of(step, follow_up)), step)


def parts_of(step: TurnRecord, follow_up: int) -> Iterator[Part]:
    """All from one message to its answer; `follow_up` counts the turn's answers, from 0."""
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
        by = f" (by the sub-agent {_name(item.agent)})" if item.agent is not None else ""
        if item.tool_call is not None:
            span = EvidenceSpan.model_validate({**own, "part": "call", "item": place})
            yield replace(_call(item.tool_call, numbers, by), span=span)
        elif item.tool_result is not None:
            span = EvidenceSpan.model_validate({**own, "part": "result", "item": place})
            part = _result(item.tool_result, numbers)
            yield replace(part, span=span, recorded=part.text)
        elif item.type == "message" and item.text and place not in answers[-1:]:
            yield Part("message", f"agent, while it worked{by}", item.text)
    label = "answer" if step.response.strip() else "answer (empty)"
    span = EvidenceSpan.model_validate({**own, "part": "response"})
    yield Part("answer", label, step.response, span, step.response)
    if step.changes is not None and (text := _changes(step.changes)):
        yield Part("files", "files changed", text)


def _call(call: ToolCall, numbers: dict[str, int], by: str = "") -> Part:
    number = numbers.setdefault(call.id, len(numbers) + 1)
    arguments = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
    return Part("call", f"tool call {number}: {_name(call.name)} ({call.kind}){by}", arguments)


def _result(result: ToolResult, numbers: dict[str, int]) -> Part:
    number = numbers.get(result.call_id)
    of = f"tool call {number}" if number is not None else "a tool call"
    return Part("result", f"result of {of} ({result.status})", result.content)


def _changes(changes: WorkspaceChanges) -> str:
    lists = (("added", changes.added), ("modified", changes.modified), ("deleted", changes.deleted))
    lines = [f"{word}: {path}" for word, paths in lists for path in paths]
    return "\n".join([*lines, *([changes.diff] if changes.diff else [])])


def _name(name: str) -> str:
    shown = one_line(name)
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


def _history(items: Sequence[HistoryItem]) -> Iterator[tuple[Part, ...]]:
    """The parts of each exchange; several user messages in a row belong to one."""
    parts: list[Part] = []
    numbers: dict[str, int] = {}
    for item in items:
        if item.role == "user":
            if any(part.kind != "user" for part in parts):
                yield tuple(parts)
                parts, numbers = [], {}
            parts.append(Part("user", "user", item.content))
        elif item.role == "tool":
            if item.tool_result is not None:
                parts.append(_result(item.tool_result, numbers))
        else:
            if item.content:
                parts.append(Part("answer", "answer", item.content))
            parts.extend(_call(call, numbers) for call in item.tool_calls)
    if parts:
        yield tuple(parts)


def windows_of(exchanges: Sequence[Exchange], size: int) -> list[tuple[Sequence[Exchange], int]]:
    """Every `size` neighbouring exchanges; a conversation that is no longer is one window.

    Each with how many are judged, from its end, so that each answer of a turn is judged once: the
    first window judges all of its answers, every later one the answer that it adds. What lies
    before the first turn is context alone.
    """
    first = next((n for n, exchange in enumerate(exchanges) if exchange.step is not None), 0)
    windows: list[tuple[Sequence[Exchange], int]] = []
    seen = first
    for end in range(max(first + 1, min(size, len(exchanges))), len(exchanges) + 1):
        windows.append((exchanges[max(0, end - size) : end], end - seen))
        seen = end
    return windows


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A turn in the light of what came before it, or the whole conversation."""

    case: Case
    scope: str  # `turn 2` or `conversation`, as in results
    exchanges: tuple[Exchange, ...]  # All, up to the turn in question; never empty
    shown: tuple[Exchange, ...]  # Of these, what `window_size` leaves
    is_turn: bool
    variables: Mapping[str, str]  # As they stood at its end
    setting: tuple[Part, ...] = ()

    @property
    def judged(self) -> Sequence[Exchange]:
        if self.is_turn:
            return self.shown[-1:]
        return [exchange for exchange in self.shown if exchange.step is not None]

    @property
    def last(self) -> Exchange:
        return self.exchanges[-1]

    @property
    def expected_output(self) -> str:
        turns, step, literal = self.case.input.turns, self.last.step, False
        text = self.case.expected_output
        if self.is_turn and turns is not None:
            if step is None or step.asked_by or not 1 <= step.turn_number <= len(turns):
                return ""
            turn = turns[step.turn_number - 1]
            text, literal = turn.expected_output, turn.literal
        if literal or not text:
            return text or ""
        return "".join(piece for piece, _ in templates.pieces(text, self.variables))

    def target(self) -> str:
        if not self.is_turn:
            return (
                "Judge the conversation as a whole: what the agent said and did in all of its "
                "turns. What stands before turn 1, if anything, is context."
            )
        if len(self.shown) == 1:
            return f"Judge {self.last.label}: what the agent said and did there."
        return (
            f"Judge {self.last.label}, the last one: what the agent said and did there. "
            "Everything before it is context."
        )


def judged_text(request: JudgeRequest) -> JudgedText:
    record, turn, case = request.context.record, request.context.turn, request.case
    exchanges = exchanges_of(record, turn)
    shown = exchanges
    if turn is not None and case.window_size is not None:  # a follow-up is in its turn
        turns = list(dict.fromkeys(exchange.turn for exchange in exchanges))
        shown = [e for e in exchanges if e.turn in turns[-case.window_size :]]
    scope = "conversation" if turn is None else f"turn {turn.turn_number}"
    variables = record.variables_after(None if turn is None else turn.turn_number)
    setting = setting_of(record, variables)
    return JudgedText(
        case, scope, tuple(exchanges), tuple(shown), turn is not None, variables, setting
    )
