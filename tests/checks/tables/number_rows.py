"""Checks of what it took, and of values inside the answer."""

from __future__ import annotations

from tests.support.check_rows import row
from tests.support.records import call, make_record, make_turn

SPENT = make_record(
    make_turn(output_tokens=10, cost_usd=0.01, duration_ms=1500, exit_code=0),
    make_turn(output_tokens=30, cost_usd=0.02, duration_ms=500, exit_code=3),
)
UNTOLD = make_record(make_turn(output_tokens=10, cost_usd=0.01), make_turn(exit_code=None))
ANSWER = '{"items": [{"id": 1, "name": "Ada"}, {"id": 2.0, "name": null}], "ok": true, "usage": 5}'
JSON = make_record(make_turn(ANSWER, calls=[call("Bash", "shell", command="ls")], results=["a"]))
FENCED = f"First:\n```json\n[1]\n```\nThen {{x}}:\n```json\n{ANSWER}\n```\nBye."

ROWS = [
    row(True, "min_tokens", 10, SPENT),
    row(True, "min_tokens", 0, SPENT, turn=2),
    row(False, "min_tokens", 11, SPENT),
    row(False, "min_tokens", 0, UNTOLD, turn=None),
    row(True, "max_tokens", 10, SPENT),
    row(False, "max_tokens", 9, SPENT),
    row(False, "max_tokens", 100, UNTOLD, turn=2),
    row(True, "max_cost_usd", 0.01, SPENT),
    row(
        True,
        "max_cost_usd",
        0.3,
        make_record(*(make_turn(cost_usd=c) for c in (0.1, 0.2))),
        turn=None,
    ),  # as people count
    row(False, "max_cost_usd", 0.009, SPENT),
    row(False, "max_cost_usd", 0.02, SPENT, turn=None),
    row(False, "max_cost_usd", 1.0, UNTOLD, turn=None),
    row(True, "max_duration_seconds", 1.5, SPENT),
    row(True, "max_duration_seconds", 2.0, SPENT, turn=None),
    row(False, "max_duration_seconds", 1.4, SPENT),
    row(True, "exit_code", 3, SPENT, turn=2),
    row(True, "exit_code", 3, SPENT, turn=None),
    row(False, "exit_code", 0, SPENT, turn=None),
    row(False, "exit_code", 0, UNTOLD, turn=2),
    row(True, "json", {"path": "$.items[0].name", "equals": "Ada"}, JSON),
    row(True, "json", {"path": "$.items[*].id", "equals": 2}, JSON),
    row(True, "json", {"path": "$.items[1].name", "equals": None}, JSON),
    row(True, "json", {"path": "$.items[?(@.id == 1)].name", "matches": "^Ada$"}, FENCED),
    row(True, "json", {"path": "items[0]", "equals": {"id": 1, "name": "Ada"}}, f"So: {ANSWER}!"),
    row(True, "json", {"path": "$.nothing", "exists": False}, JSON),
    row(True, "json", {"path": "$.usage", "equals": 5}, JSON),
    row(False, "json", {"path": "$.transcript.tool_calls"}, JSON),  # V6
    row(False, "json", {"path": "$.response"}, "this is no JSON at all"),  # V6
    row(False, "json", {"path": "$.usage"}, "this is no JSON at all"),  # V6
    row(False, "json", {"path": "$.ok", "equals": 1}, JSON),
    row(False, "json", {"path": "$.items[0]", "equals": {"id": 1}}, JSON),
    row(True, "json", {"path": "$.items[0].name", "equals": "ada"}, JSON),  # V5
    row(False, "json", {"path": "$.items[0].name", "equals": "ada"}, JSON, case_sensitive=True),
    row(False, "json", {"path": "$.items[*].name", "matches": "Z"}, JSON),
    row(False, "json", {"path": "$.nothing"}, JSON),
    row(False, "json", {"path": "$"}, "no JSON here"),
    row(False, "json", {"path": "$.x", "exists": False}, "no JSON here"),
]
