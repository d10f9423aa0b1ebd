"""Checks of the answer's text and values, in our spelling and skill-up's, and of what it took."""

from __future__ import annotations

from tests.support.check_rows import row
from tests.support.records import call, make_record, make_turn

TWO = make_record(
    make_turn("Are you sure?", calls=[call("Read", "read", path="a.txt")]),
    make_turn("Deleted.", calls=[call("Bash", "shell", command="rm a.txt")]),
)
STOPPED = make_record("Are you sure?", make_turn("Deleted.", status="failed"))
SPENT = make_record(
    make_turn(output_tokens=10, cost_usd=0.01, duration_ms=1500, exit_code=0),
    make_turn(output_tokens=30, cost_usd=0.02, duration_ms=500, exit_code=3),
)
UNTOLD = make_record(make_turn(output_tokens=10, cost_usd=0.01), make_turn(exit_code=None))
ANSWER = '{"items": [{"id": 1, "name": "Ada"}, {"id": 2.0, "name": null}], "ok": true, "usage": 5}'
JSON = make_record(make_turn(ANSWER, calls=[call("Bash", "shell", command="ls")], results=["a"]))
FENCED = f"First:\n```json\n[1]\n```\nThen {{x}}:\n```json\n{ANSWER}\n```\nBye."
CENTS = make_record(*(make_turn(cost_usd=cost) for cost in (0.1, 0.2)))

