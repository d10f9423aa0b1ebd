"""What an inquiry is about: the case, the exchanges to look at, and the answer that counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skillup.checks.context import one_line
from skillup.judges.evaluate import Judgement
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.record import HistoryItem, Record, ToolCall, ToolResult, TurnRecord

# A record as exchanges: what the user said, what the agent did about it, what it answered.

PartKind = Literal["setting", "user", "message", "call", "result", "answer", "files"]
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was said or done."""

    kind: PartKind
    label: str
    """Who or what, in a few words: `user`, `tool call 1: Bash (shell)`."""
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message of the user and everything up to the agent's answer."""

    label: str
    """`turn 2`, `turn 2, follow-up 1`, `earlier exchange 1`."""
    turn: int
    """The turn it is part of; 0 and below: it was put into the session before the first turn."""
    parts: tuple[Part, ...]
    step: TurnRecord | None = None
    """Of what was held; None: it came from the history."""


def setting_of(record: Record, variables: Mapping[str, str]) -> tuple[Part, ...]:
    """What the conversation was held under: the agent's system text, and what its user wants."""
    given = record.case.get("input") or {}
    persona = (given.get("conversation") or {}).get("persona") or {}
    wanted = persona.get("objective") or (record.case.get("user_simulator") or {}).get("scenario")
    told = (
        ("what the agent was told beforehand (system prompt)", given.get("system"),
         {} if given.get("literal") else record.initial_variables),
        ("what the simulated user was told to want", wanted, variables),
    )  # fmt: skip
    return tuple(
        Part("setting", label, "".join(piece for piece, _ in templates.pieces(text, known)))
        for label, text, known in told
        if isinstance(text, str)
    )


def exchanges_of(record: Record, subject: TurnRecord | None) -> list[Exchange]:
    """The conversation, oldest first: all of it, or up to `subject`, which is then the last.

    The history that was put into the session comes first. Messages that were not sent are left out.
    """
    earlier = list(_history(record.history))
    found = [
        Exchange(f"earlier exchange {index + 1}", index + 1 - len(earlier), parts)
        for index, parts in enumerate(earlier)
    ]
    for turn in record.turns:
        if subject is not None and turn.turn_number >= subject.turn_number:
            break
        found.extend(_of_turn(turn))
    if subject is None:
        return found
    own = next((t for t in record.turns if t.turn_number == subject.turn_number), subject)
    return [*found, *_up_to(own, subject)]


def _up_to(turn: TurnRecord, subject: TurnRecord) -> Iterator[Exchange]:
    """The turn's exchanges before `subject`, then `subject` itself, as the context has it."""
    for number, step in enumerate(turn.executed()):
        if step.asked_by == subject.asked_by:
            yield _exchange(subject, number)
            return
        if _was_sent(step):
            yield _exchange(step, number)
    # While a conversation is held, a follow-up is not in the record yet.
    yield _exchange(subject, len(list(turn.executed())))


def _of_turn(turn: TurnRecord) -> Iterator[Exchange]:
    for number, step in enumerate(turn.executed()):
        if _was_sent(step):
            yield _exchange(step, number)


def _was_sent(step: TurnRecord) -> bool:
    return step.status in ("completed", "failed")


def _exchange(step: TurnRecord, follow_up: int) -> Exchange:
    label = f"turn {step.turn_number}"
    if step.asked_by:
        label += f", follow-up {follow_up}"
    return Exchange(label, step.turn_number, tuple(_parts(step)), step)


def _parts(step: TurnRecord) -> Iterator[Part]:
    if step.content:
        yield Part("user", "user", step.content)
    numbers: dict[str, int] = {}
    last = max(
        (
            place
            for place, item in enumerate(step.transcript)
            if item.type == "message" and item.agent is None and item.text == step.response
        ),
        default=-1,
    )
    for place, item in enumerate(step.transcript):
        by = f" (by the sub-agent {_name(item.agent)})" if item.agent is not None else ""
        if item.tool_call is not None:
            yield _call(item.tool_call, numbers, by)
        elif item.tool_result is not None:
            yield _result(item.tool_result, numbers)
        elif item.type == "message" and item.text and place != last:
            yield Part("message", f"agent, while it worked{by}", item.text)
    yield Part("answer", "answer" if step.response.strip() else "answer (empty)", step.response)
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


def _changes(changes: Any) -> str:
    lines = [
        f"{word}: {path}"
        for word, paths in (
            ("added", changes.added),
            ("modified", changes.modified),
            ("deleted", changes.deleted),
        )
        for path in paths
    ]
    return "\n".join([*lines, *([changes.diff] if changes.diff else [])])


def _name(name: str) -> str:
    """A name that somebody else chose, as part of a label."""
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


# How much of a conversation a judge is shown, and the windows that relevance is judged in.


