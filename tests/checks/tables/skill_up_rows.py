"""skill-up's spellings of checks of the answer and of tools."""

from __future__ import annotations

from tests.support.check_rows import row
from tests.support.records import call, make_record, make_turn

TWO = make_record(
    make_turn("Are you sure?", calls=[call("Read", "read", path="a.txt")]),
    make_turn("Deleted.", calls=[call("Bash", "shell", command="rm a.txt")]),
)
STOPPED = make_record("Are you sure?", make_turn("Deleted.", status="failed"))

ROWS = [
    *(
        line
        for key in ("must_contain", "must_contain_all")
        for line in (
            row(True, key, ["a", "B"], "A b"),
            row(True, key, "sure", TWO),
            row(False, key, ["a", "c"], "a b"),
            row(False, key, "A", "a", case_sensitive=True),
        )
    ),
    row(True, "must_contain_any", ["x", "b"], "a b"),
    row(True, "must_contain_any", ["deleted"], TWO, turn=None),
    row(False, "must_contain_any", ["x", "y"], "a b"),
    row(True, "must_not_contain", ["x", "y"], "a b"),
    row(False, "must_not_contain", "sure", TWO, turn=None),
    row(True, "must_not_contain", "done", TWO, turn=None),
    row(False, "must_not_contain", "deleted", STOPPED, turn=None),
    row(True, "output_contains", "deleted", TWO, turn=None),
    row(True, "output_contains", {"any": ["x", "a"]}, "A"),
    row(False, "output_contains", "sure", TWO, turn=None),
    row(False, "output_contains", {"none": ["a"]}, "a"),
    row(True, "output_matches", r"(?i)deleted", TWO, turn=None),
    row(True, "output_matches", r"\QDeleted.\E\z", TWO, turn=None),
    row(False, "output_matches", "deleted", TWO, turn=None),
    row(True, "turn_response_contains", {"turn": 1, "contains_all": ["SURE"]}, TWO, turn=None),
    row(True, "turn_response_contains", {"turn": 2, "contains_any": ["x", "deleted"]}, TWO),
    row(True, "turn_response_contains", {"turn": 1, "contains_any": ["sure"]}, STOPPED, turn=None),
    row(False, "turn_response_contains", {"turn": 1, "contains_any": ["deleted"]}, TWO, turn=2),
    row(False, "turn_response_contains", {"turn": 2, "contains_any": ["deleted"]}, STOPPED),
    row(False, "turn_response_contains", {"turn": 3, "contains_any": ["deleted"]}, TWO),
    row(True, "turn_response_not_contains", {"turn": 1, "not_contains": ["deleted"]}, TWO),
    row(True, "turn_response_not_contains", {"turn": 2, "not_contains": "sure"}, TWO, turn=None),
    row(False, "turn_response_not_contains", {"turn": 2, "not_contains": ["deleted"]}, TWO),
    row(False, "turn_response_not_contains", {"turn": 2, "not_contains": ["x"]}, STOPPED),
    row(False, "turn_response_not_contains", {"turn": 9, "not_contains": ["x"]}, TWO),
    row(True, "tool_called_in_turn", {"turn": 2, "kind": "shell"}, TWO, turn=None),
    row(True, "tool_called_in_turn", {"turn": 1, "name": "read"}, TWO, turn=2),
    row(False, "tool_called_in_turn", {"turn": 1, "kind": "shell"}, TWO, turn=None),
    row(False, "tool_called_in_turn", {"turn": 5, "kind": "shell", "min": 0}, TWO, turn=None),
    row(True, "tool_not_called_in_turn", {"turn": 1, "kind": "shell"}, TWO, turn=None),
    row(
        True,
        "tool_not_called_in_turn",
        {"turn": 2, "kind": "shell", "args": {"command": {"contains": "-rf"}}},
        TWO,
    ),
    row(False, "tool_not_called_in_turn", {"turn": 2, "kind": "shell"}, TWO, turn=None),
    row(False, "tool_not_called_in_turn", {"turn": 2, "kind": "web"}, STOPPED, turn=None),
    row(False, "tool_not_called_in_turn", {"turn": 3, "kind": "web"}, TWO, turn=None),
]
