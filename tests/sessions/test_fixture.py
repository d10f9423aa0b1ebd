"""What of a workspace becomes a fixture."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.sessions.fixture import Selected, copy_files, select_files

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
    for name, target in {
        "inside": "README.md",
        "outside": "../elsewhere",
        "folder": "src",
        "packages": "node_modules",
        "nothing": "gone",
        "again": "again",
    }.items():
        (place / name).symlink_to(target)
    return place


def left(selected: Selected) -> dict[str, list[str]]:
    return {why: sorted(paths) for why, paths in selected.left_out.items()}


def test_secrets_links_out_large_files_and_what_is_made_stay_out(workspace: Path) -> None:
    selected = select_files(workspace, ENVIRONMENT)
    plain = [".env.example", "README.md", "old.log", "src/a.py"]
    assert sorted(selected.files) == plain
    assert left(selected) == {
        "may hold secrets": [".aws/credentials", ".env", "config/server.pem"],
        "a link": ["again", "folder", "inside", "nothing", "outside", "packages"],
        "over 1 MiB": ["large.bin"],
        "not part of a workspace": ["node_modules", "src/__pycache__"],
    }
    (workspace / ".gitignore").write_text("*.log\n", "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True, env=ENVIRONMENT)
    selected = select_files(workspace, ENVIRONMENT)
    assert ".gitignore" in selected.files
    assert not [path for path in selected.files if path.startswith((".git/", "old.log", ".env/"))]


def test_files_are_copied_with_their_mode(workspace: Path, tmp_path: Path) -> None:
    (workspace / "src/a.py").chmod(0o755)
    selected = select_files(workspace, ENVIRONMENT)
    fixture, precious = tmp_path / "cases/fixtures/x", tmp_path / "precious"
    copy_files(workspace, selected, fixture, force=False)
    assert (fixture / "src/a.py").stat().st_mode & 0o777 == 0o755
    assert not (fixture / ".env").exists()
    # What is there is not touched without force; other names of a file keep what they had.
    precious.write_text("mine", "utf-8")
    (fixture / "README.md").unlink()
    (fixture / "README.md").hardlink_to(precious)
    with pytest.raises(UsageError, match="is there already"):
        copy_files(workspace, selected, fixture, force=False)
    assert (fixture / "README.md").read_text("utf-8") == "mine"
    copy_files(workspace, selected, fixture, force=True)
    assert precious.read_text("utf-8") == "mine"
    assert (fixture / "README.md").read_text("utf-8") == "README.md"


def test_a_workspace_that_is_gone_a_home_or_relative_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    for place, words in (
        (workspace / "none", "not here any more"),
        (workspace, "too much"),
        (Path("/"), "too much"),
        (Path("src"), "not here any more"),
    ):
        with pytest.raises(UsageError, match=words):
            select_files(place, {**ENVIRONMENT, "HOME": str(workspace)})


# Put together here, so that nobody takes them for keys that were forgotten.
KEYS = {
    "anthropic": "sk-" + "ant-api03-abcdefgh01234567",
    "openai": "sk-" + "proj-abcdefgh01234567",
    "aws": "AK" + "IA" + "ABCDEFGH01234567",
    "github": "gh" + "p_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "pem": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "openssh": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "pkcs8": "-----BEGIN " + "PRIVATE KEY-----",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_files_with_a_key_in_them_stay_out_whatever_their_names(
    tmp_path: Path, encoding: str
) -> None:
    for name, key in KEYS.items():
        (tmp_path / f"{name}.md").write_text(f"key: '{key}'\n", encoding)
    (tmp_path / "talk.md").write_text("Keys begin with sk-ant-…, AKIA or ghp_.", encoding)
    (tmp_path / "curl.sh").write_text("curl -H 'token: my-very-own-token'", encoding)
    selected = select_files(tmp_path, ENVIRONMENT)
    assert sorted(selected.files) == ["curl.sh", "talk.md"]
    found = left(selected)["holds what looks like a key"]
    assert found == sorted(f"{name}.md" for name in KEYS)
    # So do those with the value of a credential variable.
    own = {**ENVIRONMENT, "LAB_TOKEN": "my-very-own-token"}
    assert select_files(tmp_path, own).files == ["talk.md"]


@pytest.mark.parametrize("link", ["fixtures", "fixtures/x", "fixtures/x/src"])
def test_nothing_is_written_through_a_link(workspace: Path, tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "precious"
    elsewhere.mkdir()
    place = tmp_path / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)
    selected = select_files(workspace, ENVIRONMENT)
    with pytest.raises(UsageError, match="is a link: nothing is written through it"):
        copy_files(workspace, selected, tmp_path / "fixtures/x", force=True)
    assert list(elsewhere.iterdir()) == []
