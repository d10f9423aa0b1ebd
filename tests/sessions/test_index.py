"""Finding the sessions of both CLIs, newest first."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.sessions.index import (
    find_session,
    newest_heads,
    session_files,
    session_format,
    session_homes,
)
from tests.support.session_files import claude_row, codex_meta, said, write_rows


def add_claude(homes: dict[str, Path], session_id: str, when: int, cwd: str = "/p") -> Path:
    row = claude_row("user", f"words of {session_id}", "1", None, sessionId=session_id, cwd=cwd)
    path = write_rows(homes["claude_code"] / "-p" / f"{session_id}.jsonl", [row])
    os.utime(path, (when, when))
    return path


def add_codex(homes: dict[str, Path], thread_id: str, when: int, cwd: str = "/p") -> Path:
    name = f"rollout-2026-01-02T03-04-05-{thread_id}.jsonl"
    rows = [codex_meta(thread_id, cwd), *said("user", f"words of {thread_id}")]
    path = write_rows(homes["codex"] / "2026" / "01" / "02" / name, rows)
    os.utime(path, (when, when))
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}


@pytest.fixture
def homes(environment: dict[str, str]) -> dict[str, Path]:
    return session_homes(environment)


def test_homes_are_those_that_the_clis_use() -> None:
    assert session_homes({"HOME": "/home/a"}) == {
        "claude_code": Path("/home/a/.claude/projects"),
        "codex": Path("/home/a/.codex/sessions"),
    }
    given = session_homes({"HOME": "/home/a", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x"})
    assert given == {"claude_code": Path("/c/projects"), "codex": Path("/x/sessions")}


def test_sessions_of_both_come_newest_first_without_sub_agents_and_other_files(
    homes: dict[str, Path],
) -> None:
    assert session_files(homes) == []
    path = add_claude(homes, "b", 200)
    rollout = add_codex(homes, "t", 300)
    add_claude(homes, "a", 100)
    for other in ("a/subagents/agent-1.jsonl", "agent-2.jsonl", "notes.txt"):
        target = path.parent / other
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(path, target)
    shutil.copy(rollout, rollout.with_name("history.jsonl"))
    # Pipes and devices would be read for ever.
    os.mkfifo(path.with_name("fifo.jsonl"))
    path.with_name("zero.jsonl").symlink_to("/dev/zero")
    path.with_name("folder.jsonl").mkdir()
    os.mkfifo(rollout.with_name(rollout.name.replace("-t.", "-pipe.")))

    found = session_files(homes)

    assert [(file.engine, file.session_id, file.modified) for file in found] == [
        ("codex", "t", 300),
        ("claude_code", "b", 200),
        ("claude_code", "a", 100),
    ]
    heads = [head for _, head in newest_heads(found, None, 10)]
    assert [(one.first_words, one.turns) for one in heads] == [
        ("words of t", 1),
        ("words of b", 1),
        ("words of a", 1),
    ]


def test_no_more_files_are_opened_than_are_asked_for_and_others_are_left_out(
    homes: dict[str, Path],
) -> None:
    for number in range(5):
        add_claude(homes, f"s{number}", 100 + number)
    folder = homes["claude_code"] / "-p"
    write_rows(folder / "other.jsonl", [{"a": 1}])
    (folder / "empty.jsonl").touch()
    (folder / "bytes.jsonl").write_bytes(b"\0" * 500)
    files = session_files(homes)
    assert len(files) == 8
    for name in ("s2", "s1", "s0"):
        (folder / f"{name}.jsonl").unlink()
    assert [file.session_id for file, _ in newest_heads(files, None, 2)] == ["s4", "s3"]
    assert len(newest_heads(files, None, 9)) == 2


def test_only_sessions_of_a_project_and_what_is_below_it(
    homes: dict[str, Path], tmp_path: Path
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    add_claude(homes, "in", 100, "/work/app")
    add_codex(homes, "below", 200, "/work/app/src")
    add_claude(homes, "beside", 300, "/work/app2")
    add_codex(homes, "above", 400, "/work")
    add_claude(homes, "linked", 500, str(real.resolve()))
    add_claude(homes, "escaped", 600, '/work/"a"\\x')
    files = session_files(homes)

    def of(project: Path) -> list[str]:
        return [file.session_id for file, _ in newest_heads(files, project, 10)]

    assert of(Path("/work/app")) == ["below", "in"]
    assert of(tmp_path / "link") == ["linked"]
    assert of(Path('/work/"a"\\x')) == ["escaped"]


def test_a_session_is_named_by_its_id_the_beginning_of_it_or_its_path(
    homes: dict[str, Path], environment: dict[str, str]
) -> None:
    path, longer = add_claude(homes, "abc-1", 100), add_claude(homes, "abc-12", 200)
    assert find_session("abc-12", environment) == longer
    assert find_session("abc-1", environment) == path  # whole ids come first
    assert find_session(str(path), environment) == path
    for wrong in ("zz", "", "/no/such/file.jsonl", "none.jsonl", "x" * 5000):
        with pytest.raises(UsageError) as refused:
            find_session(wrong, environment)
        assert "session list" in (refused.value.hint or "")
    paths = [add_claude(homes, f"abd-{number:02}", 100 + number) for number in range(12)]
    with pytest.raises(UsageError, match="may be any of 12 sessions") as refused:
        find_session("abd", environment)
    assert f"claude_code  abd-11  {paths[11]}" in refused.value.message


def test_a_file_that_is_no_session_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "x.jsonl", [{"a": 1}])
    with pytest.raises(UsageError, match="no session of Claude Code or Codex"):
        session_format(path)
    with pytest.raises(UsageError):
        session_format(tmp_path / "missing.jsonl")
