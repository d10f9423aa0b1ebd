"""Whether a skill was used, as real shell commands show it; arguments by portable names."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skillup.checks.evaluate import evaluate
from skillup.schema.checks import Check, ToolKind
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem
from tests.support.records import call, file_states, make_record, make_turn

FILE = ".agents/skills/tidy/SKILL.md"
SKILL = """---
name: tidy
description: Tidies a room.
---

# How to tidy

- Put each thing in its place.
- Wipe the table with a wet cloth.
- Say what is left to do.
"""
OTHER = "---\nname: dusty\ndescription: Dusts.\n---\n# How to dust\n\n- Start at the top.\n"
HERE = f"{FILE.removesuffix('/SKILL.md')}"


def is_used(
    command: str, results: list[tuple[str, Any, str]], files: Mapping[str, str] = {FILE: SKILL}
) -> bool:
    """Whether the skill was, by a command and its results: the call's id, a status, a content."""
    call = ToolCall(id="c", name="Bash", kind="shell", arguments={"command": command})
    items = [TranscriptItem(type="tool_call", tool_call=call)]
    for name, status, content in results:
        result = ToolResult(call_id=name, status=status, content=content)
        items.append(TranscriptItem(type="tool_result", tool_result=result))
    context = make_record(make_turn(transcript=items), initial_files=file_states(files)).context()
    used = evaluate(Check(skill_used="tidy"), context).passed
    assert evaluate(Check(skill_not_used="tidy"), context).passed is not used
    return used


@pytest.mark.parametrize(
    ("command", "used"),
    [
        (f"cat {FILE}", True),
        (f"cd {HERE} && cat SKILL.md", True),
        (f"cd $(dirname {FILE}) && cat SKILL.md", True),
        ("cat .*/skills/*/SKILL.md", True),
        (f"cat {HERE}/SKIL*", True),
        ("find . -name SKILL.md -exec cat {} +", True),
        (f'while read -r line; do echo "$line"; done < {FILE}', True),
        (f"cp {FILE} x.md; cat x.md", True),
        (f"cat {FILE}; cat missing.txt", True),
        (f"ls -l {FILE}", False),
        (f"rm {FILE}", False),
        (f"echo 'name: tidy' > {FILE}", False),
        (f"cat {FILE} > /dev/null", False),
        (f"true # cat {FILE}", False),
        (f"grep -l tidy {FILE}", False),
        (f"head -n 4 {FILE}", False),
        ("cat .agents/skills/dusty/SKILL.md", False),
        ("cat .agents/skills/tid/SKILL.md", False),
    ],
)
def test_what_a_command_printed_decides_whether_it_used_the_skill(
    tmp_path: Path, command: str, used: bool
) -> None:
    """V9, S5: the words of a command were taken for what it does."""
    files = {FILE: SKILL, ".agents/skills/dusty/SKILL.md": OTHER}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(content)
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, check=False, capture_output=True)
    printed = (ran.stdout + ran.stderr).decode()
    result = ("c", "error" if ran.returncode else "success", printed)
    assert is_used(command, [result], files) is used


@pytest.mark.parametrize("ids", [("other",), ("c", "c")])
def test_a_result_shows_the_skill_whatever_call_it_answers(ids: tuple[str, ...]) -> None:
    """V9: of two results of one call the last counted, and one of no known call did not."""
    results = zip(ids, (SKILL, "done"), strict=False)
    assert is_used("cat $d/*.md", [(name, "success", content) for name, content in results])


def is_called(kind: ToolKind, arguments: dict[str, object], wanted: dict[str, object]) -> bool:
    turn = make_turn(calls=[call("Tool", kind, **arguments)], workspace="/w/s")
    context, spec = make_record(turn).context(), {"kind": kind, "args": wanted}
    found = evaluate(Check.model_validate({"tool_called": spec}), context).passed
    absent = evaluate(Check.model_validate({"tool_not_called": spec}), context).passed
    assert absent is not found
    return found


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
    assert is_called(kind, arguments, wanted)


@pytest.mark.parametrize(
    ("kind", "arguments", "wanted"),
    [
        ("mcp", {"path": "/w/other/a.txt"}, {"path": "a.txt"}),
        ("mcp", {"path": "/w/sa.txt"}, {"path": "a.txt"}),
        ("mcp", {"path": "../a.txt"}, {"path": "a.txt"}),
        ("mcp", {"note": "./a.txt"}, {"note": "a.txt"}),
        ("mcp", {"a": True}, {"a": 1}),
        ("mcp", {"a": "1"}, {"a": 1}),
        ("mcp", {"a": None}, {"a": ""}),
        ("mcp", {"a": {"B": "x"}}, {"a": {"b": "x"}}),
        # A name that is portable for one kind means nothing for another
        ("shell", {"file_path": "x"}, {"path": "x"}),
    ],
)
def test_other_files_and_values_stay_others(
    kind: ToolKind, arguments: dict[str, object], wanted: dict[str, object]
) -> None:
    """V5, V10: only letter case and the spelling of a path do not matter."""
    assert not is_called(kind, arguments, wanted)
