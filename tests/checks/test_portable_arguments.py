"""Arguments have portable names where the kinds of calls have."""

from __future__ import annotations

import pytest

from skillup.checks.evaluate import evaluate
from skillup.schema.checks import Check, ToolKind
from tests.support.records import call, make_record, make_turn


@pytest.mark.parametrize(
    ("kind", "arguments", "wanted"),
    [
        ("write", {"file_path": "/w/PLAN.md"}, {"path": {"matches": r"PLAN\.md$"}}),
        ("read", {"file_path": "a.txt"}, {"path": "a.txt"}),
        ("shell", {"cmd": "rm -r x"}, {"command": {"contains": "rm"}}),
        # V10: the name of one engine means what another calls it, too
        ("write", {"path": "PLAN.md"}, {"file_path": "PLAN.md"}),
        ("write", {"path": "a.ipynb"}, {"notebook_path": "a.ipynb"}),
        ("write", {"content": "key=1"}, {"file_text": {"contains": "key"}}),
        ("shell", {"command": "rm -r x"}, {"cmd": {"contains": "rm"}}),
        ("shell", {"cmd": ["bash", "-lc"]}, {"command.1": "-lc"}),
        ("edit", {"edits": [{"filename": "a.txt"}]}, {"edits.0.path": "a.txt"}),
        # V10: spellings of one path, whatever the tool
        *(
            (kind, {name: written}, {wanted_name: wanted})
            for written in ("data/a.txt", "./data/a.txt", "/w/s/data//a.txt", "data/../data/a.txt")
            for kind, name, wanted_name in (
                ("write", "file_path", "path"),
                ("mcp", "path", "path"),
                ("search", "path", "path"),
            )
            for wanted in (
                "data/a.txt",
                "./DATA/a.txt",
                "/w/s/data/a.txt",
                {"matches": r"^data/a\.txt$"},
                {"contains": "data/a"},
            )
        ),
        # V5: literal text, wherever in the value
        ("write", {"path": "b.txt"}, {"path": "B.TXT"}),
        ("mcp", {"a": [{"b": "x"}, 1, True, None]}, {"a": [{"b": "X"}, 1.0, True, None]}),
    ],
)
def test_a_portable_name_means_what_the_engine_calls_it(
    kind: ToolKind, arguments: dict[str, object], wanted: dict[str, object]
) -> None:
    recorded = make_record(make_turn(calls=[call("Tool", kind, **arguments)], workspace="/w/s"))
    check = Check.model_validate({"tool_called": {"kind": kind, "args": wanted}})
    assert evaluate(check, recorded.context()).passed
    absent = Check.model_validate({"tool_not_called": {"kind": kind, "args": wanted}})
    assert not evaluate(absent, recorded.context()).passed


def test_a_name_that_is_portable_for_one_kind_means_nothing_for_another() -> None:
    recorded = make_record(make_turn(calls=[call("Bash", "shell", file_path="x")]))
    check = Check.model_validate({"tool_called": {"kind": "shell", "args": {"path": "x"}}})
    assert not evaluate(check, recorded.context()).passed


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"path": "/w/other/a.txt"}, {"path": "a.txt"}),
        ({"path": "/w/sa.txt"}, {"path": "a.txt"}),
        ({"path": "../a.txt"}, {"path": "a.txt"}),
        ({"note": "./a.txt"}, {"note": "a.txt"}),
        ({"a": True}, {"a": 1}),
        ({"a": "1"}, {"a": 1}),
        ({"a": None}, {"a": ""}),
        ({"a": {"B": "x"}}, {"a": {"b": "x"}}),
    ],
)
def test_other_files_and_values_stay_others(
    arguments: dict[str, object], wanted: dict[str, object]
) -> None:
    """V5, V10: only letter case and the spelling of a path do not matter."""
    recorded = make_record(make_turn(calls=[call("Tool", "mcp", **arguments)], workspace="/w/s"))
    spec = {"kind": "mcp", "args": wanted}
    assert not evaluate(Check.model_validate({"tool_called": spec}), recorded.context()).passed
    assert evaluate(Check.model_validate({"tool_not_called": spec}), recorded.context()).passed
