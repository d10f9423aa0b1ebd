"""Each mutation changes one thing that some checks depend on, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skillup.schema.record import Record, ToolCall, TurnError, TurnRecord
from tests.judges.integrity.reference import AFTER
from tests.support.records import call, file_states, make_turn

Mutation = Callable[[Record], Record]


def _turn(number: int, **update: Any) -> Mutation:
    return _change(number, lambda _: update)


def _change(number: int, updates: Callable[[TurnRecord], Mapping[str, Any]]) -> Mutation:
    def mutate(record: Record) -> Record:
        turns = list(record.turns)
        turn = turns[number - 1]
        turns[number - 1] = turn.model_copy(update=dict(updates(turn)))
        return record.model_copy(update={"turns": turns})

    return mutate


def _said(number: int, old: str, new: str) -> Mutation:
    return _change(number, lambda turn: {"response": turn.response.replace(old, new)})


def _calls(number: int, change: Callable[[list[ToolCall]], list[ToolCall]]) -> Mutation:
    def updates(turn: TurnRecord) -> Mapping[str, Any]:
        calls = change(turn.tool_calls)
        numbered = [made.model_copy(update={"id": ""}) for made in calls]
        return {"transcript": make_turn(calls=numbered, results=["done"] * len(calls)).transcript}

    return _change(number, updates)


def _files(files: Mapping[str, str]) -> Mutation:
    return _turn(3, files=file_states(files))


def _usage(tokens: int) -> Mutation:
    def updates(turn: TurnRecord) -> Mapping[str, Any]:
        assert turn.usage is not None
        return {"usage": turn.usage.model_copy(update={"output_tokens": tokens})}

    return _change(3, updates)


def _process(turn: TurnRecord) -> Mapping[str, Any]:
    assert turn.process is not None
    return {"process": turn.process.model_copy(update={"exit_code": 1})}


ANOTHER_COMMAND = {"command": "rm -rf data"}
MUTATIONS: dict[str, Mutation] = {
    "a needed word removed from turn 1": _said(1, "Please confirm.", ""),
    "a forbidden word added to turn 1": _said(1, "files?", "files? password"),
    "a value of turn 2's JSON changed": _said(2, "3", "4"),
    "turn 3's answer replaced": _said(3, "Goodbye then.", "Hello again."),
    "a call of turn 2 dropped": _calls(2, lambda calls: [calls[0], calls[2]]),
    "a call of turn 2 repeated": _calls(2, lambda calls: [*calls[:2], calls[1], calls[2]]),
    "two calls of turn 2 swapped": _calls(2, lambda calls: [calls[0], calls[2], calls[1]]),
    "an argument in turn 2 changed": _calls(
        2, lambda c: [c[0], c[1].model_copy(update={"arguments": ANOTHER_COMMAND}), c[2]]
    ),
    "turn 2's skill not used": _calls(2, lambda calls: calls[1:]),
    "another skill used in turn 3": _calls(3, lambda _: [call("Skill", "skill", skill="other")]),
    "a forbidden tool used in turn 3": _calls(3, lambda _: [call("WebFetch", "web", url="x")]),
    "a file removed": _files({k: v for k, v in AFTER.items() if k != "notes.txt"}),
    "a file added": _files({**AFTER, "temp.log": ""}),
    "a file changed": _files({**AFTER, "notes.txt": "bye"}),
    "a golden file's twin changed": _files({**AFTER, "report.md": "# Other"}),
    "the process of turn 3 failed": _change(3, _process),
    "turn 3 cost more": _turn(3, cost_usd=5.0),
    "turn 3 took longer": _turn(3, duration_ms=100_000),
    "turn 3 said more": _usage(10_000),
    "turn 3 said nothing": _usage(0),
    "turn 2 skipped": _turn(2, status="skipped", response="", transcript=[], files=None),
    "an error in turn 3": _turn(3, status="error", error=TurnError(kind="crash", message="x")),
}
