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


@pytest.mark.parametrize("relative", [".", "..", "here"])
def test_a_workspace_that_is_relative_to_nobody_knows_what_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, relative: str
) -> None:
    (workspace / "here").mkdir()
    monkeypatch.chdir(workspace)
    with pytest.raises(UsageError, match="no whole path"):
        select_files(Path(relative), ENVIRONMENT)


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


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_files_with_a_key_in_them_stay_out_whatever_their_names(
    tmp_path: Path, name: str, encoding: str
) -> None:
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "notes.md").write_text(f"key: '{KEYS[name]}'\n", encoding)
    (place / "talk.md").write_text("Keys begin with sk-ant-…, AKIA or ghp_.", encoding)
    selected = select_files(place, ENVIRONMENT)
    assert selected.files == ["talk.md"]
    assert left(selected) == {"holds what looks like a key": ["notes.md"]}


def test_files_with_the_value_of_a_credential_variable_stay_out(tmp_path: Path) -> None:
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "curl.sh").write_text("curl -H 'token: my-very-own-token'", "utf-8")
    assert select_files(place, ENVIRONMENT).files == ["curl.sh"]
    assert select_files(place, {**ENVIRONMENT, "LAB_TOKEN": "my-very-own-token"}).files == []


def test_links_to_what_stays_out_stay_out(workspace: Path) -> None:
    for name, target in (
        ("settings", ".env"),
        ("again", "settings"),
        ("src/up", "../README.md"),
        ("folder", "src"),
        ("through", "folder/a.py"),
        ("packages", "node_modules"),
        ("nothing", "gone"),
        ("round", "round"),
    ):
        (workspace / name).symlink_to(target)
    selected = select_files(workspace, ENVIRONMENT)
    assert {"src/up", "folder", "through", "inside"} <= set(selected.files)
    assert {"settings", "again", "packages", "nothing", "round"}.isdisjoint(selected.files)
    assert left(selected)["a link to what is not copied"] == [
        "again",
        "nothing",
        "packages",
        "settings",
    ]


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


def test_other_names_of_a_file_that_is_replaced_keep_what_they_had(
    workspace: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine", "utf-8")
    (tmp_path / "fixture").mkdir()
    (tmp_path / "fixture" / "README.md").hardlink_to(precious)
    copy_files(workspace, select_files(workspace, ENVIRONMENT), tmp_path / "fixture", force=True)
    assert precious.read_text("utf-8") == "mine"
    assert (tmp_path / "fixture" / "README.md").read_text("utf-8") == "README.md"
