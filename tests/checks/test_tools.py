"""Whether a skill was used, as real shell commands show it; arguments by portable names."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
    call = ToolCall(id="c", name="Bash", kind="shell", arguments={"command": command})
    result = ToolResult(
        call_id="c",
        status="error" if ran.returncode else "success",
        content=(ran.stdout + ran.stderr).decode(),
    )
    items = [
        TranscriptItem(type="tool_call", tool_call=call),
        TranscriptItem(type="tool_result", tool_result=result),
    ]
    recorded = make_record(make_turn(transcript=items), initial_files=file_states(files))

    assert evaluate(Check(skill_used="tidy"), recorded.context()).passed is used
    assert evaluate(Check(skill_not_used="tidy"), recorded.context()).passed is not used


@pytest.mark.parametrize("ids", [("other",), ("c", "c")])
def test_a_result_shows_the_skill_whatever_call_it_answers(ids: tuple[str, ...]) -> None:
    """V9: of two results of one call the last counted, and one of no known call did not."""
    arguments = {"command": "cat $d/*.md"}
    call = ToolCall(id="c", name="Bash", kind="shell", arguments=arguments)
    contents = (SKILL, "done")[: len(ids)]
    results = [
        ToolResult(call_id=name, status="success", content=content)
        for name, content in zip(ids, contents, strict=True)
    ]
    items = [
        TranscriptItem(type="tool_call", tool_call=call),
        *(TranscriptItem(type="tool_result", tool_result=result) for result in results),
    ]
    recorded = make_record(make_turn(transcript=items), initial_files=file_states({FILE: SKILL}))

    assert evaluate(Check(skill_used="tidy"), recorded.context()).passed
    assert not evaluate(Check(skill_not_used="tidy"), recorded.context()).passed


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