def last_turns(exchanges: Sequence[Exchange], size: int | None) -> list[Exchange]:
    """The exchanges of the last `size` turns; None: all of them. A follow-up is in its turn."""
    if size is None:
        return list(exchanges)
    turns = list(dict.fromkeys(exchange.turn for exchange in exchanges))
    kept = set(turns[-size:])
    return [exchange for exchange in exchanges if exchange.turn in kept]


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring exchanges; the answers of those at its end are judged, the rest is context."""

    exchanges: tuple[Exchange, ...]
    judged: int
    """How many, counted from the end."""

    @property
    def label(self) -> str:
        """`turn 1`, `turns 1-3`: the turns that it spans, those put in beforehand left out."""
        turns = [exchange.turn for exchange in self.exchanges if exchange.turn > 0]
        return f"turn {turns[0]}" if turns[0] == turns[-1] else f"turns {turns[0]}-{turns[-1]}"


def windows_of(exchanges: Sequence[Exchange], size: int) -> list[Window]:
    """Every `size` neighbouring exchanges; a conversation that is no longer is one window.

    Each answer that was held is judged once: the first window judges all of its answers, every
    later one the answer that it adds. What lies before the first turn is context alone.
    """
    first = next((n for n, exchange in enumerate(exchanges) if exchange.step is not None), 0)
    ends = range(max(first + 1, min(size, len(exchanges))), len(exchanges) + 1)
    windows: list[Window] = []
    seen = first
    for end in ends:
        windows.append(Window(tuple(exchanges[max(0, end - size) : end]), end - seen))
        seen = end
    return windows


@dataclass(frozen=True, slots=True)
class ReadSubject:
    """A turn in the light of what came before it, or the whole conversation."""

    case: Case
    scope: str
    """`turn 2` or `conversation`, as in results."""
    exchanges: tuple[Exchange, ...]
    """All of the conversation, up to the turn in question; never empty."""
    shown: tuple[Exchange, ...]
    """Of these, what `window_size` leaves."""
    is_turn: bool
    variables: Mapping[str, str]
    """As they stood at its end."""
    setting: tuple[Part, ...] = ()
    """What the conversation was held under."""

    @property
    def judged(self) -> Sequence[Exchange]:
        """The exchanges that are judged; the others are context."""
        if self.is_turn:
            return self.shown[-1:]
        return [exchange for exchange in self.shown if exchange.step is not None]

    @property
    def answer(self) -> str:
        """The agent's last answer."""
        step = self.exchanges[-1].step
        return step.response if step is not None else ""

    @property
    def expected_output(self) -> str:
        """What the case says a good answer is; empty if it does not say."""
        wanted, literal = self._expected()
        if literal:
            return wanted
        return "".join(text for text, _ in templates.pieces(wanted, self.variables))

    def _expected(self) -> tuple[str, bool]:
        """As it is written, and whether that is no template."""
        step = self.exchanges[-1].step
        if not self.is_turn or self.case.input.turns is None:
            return self.case.expected_output or "", False
        wanted = self.case.input.turns
        if step is None or step.asked_by or not 1 <= step.turn_number <= len(wanted):
            return "", True
        turn = wanted[step.turn_number - 1]
        return turn.expected_output or "", turn.literal

    def target(self) -> str:
        """Tells the judge what to look at."""
        if not self.is_turn:
            return (
                "Judge the conversation as a whole: what the agent said and did in all of its "
                "turns. What stands before turn 1, if anything, is context."
            )
        label = self.exchanges[-1].label
        if len(self.shown) == 1:
            return f"Judge {label}: what the agent said and did there."
        return (
            f"Judge {label}, the last one: what the agent said and did there. "
            "Everything before it is context."
        )

    def last_answer_label(self) -> str:
        """What the last answer is called in the material."""
        return f"the answer of {self.exchanges[-1].label}"


def subject_of(inquiry: Judgement) -> ReadSubject:
    """What `inquiry` is about. The case is the one it is graded by: it may be an edited one."""
    record, turn = inquiry.context.record, inquiry.context.turn
    case = inquiry.case if inquiry.case is not None else Case.model_validate(record.case)
    exchanges = exchanges_of(record, turn)
    shown = exchanges if turn is None else last_turns(exchanges, case.window_size)
    scope = "conversation" if turn is None else f"turn {turn.turn_number}"
    variables = record.variables_after(None if turn is None else turn.turn_number)
    setting = setting_of(record, variables)
    return ReadSubject(
        case, scope, tuple(exchanges), tuple(shown), turn is not None, variables, setting
    )


def parts_of(exchanges: Sequence[Exchange], kind: str) -> set[str]:
    """The labels, within material, of the parts of one kind."""
    return {f"{e.label} · {part.label}" for e in exchanges for part in e.parts if part.kind == kind}


def with_labels(parts: Sequence[Part], labels: set[str]) -> list[Part]:
    """Those of the material's parts that have one of these labels."""
    return [part for part in parts if part.label in labels]
