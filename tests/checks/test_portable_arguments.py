"""Arguments have portable names where the kinds of calls have."""

from __future__ import annotations

import pytest

from skillup.checks import evaluate
from skillup.schema.check_specs import ToolKind
from skillup.schema.checks import Check
from tests.support.records import call, make_record, make_turn


@pytest.mark.parametrize(
    ("kind", "arguments", "wanted"),
    [
        ("write", {"file_path": "/w/PLAN.md"}, {"path": {"matches": r"PLAN\.md$"}}),
        ("read", {"file_path": "a.txt"}, {"path": "a.txt"}),
        ("edit", {"notebook_path": "a.ipynb"}, {"path": {"contains": "ipynb"}}),
        ("shell", {"cmd": "rm -r x"}, {"command": {"contains": "rm"}}),
        ("skill", {"name": "log-keeper"}, {"skill": "log-keeper"}),
        # V10: the name of one engine means what another calls it, too
        ("write", {"path": "PLAN.md"}, {"file_path": "PLAN.md"}),
        ("write", {"path": "a.ipynb"}, {"notebook_path": "a.ipynb"}),
        ("write", {"content": "key=1"}, {"file_text": {"contains": "key"}}),
        ("edit", {"filename": "a.txt"}, {"file_path": "a.txt"}),
        ("shell", {"command": "rm -r x"}, {"cmd": {"contains": "rm"}}),
        ("search", {"regex": "x"}, {"query": "x"}),
    ],
)
def test_a_portable_name_means_what_the_engine_calls_it(
    kind: ToolKind, arguments: dict[str, str], wanted: dict[str, object]
) -> None:
    recorded = make_record(make_turn(calls=[call("Tool", kind, **arguments)]))
    check = Check.model_validate({"tool_called": {"kind": kind, "args": wanted}})
    assert evaluate(check, recorded.context()).passed
    absent = Check.model_validate({"tool_not_called": {"kind": kind, "args": wanted}})
    assert not evaluate(absent, recorded.context()).passed


def test_the_engines_own_name_outranks_the_portable_one() -> None:
    both = call("Write", "write", path="own", file_path="other")
    recorded = make_record(make_turn(calls=[both]))
    check = Check.model_validate({"tool_called": {"kind": "write", "args": {"path": "other"}}})
    assert not evaluate(check, recorded.context()).passed


def test_a_name_that_is_portable_for_one_kind_means_nothing_for_another() -> None:
    recorded = make_record(make_turn(calls=[call("Bash", "shell", file_path="x")]))
    check = Check.model_validate({"tool_called": {"kind": "shell", "args": {"path": "x"}}})
    assert not evaluate(check, recorded.context()).passed
