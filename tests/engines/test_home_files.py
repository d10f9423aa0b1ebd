"""The files of a home that no copy is made of."""

from __future__ import annotations

import pytest

from skillup.engines.claude_code import engine as claude_code
from skillup.engines.codex import engine as codex
from skillup.engines.environment import LOGIN_FILES, is_passing


def test_the_logins_of_all_clis_are_known() -> None:
    homes = [claude_code.HOME, codex.HOME]
    assert {f"home/{home.directory}/{home.login_file}" for home in homes} == set(LOGIN_FILES)


@pytest.mark.parametrize(
    ("path", "passing"),
    [
        ("home/.codex/auth.json", True),
        ("home/.codex/logs_2.sqlite-wal", True),
        ("home/.codex/sessions/auth.json", False),
        ("home/.claude/projects/x/s.jsonl", False),
        ("scripted-agent/sessions/s.jsonl", False),
        ("tmp", True),
    ],
)
def test_caches_and_logins_pass_and_sessions_stay(path: str, passing: bool) -> None:
    assert is_passing(path) is passing
