"""The workspace as a repository: the same everywhere, whatever the user's git is like."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skillup.workspace.prepare import SkillToInstall
from tests.support.preparation import Preparation
from tests.support.trees import make_tree, tree_of

PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-old
+new
"""


def test_everything_is_committed_on_main_the_same_on_every_machine(tmp_path: Path) -> None:
    ids = set()
    for name in "ab":
        (tmp_path / name).mkdir()
        preparation = Preparation(tmp_path / name)
        make_tree(preparation.suite / "f", {"a.txt": "x", ".gitignore": "no\n", "no": ""})
        preparation.made({"fixture": "f", "files": {"b.txt": "y"}, "git": {"init": True}})
        ids.add(preparation.git("rev-parse", "HEAD"))
    assert len(ids) == 1
    assert preparation.git("branch", "--show-current") == "main\n"
    assert preparation.git("ls-files").split() == [".gitignore", "a.txt", "b.txt"]
    assert preparation.git("status", "--porcelain") == ""
    assert not list((preparation.root / ".git").glob("hooks/*"))
    preparation.git("commit", "--allow-empty", "-m", "by the agent")
    assert preparation.git("log", "-1", "--format=%an") == "skillup\n"


def test_the_users_own_git_has_no_say(
    preparation: Preparation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = make_tree(tmp_path / "hooks", {"pre-commit": "#!/bin/sh\nexit 1\n"})
    (hooks / "pre-commit").chmod(0o755)
    make_tree(
        tmp_path,  # the HOME of `preparation`
        {".gitconfig": f"[core]\nhooksPath={hooks}\n[init]\ndefaultBranch=trunk\n[user\n"},
    )
    preparation.env |= {
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_AUTHOR_NAME": "Somebody",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "commit.gpgSign",
        "GIT_CONFIG_VALUE_0": "true",
    }
    remote = {"name": "origin", "url": "https://example.invalid/a/b.git"}
    preparation.made({"git": {"init": True, "checkout": "feature/x", "remotes": [remote]}})
    preparation.env = {"PATH": preparation.env["PATH"]}
    assert preparation.git("log", "--format=%an %D") == "skillup HEAD -> feature/x\n"
    assert preparation.git("remote", "get-url", "origin") == f"{remote['url']}\n"


@pytest.mark.parametrize("init", [True, False])
def test_a_patch_is_applied_and_not_committed_also_below_somebody_elses_repository(
    preparation: Preparation, tmp_path: Path, init: bool
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make_tree(preparation.suite, {"f/a.txt": "old\n", "x.patch": PATCH})
    preparation.made({"fixture": "f", "git": {"init": init, "apply_diff": "x.patch"}})
    assert tree_of(preparation.root) == {"a.txt": "new\n"}
    if init:
        assert preparation.git("status", "--porcelain") == " M a.txt\n"


def test_a_patch_that_does_not_apply_is_an_error_with_gits_words(preparation: Preparation) -> None:
    make_tree(preparation.suite, {"f/a.txt": "different\n", "x.patch": PATCH})
    error = preparation.error({"fixture": "f", "git": {"init": True, "apply_diff": "x.patch"}})
    assert error.kind == "setup"
    assert "x.patch does not apply" in error.message
    assert "a.txt" in error.evidence
    outside = "--- /dev/null\n+++ b/../out.txt\n@@ -0,0 +1 @@\n+x\n"
    make_tree(preparation.suite, {"x.patch": outside})
    assert preparation.error({"git": {"init": True, "apply_diff": "x.patch"}}).kind == "setup"
    assert not (preparation.root.parent / "out.txt").exists()


@pytest.mark.parametrize(
    "git",
    [
        {"init": True, "checkout": "no..good"},
        {"init": True, "checkout": "-f"},
        {"init": True, "remotes": [{"name": "a b", "url": "y"}]},
        {"checkout": "main"},
        {"init": True, "apply_diff": "no.patch"},
        {"remotes": [{"name": "origin", "url": "x"}]},
    ],
)
def test_what_git_refuses_is_an_error_that_names_the_key(
    preparation: Preparation, git: dict[str, object]
) -> None:
    error = preparation.error({"git": git})
    assert error.kind == "setup"
    assert "`context.git" in error.message


def test_a_repository_in_the_fixture_keeps_its_history_and_runs_no_hooks(
    preparation: Preparation,
) -> None:
    fixture = make_tree(preparation.suite / "f", {"a": "x"})
    identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
    for command in (
        ["init", "-q", "-b", "trunk"],
        ["add", "-A"],
        [*identity, "commit", "-q", "-m", "first"],
        ["branch", "other"],
    ):
        subprocess.run(["git", "-C", fixture, *command], check=True)
    hook = make_tree(fixture / ".git" / "hooks", {"post-checkout": "#!/bin/sh\ntouch ran\n"})
    (hook / "post-checkout").chmod(0o755)
    preparation.made(
        {"fixture": "f", "files": {"b": "y"}, "git": {"init": True, "checkout": "other"}}
    )
    assert preparation.git("log", "trunk", "--format=%s").split("\n")[-2] == "first"
    assert preparation.git("show", "--format=%s", "--name-only", "trunk").split() == [
        "Initial",
        "state",
        "b",
    ]
    assert preparation.git("branch", "--show-current") == "other\n"
    assert tree_of(preparation.root) == {"a": "x"}


@pytest.mark.parametrize(
    "context", [{"git": {"init": True}}, {"setup": ["git init -q ."]}], ids=["init", "setup"]
)
def test_skills_do_not_show_in_git_status(
    preparation: Preparation, tmp_path: Path, context: dict[str, object]
) -> None:
    skill = make_tree(tmp_path / "s", {"SKILL.md": ""})
    preparation.made(context, skills=[SkillToInstall("with *odd[ name", skill)])
    assert (preparation.root / ".claude" / "skills" / "with *odd[ name" / "SKILL.md").is_file()
    assert preparation.git("status", "--porcelain") == ""
    make_tree(preparation.root, {".claude/skills/by-the-agent/SKILL.md": ""})
    assert preparation.git("status", "--porcelain") == "?? .claude/\n"


def test_without_git_on_path_the_error_says_so(preparation: Preparation) -> None:
    error = preparation.error({"git": {"init": True}}, env={"PATH": "/nonexistent"})
    assert "install git" in error.message
