"""Calls of a history in Codex's form, and what our reader makes of them again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillup.engines.codex.created_sessions import CreatedCall, created_call
from skillup.engines.codex.tools import calls_of_item
from skillup.schema.record import ToolCall


def placed(kind: str, name: str = "", **arguments: Any) -> CreatedCall:
    given = {"id": "c", "name": name, "kind": kind, "arguments": arguments}
    return created_call(ToolCall.model_validate(given))


def read_again(call: CreatedCall) -> list[tuple[str, str, dict[str, Any]]]:
    payload = {"name": call.name, "namespace": call.namespace}
    payload["input" if call.is_freeform else "arguments"] = call.arguments
    found = calls_of_item("c", {k: v for k, v in payload.items() if v is not None})
    return [(each.name, each.kind, each.arguments) for each in found]


@pytest.mark.parametrize(
    ("given", "command"),
    [
        (placed("shell", command="ls -l"), "ls -l"),
        (placed("shell", cmd="ls -l"), "ls -l"),
        (placed("shell", command=["cat", "a b"]), "cat 'a b'"),
        (placed("shell", "command_execution", command="ls"), "ls"),
        (placed("shell", "exec_command", cmd="ls"), "ls"),
        (placed("read", path="a b.txt"), "cat 'a b.txt'"),
        (placed("read", file_path="/a/b"), "cat /a/b"),
        (placed("search", pattern="x y", path="src"), "rg -n -e 'x y' src"),
        (placed("search", query="-x"), "rg -n -e -x ."),
        (placed("skill", skill="greeter"), "cat .agents/skills/greeter/SKILL.md"),
    ],
)
def test_what_codex_does_by_the_shell(given: CreatedCall, command: str) -> None:
    assert given.name == "exec_command"
    assert json.loads(given.arguments)["cmd"] == command
    assert read_again(given) == [("command_execution", "shell", {"command": command})]


def test_other_arguments_of_the_shell_are_kept() -> None:
    given = placed("shell", command="ls", workdir="/w")

    assert json.loads(given.arguments) == {"cmd": "ls", "workdir": "/w"}


@pytest.mark.parametrize(
    ("given", "lines", "read"),
    [
        (
            placed("write", path="a.txt", content="one\ntwo"),
            ["*** Add File: a.txt", "+one", "+two"],
            ("file_change", "write", {"path": "a.txt", "change": "add"}),
        ),
        (
            placed("write", file_path="empty", content=""),
            ["*** Add File: empty"],
            ("file_change", "write", {"path": "empty", "change": "add"}),
        ),
        (
            placed("edit", file_path="a.txt", old_string="one\n", new_string="two\nthree\n"),
            ["*** Update File: a.txt", "@@", "-one", "+two", "+three"],
            ("file_change", "edit", {"path": "a.txt", "change": "update"}),
        ),
        (
            placed("edit", "file_change", path="a.txt", change="delete"),
            ["*** Delete File: a.txt"],
            ("file_change", "edit", {"path": "a.txt", "change": "delete"}),
        ),
    ],
)
def test_files_are_changed_by_patches(
    given: CreatedCall, lines: list[str], read: tuple[str, str, dict[str, Any]]
) -> None:
    assert given.is_freeform
    assert given.arguments.splitlines() == ["*** Begin Patch", *lines, "*** End Patch"]
    assert read_again(given) == [read]


def test_a_patch_stays_as_it_is() -> None:
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"

    assert placed("edit", "apply_patch", input=patch).arguments == patch
    assert placed("edit", patch=patch).arguments == patch


@pytest.mark.parametrize(
    ("given", "name", "kind"),
    [
        (placed("web", query="cats"), "web_search", "web"),
        (placed("agent", prompt="go"), "spawn_agent", "agent"),
        (placed("other", x=1), "other", "other"),
        (placed("write", unknown="form"), "write", "other"),
        (placed("edit", path="a.txt"), "edit", "other"),
        (placed("read"), "read", "other"),
        (placed("shell", "Bash", command="ls"), "Bash", "other"),
        (placed("other", "odd name.v2", x=1), "odd_name_v2", "other"),
    ],
)
def test_anything_else_is_a_function_of_its_name(given: CreatedCall, name: str, kind: str) -> None:
    assert given.type == "function_call"
    assert read_again(given) == [(name, kind, json.loads(given.arguments))]


def test_an_mcp_tool_is_in_the_namespace_of_its_server() -> None:
    given = placed("mcp", "tiny::add", a=2)

    assert (given.namespace, given.name) == ("mcp__tiny", "add")
    assert read_again(given) == [("tiny::add", "mcp", {"a": 2})]


@pytest.mark.parametrize(
    ("name", "namespace", "tool"),
    [
        ("::", "mcp__unknown", "tool"),
        ("tiny::", "mcp__tiny", "tool"),
        ("::add", "mcp__unknown", "add"),
    ],
)
def test_no_part_of_an_mcp_tools_name_is_empty(name: str, namespace: str, tool: str) -> None:
    given = placed("mcp", name)

    assert (given.namespace, given.name) == (namespace, tool)
