"""What judges that are programs get to see of a record."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.judges.artifacts import (
    LED_OUT,
    CannotJudgeError,
    as_json,
    as_markdown,
    copy_of,
    diff_lines,
    file_list,
    make_read_only,
)
from skillup.judges.material import exchanges_of
from skillup.schema.record import FileState, HistoryItem, ToolCall, ToolResult
from tests.support.records import call, file_states, make_record, make_turn, read_file


def _link(target: str) -> FileState:
    return FileState(sha256=None, size=1, link=target)


def test_a_copy_has_contents_modes_and_links_and_can_be_made_read_only(tmp_path: Path) -> None:
    files = file_states({"a/b.txt": "b", "run": b"\0x"})
    files["run"] = replace(files["run"], executable=True)
    files |= {"a/up": _link("./../run"), "a/gone": _link("nothing"), "out": _link("../x")}
    files |= {"abs": _link("/etc/passwd"), "deep/out": _link("../../x")}

    copy = tmp_path / "copy"
    lacks = copy_of(files, read_file, copy)

    assert (copy / "a/b.txt").read_text() == "b"
    assert os.readlink(copy / "a/up") == "./../run"  # noqa: PTH115
    assert (copy / "a/gone").is_symlink()
    assert stat.S_IMODE((copy / "run").stat().st_mode) == 0o755
    assert lacks[LED_OUT] == ["out", "abs", "deep/out"]
    make_read_only(copy)
    assert stat.S_IMODE((copy / "a").stat().st_mode) == 0o555
    assert stat.S_IMODE((copy / "run").stat().st_mode) == 0o555


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x"])
def test_a_path_out_of_the_workspace_is_never_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(CannotJudgeError, match="no path of a workspace"):
        copy_of(file_states({path: "x"}), read_file, tmp_path / "copy")


def test_no_link_leads_out_by_way_of_another(tmp_path: Path) -> None:
    """A script would compare the answer key with itself."""
    (tmp_path / "key").write_text("answer")
    up = {"a/b/up": _link("../.."), "key": _link("a/b/up/../key"), "same": _link("a/b/up/x")}
    lacks = copy_of({**up, **file_states({"x": "x"})}, read_file, tmp_path / "copy")

    assert lacks[LED_OUT] == ["key"]
    assert not os.path.lexists(tmp_path / "copy/key")
    assert (tmp_path / "copy/same").read_text() == "x"


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    files = {"d": _link("../outside"), **file_states({"d/x": "x"})}

    copy_of(files, read_file, tmp_path / "copy")

    assert list((tmp_path / "outside").iterdir()) == []


def test_the_transcript_is_complete_in_both_forms() -> None:
    turn = make_turn(
        "# Done", content="Go\non", calls=[call("Bash", "shell", command="ls")], results=["a\nb"]
    )
    made = ToolCall(id="h", name="Read", kind="read", arguments={"path": "x"})
    history = [
        HistoryItem(role="user", content="before"),
        HistoryItem(role="assistant", tool_calls=[made]),
        HistoryItem(role="tool", tool_result=ToolResult(call_id="h", status="success", content="")),
    ]

    entries = json.loads(as_json([turn], history))
    record = make_record(turn).record.model_copy(update={"history": history})
    pieces = as_markdown(exchanges_of(record, None))

    said = ["user", "tool_call", "tool_result"]
    assert [entry["role"] for entry in entries] == [*said, *said, "assistant"]
    assert [entry["turn"] for entry in entries] == [0] * 3 + [1] * 4
    assert entries[4]["tool_call"]["arguments"] == {"command": "ls"}
    assert entries[5]["tool_result"]["content"] == "a\nb"
    assert len(pieces) == 2
    assert "## user\n\n> Go\n> on" in pieces[1]
    assert "## tool call 1: Bash (shell)" in pieces[1]
    assert "> # Done" in pieces[1]
    assert "\n# Done" not in pieces[1]


def test_changes_are_a_diff_and_a_list() -> None:
    before = file_states({"same": "s", "gone": "g\n", "edit": "1\n2\n"})
    after = file_states({"same": "s", "new\nline": "n\n", "edit": "1\n3\n", "bin": b"\0"})
    after["link"] = _link("same")

    lines = list(diff_lines(before, after, read_file))

    assert "--- a/gone" in lines
    assert "+3" in lines
    assert any("not shown" in line for line in lines)
    assert not any("same" in line for line in lines if line.startswith("---"))
    assert "+++ 'b/new\\nline'" in lines
    listed = [line.split()[0] for line in file_list(before, after).splitlines()]
    assert sorted(listed) == ["added", "added", "added", "deleted", "modified", "unchanged"]
