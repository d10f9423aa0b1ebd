"""Portable calls become claude's own, and are still what they were to a check."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.checks.tools import PORTABLE_ARGUMENTS, argument
from skillup.engines.claude_code.events import api_id, call_of, own_call
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ToolCall
from tests.support.pasts import call


@pytest.mark.parametrize(
    ("kind", "given_arguments", "name", "arguments"),
    [
        ("shell", {"command": "ls", "description": "Lists"}, "Bash", None),
        ("shell", {"cmd": ["ls", "a b"]}, "Bash", {"command": "ls 'a b'"}),
        ("read", {"path": "a"}, "Read", {"file_path": "a"}),
        ("read", {"file_path": "a", "limit": 3}, "Read", None),
        ("write", {"path": "a", "text": "x"}, "Write", {"file_path": "a", "content": "x"}),
        (
            "edit",
            {"filename": "a", "old": "x", "new": "y"},
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y"},
        ),
        ("search", {"query": "x", "path": "src"}, "Grep", {"pattern": "x", "path": "src"}),
        ("web", {"uri": "https://a.example"}, "WebFetch", {"url": "https://a.example"}),
        ("web", {"q": "soup"}, "WebSearch", {"query": "soup"}),
        ("skill", {"name": "greeter"}, "Skill", {"skill": "greeter"}),
        ("agent", {"prompt": "look"}, "Agent", None),
        ("read", {"path": "a", "file_path": "b"}, "Read", None),
        ("read", {"path": "a", "filename": "b"}, "Read", {"file_path": "a", "filename": "b"}),
    ],
)
def test_a_portable_call_is_that_of_claudes_tool(
    kind: ToolKind, given_arguments: dict[str, Any], name: str, arguments: dict[str, Any] | None
) -> None:
    expected = given_arguments if arguments is None else arguments

    assert own_call(call("1", kind, **given_arguments)) == (name, expected)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("Bash", "Bash"),
        ("my tool.v2", "my_tool_v2"),
        ("kitchen::stock", "mcp__kitchen__stock"),
        ("::", "mcp__unknown__tool"),
        ("kitchen::", "mcp__kitchen__tool"),
        ("::stock", "mcp__unknown__stock"),
        ("x" * 300, "x" * 128),
    ],
)
def test_a_call_with_a_name_keeps_it_and_its_arguments(name: str, own: str) -> None:
    arguments = {"path": "a", "cmd": ["ls"]}

    assert own_call(call("1", "shell", name, **arguments)) == (own, arguments)


@pytest.mark.parametrize(
    ("kind", "portable"), [(kind, name) for kind, of in PORTABLE_ARGUMENTS.items() for name in of]
)
def test_a_check_finds_portable_arguments_in_claudes_call(kind: ToolKind, portable: str) -> None:
    name, arguments = own_call(call("1", kind, **{portable: "value"}))

    call_id, shown, own_kind, read = call_of(
        {"type": "tool_use", "id": "1", "name": name, "input": arguments}
    )

    assert own_kind == kind
    as_recorded = ToolCall(id=call_id, name=shown, kind=own_kind, arguments=read)
    found = argument(as_recorded, portable)
    assert found is not None
    assert found.value == "value"


@given(st.text())
def test_any_id_becomes_one_that_the_api_takes(call_id: str) -> None:
    own = api_id(call_id)

    assert own
    assert own.replace("-", "a").replace("_", "a").isalnum()
    assert own.isascii()
