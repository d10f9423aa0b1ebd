"""The files of a home that are logins."""

from __future__ import annotations

from skillup.engines.claude_code import engine as claude_code
from skillup.engines.codex import engine as codex
from skillup.engines.environment import LOGIN_FILES


def test_the_logins_of_all_clis_are_known() -> None:
    homes = [claude_code.HOME, codex.HOME]
    assert {f"home/{home.directory}/{home.login_file}" for home in homes} == set(LOGIN_FILES)
