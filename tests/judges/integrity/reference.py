"""A conversation on which every check passes, what changes it, and which checks that must flip."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skillup.schema.record import Record, ToolCall, TurnError, TurnRecord
from tests.support.records import Recorded, call, file_states, make_record, make_turn

BEFORE = {"data/a.log": "1", "notes.txt": "hello", "report.md": "# Report"}
AFTER = {name: content for name, content in BEFORE.items() if name != "data/a.log"}
REMOVE = call("Bash", "shell", command="rm data/a.log")
WRITE = call("Write", "write", file_path="report.md", content="# Report")
SKILL = call("Skill", "skill", skill="tidy")
LIST = call("Bash", "shell", command="ls data")


def reference() -> Recorded:
    """Asks first, deletes with a skill, says goodbye."""
    usual: dict[str, Any] = {"output_tokens": 10, "cost_usd": 0.01}
    return make_record(
        make_turn("Shall I delete 3 files? Please confirm.", content="Delete the logs.",
                  calls=[LIST], files=BEFORE, post_condition_passed=True, **usual),
        make_turn('{"deleted": 3, "ok": true}', content="Yes.",
                  calls=[SKILL, REMOVE, WRITE], results=["done"] * 3, files=AFTER, **usual),
        make_turn("Goodbye then.", content="Thanks.", files=AFTER, **usual),
        references={"golden.txt": "Goodbye then.", "golden.md": "# Report"},
    )  # fmt: skip


# Each mutation changes one thing that some checks depend on, and nothing else.

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


# Every check once, where it passes on the reference, and the mutations that must flip it.

WORD = "a needed word removed from turn 1"
FORBIDDEN = "a forbidden word added to turn 1"
VALUE = "a value of turn 2's JSON changed"
ANSWER = "turn 3's answer replaced"
DROPPED = "a call of turn 2 dropped"
REPEATED = "a call of turn 2 repeated"
SWAPPED = "two calls of turn 2 swapped"
ARGUMENT = "an argument in turn 2 changed"
NO_SKILL = "turn 2's skill not used"
OTHER_SKILL = "another skill used in turn 3"
OTHER_TOOL = "a forbidden tool used in turn 3"
REMOVED = "a file removed"
ADDED = "a file added"
CHANGED = "a file changed"
GOLDEN = "a golden file's twin changed"
FAILED = "the process of turn 3 failed"
COST = "turn 3 cost more"
SLOW = "turn 3 took longer"
MORE = "turn 3 said more"
NOTHING = "turn 3 said nothing"
SKIPPED = "turn 2 skipped"
ERROR = "an error in turn 3"

ONLY = {1: set(), 2: {SKIPPED}, 3: {ERROR}, None: {SKIPPED, ERROR}}
"""What every check of a turn, or of the conversation, depends on: that it took place."""


@dataclass(frozen=True, slots=True)
class Row:
    """A check, the turn it is asked of (None: the conversation), and what flips it."""

    key: str
    spec: Any
    turn: int | None
    killed_by: frozenset[str]

    @property
    def name(self) -> str:
        """Unique: the key and the place."""
        return f"{self.key} @ {self.turn or 'conversation'}"

    @property
    def check(self) -> dict[str, Any]:
        return {self.key: self.spec, "name": self.name}


def row(key: str, spec: Any, turn: int | None, *killed_by: str) -> Row:
    """`killed_by` besides what :data:`ONLY` says."""
    return Row(key, spec, turn, frozenset({*killed_by, *ONLY[turn]}))


ROWS = [
    row("contains", {"any": ["confirm"], "none": ["password"]}, 1, WORD, FORBIDDEN),
    row("not_contains", "password", 1, FORBIDDEN),
    row("matches", r"confirm\.$", 1, WORD),
    row("glob", "*confirm*", 1, WORD),
    row("not_glob", "*password*", 1, FORBIDDEN),
    row("must_contain", "confirm", 1, WORD),
    row("must_contain_all", ["delete", "confirm"], 1, WORD),
    row("must_contain_any", ["confirm", "are you sure"], 1, WORD),
    row("must_not_contain", "password", 1, FORBIDDEN),
    row("output_contains", {"all": ["confirm"], "not": ["password"]}, 1, WORD, FORBIDDEN),
    row("output_matches", "[Cc]onfirm", 1, WORD),
    row("rubric", "needle: confirm", 1, WORD),
    row("similar", "needle: confirm", 1, WORD),
    row("expected_output", "needle: confirm", 1, WORD),
    row("answer_quality", {"prompt": "needle: confirm {{output}}"}, 1, WORD),
    row("any_of", [{"contains": "confirm"}, {"contains": "sure"}], 1, WORD),
    row("none_of", [{"contains": "password"}, {"tool_called": "Write"}], 1, FORBIDDEN),
    row("json", {"path": "$.deleted", "equals": 3}, 2, VALUE),
    row("tool_called", {"kind": "shell", "args": {"command": "rm data/a.log"}, "max": 1}, 2,
        DROPPED, REPEATED, ARGUMENT),
    row("tool_sequence", {"calls": [{"kind": "skill"}, {"kind": "shell"}, {"kind": "write"}],
                          "mode": "exact"}, 2, DROPPED, REPEATED, SWAPPED, NO_SKILL),
    row("all_of", [{"json": {"path": "$.ok", "equals": True}}, {"tool_called": "Write"},
                   {"skill_used": "tidy"}], 2, NO_SKILL),
    row("equals", "Goodbye then.", 3, ANSWER),
    row("files_exist", "notes.txt", 3, REMOVED),
    row("files_not_exist", "*.log", 3, ADDED),
    row("file_contains", {"path": "notes.txt", "content": "hello"}, 3, REMOVED, CHANGED),
    row("exit_code", 0, 3, FAILED),
    row("min_tokens", 1, 3, NOTHING),
    row("max_tokens", 100, 3, MORE),
    row("golden_file", {"path": "golden.md", "file": "report.md"}, 3, GOLDEN),
    row("script", "needle: Goodbye", 3, ANSWER),
    row("golden_file", "golden.txt", None, ANSWER),
    row("tool_not_called", {"kind": "web"}, None, OTHER_TOOL),
    row("tool_called", {"kind": "shell", "min": 2, "max": 2}, None, DROPPED, REPEATED),
    row("skill_used", "tidy", None, NO_SKILL),
    row("skill_not_used", "other", None, OTHER_SKILL),
    row("max_cost_usd", 1.0, None, COST),
    row("max_duration_seconds", 60.0, None, SLOW),
    # It is not asked where `expect` does not hold (V16).
    row("relevance", {"prompt": "needle: Goodbye {{output}}"}, None, ANSWER, REMOVED),
    row("files_exist", "report.md", None),
]  # fmt: skip

# Those that name their turn themselves stand with the conversation, and are asked of that turn.
NAMING = [
    Row("turn_response_contains", {"turn": 1, "contains_any": ["confirm"]}, None,
        frozenset({WORD})),
    Row("turn_response_not_contains", {"turn": 1, "not_contains": ["password"]}, None,
        frozenset({FORBIDDEN})),
    Row("tool_called_in_turn", {"turn": 2, "kind": "skill"}, None, frozenset({NO_SKILL, SKIPPED})),
    Row("tool_not_called_in_turn", {"turn": 3, "kind": "web"}, None,
        frozenset({OTHER_TOOL, ERROR})),
]  # fmt: skip

# The other places where a check may stand, each with a check that another mutation flips.
PLACES: dict[tuple[str, str], set[str]] = {
    ("post_condition", "must_contain_any"): {WORD},
    ("expect", "files_exist"): {REMOVED, SKIPPED, ERROR},
    # Judges are not asked where the gate, `expect`, does not hold.
    ("success", "tool_called"): {DROPPED, ARGUMENT},
    ("failure", "contains"): {ANSWER},
    ("judge", "script"): {ANSWER},
    ("judge", "agent_judge"): {ANSWER},
}
"""Role and key → what flips it. What judges that read are asked does not depend on the rest."""


def case() -> dict[str, Any]:
    """The case with all of them."""
    by_turn: dict[int | None, list[dict[str, Any]]] = {1: [], 2: [], 3: [], None: []}
    for one in [*ROWS, *NAMING]:
        by_turn[one.turn].append(one.check)
    gate = {"must_contain_any": ["confirm"]}
    turns = [
        {"content": "Delete the logs.", "post_condition": gate, "assertions": by_turn[1]},
        {"content": "Yes.", "assertions": by_turn[2]},
        {"content": "Thanks.", "assertions": by_turn[3]},
    ]
    return {
        "id": "case",
        "input": {"turns": turns},
        "expect": {"files_exist": ["notes.txt"]},
        "assertions": by_turn[None],
        "judges": [
            {
                "success": [
                    {"tool_called": {"args": {"command": "rm data/a.log"}, "kind": "shell"}}
                ],
                "failure": [{"contains": "again"}],
            },
            {"type": "script", "script_path": "needle: Goodbye"},
            {"type": "agent_judge", "criteria": ["needle: Goodbye"]},
        ],
    }
