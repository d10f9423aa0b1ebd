"""A session is cut back to what it held before a message, and a touched workspace is noticed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from skillup.schema.record import SessionFingerprint
from skillup.trial.session import rewind_sessions, session_files, workspace_signature

SESSION = "home/.claude/projects/x/s-1.jsonl"


def fingerprint(text: str) -> SessionFingerprint:
    sha = hashlib.sha256(text.encode()).hexdigest()
    return SessionFingerprint(
        session_id="s-1", messages=1, prefix_sha256=sha, prefix_bytes=len(text)
    )


@pytest.mark.parametrize(
    ("now", "is_back"),
    [
        ("one\n", True),
        ("one\ntwo\n", True),
        ("one\ntwo\ncut", True),
        ("ONE\ntwo\n", False),
        ("on", False),
        (None, False),
    ],
)
def test_a_session_is_cut_back_to_exactly_what_it_held(
    tmp_path: Path, now: str | None, is_back: bool
) -> None:
    file, other = tmp_path / SESSION, tmp_path / "home/.codex/sessions/new.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("one\n")
    before = session_files(tmp_path)
    assert before == {SESSION: 4}
    other.parent.mkdir(parents=True)
    other.write_text("{}\n")
    file.unlink() if now is None else file.write_text(now)
    problem = rewind_sessions(tmp_path, before, fingerprint("one\n"))
    assert (problem is None) is is_back
    assert not other.exists()
    if is_back:
        assert file.read_text() == "one\n"


def test_a_workspace_that_was_touched_has_another_signature(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").write_text("a")
    (tmp_path / ".git/index").write_text("i")
    first = workspace_signature(tmp_path)
    assert first is not None
    os.utime(tmp_path / ".git/index", ns=(1, 1))
    (tmp_path / ".git/index.lock").touch()
    (tmp_path / ".git/index.lock").unlink()
    assert workspace_signature(tmp_path) == first
    for change in (
        lambda: (tmp_path / "a").write_text("b"),
        lambda: (tmp_path / "a").chmod(0o700),
        lambda: (tmp_path / "new").mkdir(),
        lambda: (tmp_path / ".git/HEAD").write_text("x"),
    ):
        before = workspace_signature(tmp_path)
        change()
        assert workspace_signature(tmp_path) != before


def test_a_workspace_that_is_gone_or_was_replaced_has_none(tmp_path: Path) -> None:
    assert workspace_signature(tmp_path / "gone") is None
    (tmp_path.parent / "link").symlink_to(tmp_path)
    assert workspace_signature(tmp_path.parent / "link") is None