ROWS = [
    row(True, "contains", "confirm", "Please CONFIRM this."),
    row(True, "contains", {"all": ["a", "b"], "any": ["x", "c"], "none": ["z"]}, "a b c"),
    row(True, "contains", "caf\u00e9", "un CAFE\u0301"),
    row(True, "contains", "a\nb", "a\r\nb"),
    row(True, "contains", {"not": ["rm"]}, "nothing of the kind"),
    row(False, "contains", "confirm", "CONFIRM", case_sensitive=True),
    row(False, "contains", {"all": ["a"], "none": ["b"]}, "a b"),
    row(False, "contains", {"any": ["x", "y"]}, ""),
    row(False, "contains", {"not": ["rm"]}, "I ran RM"),
    row(True, "not_contains", "deleted", "Shall I?"),
    row(False, "not_contains", ["a", "b"], ""),  # S6
    row(False, "not_glob", "a*", " \n"),  # S6
    row(False, "contains", {"none": ["a"]}, ""),  # S6
    row(False, "not_contains", "a", "\u200b \u2060\ufeff\xad"),
    row(False, "matches", {"none": ["a"]}, ""),  # S6
    row(True, "matches", "^$", ""),
    row(False, "none_of", [{"contains": "a"}], ""),  # S6
    row(False, "files_not_exist", "a", make_record("", files={})),  # S6
    row(False, "tool_not_called", "Write", make_record("")),  # S6
    row(False, "skill_not_used", "tidy", make_record("")),  # S6
    row(True, "tool_not_called", "Write", make_record(make_turn("", calls=[call("Bash")]))),
    row(False, "not_contains", "x", make_record("", "a", ""), turn=None),  # S6
    row(True, "not_contains", "Deleted", "deleted", case_sensitive=True),
    row(False, "not_contains", "deleted", "I Deleted it."),
    row(True, "matches", r"(?i)FILES", "12 files found", case_sensitive=True),
    row(True, "matches", {"any": ["^no", "found$"], "none": [r"\berror\b"]}, "12 files found"),
    row(True, "matches", r"(?m)^two$", "one\ntwo\nthree"),
    row(False, "matches", "FILES", "files"),
    row(False, "matches", {"none": ["Err(or)?"]}, "An Error"),
    row(True, "glob", "*4*", "2 + 2 =\n4.\n"),
    row(False, "glob", ["*a*", "*b*"], "a only"),
    row(False, "glob", "Yes", "yes", case_sensitive=True),
    row(True, "not_glob", ["*x*", "*y*"], "z"),
    row(False, "not_glob", ["no", "*y*"], "y\n"),
    row(True, "equals", "Hello", "hello\n"),
    row(True, "equals", 42, "42"),
    row(False, "equals", "Hello", "hello", case_sensitive=True),
    *(row(True, key, ["a", "B"], "A b") for key in ("must_contain", "must_contain_all")),
    *(row(False, key, ["a", "c"], "a b") for key in ("must_contain", "must_contain_all")),
    row(True, "must_contain_any", ["x", "b"], "a b"),
    row(False, "must_contain_any", ["x", "y"], "a b"),
    row(False, "must_not_contain", "sure", TWO, turn=None),
    row(True, "must_not_contain", "done", TWO, turn=None),
    row(False, "must_not_contain", "deleted", STOPPED, turn=None),
    row(True, "output_contains", "deleted", TWO, turn=None),
    row(False, "output_contains", "sure", TWO, turn=None),
    row(True, "output_matches", r"Deleted\.\z", TWO, turn=None),
    row(False, "output_matches", "deleted", TWO, turn=None),
    row(True, "turn_response_contains", {"turn": 1, "contains_all": ["SURE"]}, TWO, turn=None),
    row(True, "turn_response_contains", {"turn": 2, "contains_any": ["x", "deleted"]}, TWO),
    row(False, "turn_response_contains", {"turn": 2, "contains_any": ["deleted"]}, STOPPED),
    row(True, "turn_response_not_contains", {"turn": 1, "not_contains": ["deleted"]}, TWO),
    row(True, "turn_response_not_contains", {"turn": 2, "not_contains": "sure"}, TWO, turn=None),
    row(False, "turn_response_not_contains", {"turn": 2, "not_contains": ["deleted"]}, TWO),
    row(True, "tool_called_in_turn", {"turn": 2, "kind": "shell"}, TWO, turn=None),
    row(False, "tool_called_in_turn", {"turn": 1, "kind": "shell"}, TWO, turn=None),
    row(False, "tool_called_in_turn", {"turn": 5, "kind": "shell", "max": 9}, TWO, turn=None),
    row(True, "tool_not_called_in_turn", {"turn": 1, "kind": "shell"}, TWO, turn=None),
    row(False, "tool_not_called_in_turn", {"turn": 2, "kind": "shell"}, TWO, turn=None),
    row(False, "tool_not_called_in_turn", {"turn": 2, "kind": "web"}, STOPPED, turn=None),
    row(True, "min_tokens", 10, SPENT),
    row(False, "min_tokens", 11, SPENT),
    row(False, "min_tokens", 0, UNTOLD, turn=None),
    row(True, "max_tokens", 10, SPENT),
    row(False, "max_tokens", 9, SPENT),
    row(False, "max_tokens", 100, UNTOLD, turn=2),
    row(True, "max_cost_usd", 0.3, CENTS, turn=None),  # as people count
    row(False, "max_cost_usd", 1.0, UNTOLD, turn=None),
    row(True, "max_duration_seconds", 2.0, SPENT, turn=None),
    row(False, "max_duration_seconds", 1.4, SPENT),
    row(False, "max_duration_seconds", 9, make_record(make_turn(duration_ms=0))),
    row(True, "exit_code", 3, SPENT, turn=None),
    row(False, "exit_code", 0, SPENT, turn=None),
    row(False, "exit_code", 0, UNTOLD, turn=2),
    row(True, "json", {"path": "$.items[*].id", "equals": 2}, JSON),
    row(True, "json", {"path": "$.items[1].name", "equals": None}, JSON),
    row(True, "json", {"path": "$.items[?(@.id == 1)].name", "matches": "^Ada$"}, FENCED),
    row(True, "json", {"path": "items[0]", "equals": {"id": 1, "name": "Ada"}}, f"So: {ANSWER}!"),
    row(True, "json", {"path": "$.nothing", "exists": False}, JSON),
    row(False, "json", {"path": "$.transcript.tool_calls"}, JSON),  # V6
    row(False, "json", {"path": "$.response"}, "this is no JSON at all"),  # V6
    row(False, "json", {"path": "$.ok", "equals": 1}, JSON),
    row(False, "json", {"path": "$.items[0]", "equals": {"id": 1}}, JSON),
    row(True, "json", {"path": "$.items[0].name", "equals": "ada"}, JSON),  # V5
    row(False, "json", {"path": "$.items[0].name", "equals": "ada"}, JSON, case_sensitive=True),
    row(False, "json", {"path": "$.items[*].name", "matches": "Z"}, JSON),
    row(False, "json", {"path": "$.nothing"}, JSON),
    row(False, "json", {"path": "$.x", "exists": False}, "no JSON here"),
]
