"""What of a workspace becomes a fixture."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.interop.session_fixture import Selected, copy_files, select_files

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    for name in (
        *("README.md", "src/a.py", ".env", "config/server.pem", ".env.example", "old.log"),
        *("node_modules/x/index.js", "src/__pycache__/a.pyc", ".aws/credentials"),
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name, "utf-8")
    (place / "large.bin").write_bytes(b"x" * ((1 << 20) + 1))
    (place / "inside").symlink_to("README.md")
    (place / "outside").symlink_to("../elsewhere")
    (place / "absolute").symlink_to(place / "README.md")
    return place


def left(selected: Selected) -> dict[str, list[str]]:
    return {why: sorted(paths) for why, paths in selected.left_out.items()}


def test_secrets_links_out_large_files_and_what_is_made_stay_out(workspace: Path) -> None:
    selected = select_files(workspace, ENVIRONMENT)
    assert sorted(selected.files) == [
        ".env.example",
        "README.md",
        "inside",
        "old.log",
        "src/a.py",
    ]
    assert left(selected) == {
        "may hold secrets": [".aws/credentials", ".env", "config/server.pem"],
        "a link that leads out": ["absolute", "outside"],
        "over 1 MiB": ["large.bin"],
        "not part of a workspace": ["node_modules/", "src/__pycache__/"],
    }


def test_what_git_ignores_stays_out(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("*.log\n", "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True, env=ENVIRONMENT)
    selected = select_files(workspace, ENVIRONMENT)
    assert "old.log" not in selected.files
    assert ".gitignore" in selected.files
    assert not any(path.startswith(".git/") for path in selected.files)
    assert ".env" not in selected.files


def test_files_are_copied_with_their_mode_and_links_as_links(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "src/a.py").chmod(0o755)
    fixture = tmp_path / "cases/fixtures/x"
    copy_files(workspace, select_files(workspace, ENVIRONMENT), fixture, force=False)
    assert (fixture / "src/a.py").stat().st_mode & 0o777 == 0o755
    assert (fixture / "inside").readlink() == Path("README.md")
    assert not (fixture / ".env").exists()


def test_a_fixture_that_is_there_is_not_touched_without_force(
    workspace: Path, tmp_path: Path
) -> None:
    fixture = tmp_path / "fixture"
    fixture.mkdir()
    selected = select_files(workspace, ENVIRONMENT)
    with pytest.raises(UsageError, match="is there already"):
        copy_files(workspace, selected, fixture, force=False)
    assert list(fixture.iterdir()) == []
    copy_files(workspace, selected, fixture, force=True)
    assert (fixture / "README.md").is_file()


def test_a_workspace_that_is_gone_or_a_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not here any more"):
        select_files(tmp_path / "none", ENVIRONMENT)
    with pytest.raises(UsageError, match="too much"):
        select_files(tmp_path, {**ENVIRONMENT, "HOME": str(tmp_path)})
    with pytest.raises(UsageError, match="too much"):
        select_files(Path("/"), ENVIRONMENT)
