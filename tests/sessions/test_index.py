"""Finding the sessions of both CLIs, newest first."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.sessions.index import (
    count_sessions,
    find_session,
    newest_heads,
    session_files,
    session_format,
    session_homes,
)
from tests.support.session_files import claude_row, codex_meta, said, write_rows


def _claude(homes: dict[str, Path], session_id: str, when: int, cwd: str = "/p") -> Path:
    row = claude_row("user", f"words of {session_id}", "1", None, sessionId=session_id, cwd=cwd)
    path = write_rows(homes["claude_code"] / "-p" / f"{session_id}.jsonl", [row])
    os.utime(path, (when, when))
    return path


def _codex(homes: dict[str, Path], thread_id: str, when: int, cwd: str = "/p") -> Path:
    name = f"rollout-2026-01-02T03-04-05-{thread_id}.jsonl"
    rows = [codex_meta(thread_id, cwd), *said("user", f"words of {thread_id}")]
    path = write_rows(homes["codex"] / "2026" / "01" / "02" / name, rows)
    os.utime(path, (when, when))
    return path


@pytest.fixture
def homes(tmp_path: Path) -> dict[str, Path]:
    given = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}
    return session_homes(given)


def test_homes_are_those_that_the_clis_use(tmp_path: Path) -> None:
    assert session_homes({"HOME": "/home/a"}) == {
        "claude_code": Path("/home/a/.claude/projects"),
        "codex": Path("/home/a/.codex/sessions"),
    }
    given = session_homes({"HOME": "/home/a", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x"})
    assert given == {"claude_code": Path("/c/projects"), "codex": Path("/x/sessions")}


def test_sessions_of_both_come_newest_first(homes: dict[str, Path]) -> None:
    _claude(homes, "b", 200)
    _codex(homes, "0199aaaa-0000-7000-8000-00000000000a", 300)
    _claude(homes, "a", 100)
    found = session_files(homes)
    assert [(file.engine, file.session_id) for file in found] == [
        ("codex", "0199aaaa-0000-7000-8000-00000000000a"),
        ("claude_code", "b"),
        ("claude_code", "a"),
    ]
    assert [file.modified for file in found] == [300, 200, 100]


def test_homes_that_are_not_there_hold_no_sessions(homes: dict[str, Path]) -> None:
    assert session_files(homes) == []


def test_files_of_sub_agents_and_other_files_are_no_sessions(
    homes: dict[str, Path],
) -> None:
    path = _claude(homes, "a", 100)
    for other in ("a/subagents/agent-1.jsonl", "agent-2.jsonl", "notes.txt"):
        target = path.parent / other
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(path, target)
    rollout = _codex(homes, "t", 200)
    shutil.copy(rollout, rollout.with_name("history.jsonl"))
    assert [file.session_id for file in session_files(homes)] == ["t", "a"]


def test_heads_tell_what_a_session_was_about(homes: dict[str, Path]) -> None:
    _claude(homes, "a", 100)
    _codex(homes, "t", 200)
    found = newest_heads(session_files(homes), None, 10)
    assert [(head.summary.first_words, head.summary.turns) for _, head in found] == [
        ("words of t", 1),
        ("words of a", 1),
    ]


def test_no_more_files_are_opened_than_are_asked_for(homes: dict[str, Path]) -> None:
    for number in range(5):
        _claude(homes, f"s{number}", 100 + number)
    files = session_files(homes)
    for file in files[2:]:
        file.path.unlink()
    assert [file.session_id for file, _ in newest_heads(files, None, 2)] == ["s4", "s3"]


def test_files_that_went_away_or_are_no_sessions_are_left_out(
    homes: dict[str, Path],
) -> None:
    _claude(homes, "gone", 300)
    files_before = session_files(homes)
    write_rows(homes["claude_code"] / "-p" / "other.jsonl", [{"a": 1}])
    _claude(homes, "gone", 300).unlink()
    assert newest_heads([*files_before, *session_files(homes)], None, 9) == []


def test_pipes_and_devices_are_no_sessions(homes: dict[str, Path]) -> None:
    """They would be read for ever."""
    path = _claude(homes, "a", 100)
    os.mkfifo(path.with_name("fifo.jsonl"))
    path.with_name("zero.jsonl").symlink_to("/dev/zero")
    path.with_name("folder.jsonl").mkdir()
    path.with_name("linked.jsonl").symlink_to(path)
    rollout = _codex(homes, "t", 200)
    os.mkfifo(rollout.with_name(rollout.name.replace("-t.", "-pipe.")))
    files = session_files(homes)
    assert {file.session_id for file in files} == {"a", "linked", "t"}
    assert len(newest_heads(files, None, 10)) == 3


def test_what_is_no_session_does_not_count_as_one(homes: dict[str, Path]) -> None:
    _claude(homes, "a", 100)
    folder = homes["claude_code"] / "-p"
    write_rows(folder / "other.jsonl", [{"a": 1}])
    (folder / "empty.jsonl").touch()
    (folder / "bytes.jsonl").write_bytes(b"\0" * 500)
    files = session_files(homes)
    assert (len(files), count_sessions(files)) == (4, 1)


def test_only_sessions_of_a_project_and_what_is_below_it(homes: dict[str, Path]) -> None:
    _claude(homes, "in", 100, "/work/app")
    _codex(homes, "below", 200, "/work/app/src")
    _claude(homes, "beside", 300, "/work/app2")
    _codex(homes, "above", 400, "/work")
    found = newest_heads(session_files(homes), Path("/work/app"), 10)
    assert [file.session_id for file, _ in found] == ["below", "in"]


def test_a_project_may_be_named_through_a_link(homes: dict[str, Path], tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    _claude(homes, "a", 100, str(real.resolve()))
    found = newest_heads(session_files(homes), tmp_path / "link", 10)
    assert [file.session_id for file, _ in found] == ["a"]


def test_a_project_with_signs_that_json_escapes(homes: dict[str, Path]) -> None:
    _claude(homes, "a", 100, '/work/"ä"\\x')
    found = newest_heads(session_files(homes), Path('/work/"ä"\\x'), 10)
    assert [file.session_id for file, _ in found] == ["a"]


def test_a_session_is_named_by_its_id_the_beginning_of_it_or_its_path(
    homes: dict[str, Path],
) -> None:
    path = _claude(homes, "abc-1", 100)
    longer = _claude(homes, "abc-12", 200)
    files = session_files(homes)
    assert find_session("abc-12", files) == longer
    assert find_session("abc-1", files) == path  # whole ids come first
    assert find_session(str(path), files) == path


def test_an_unknown_session_says_how_to_list_them(homes: dict[str, Path]) -> None:
    for wrong in ("zz", "", "/no/such/file.jsonl", "none.jsonl", "x" * 5000):
        with pytest.raises(UsageError) as refused:
            find_session(wrong, session_files(homes))
        assert refused.value.hint is not None
        assert "session list" in refused.value.hint


def test_a_beginning_of_several_ids_lists_them(homes: dict[str, Path]) -> None:
    paths = [_claude(homes, f"abc-{number:02}", 100 + number) for number in range(12)]
    with pytest.raises(UsageError) as refused:
        find_session("abc", session_files(homes))
    assert "may be any of 12 sessions" in refused.value.message
    assert f"claude_code  abc-11  {paths[11]}" in refused.value.message
    assert "… and 2 more" in refused.value.message


def test_a_file_that_is_no_session_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "x.jsonl", [{"a": 1}])
    with pytest.raises(UsageError, match="no session of Claude Code or Codex"):
        session_format(path)
    with pytest.raises(UsageError):
        session_format(tmp_path / "missing.jsonl")
