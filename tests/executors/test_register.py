"""Where running skillups are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.executors.orphans import default_register_dir


def test_it_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_register_dir() == tmp_path / "skillup" / "processes"


@pytest.mark.parametrize("home", ["/dev/null", ""])
def test_without_a_home_that_can_be_written_it_is_among_temporary_files(
    home: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home or str(tmp_path / "file"))
    (tmp_path / "file").touch()
    found = default_register_dir()
    assert found.name == "processes"
    assert not str(found).startswith(("/dev", str(tmp_path)))
