"""Preparing a workspace: fixture, files, git, skills, setup commands, and what can go wrong."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.process.tree import new_marker
from skillup.schema.case import Context
from skillup.schema.record import TurnError
from skillup.workspace.prepare import PreparedWorkspace, SkillToInstall, prepare_workspace
from tests.support.trees import make_tree, tree_of

Given = Mapping[str, object] | Context


class Preparation:
    """Prepares workspaces from the suite in ``suite``."""

    def __init__(self, tmp_path: Path) -> None:
        self.suite = tmp_path / "suite"
        self.suite.mkdir()
        self.root = tmp_path / "scratch" / "workspace"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def outcome(self, context: Given, **more: Any) -> PreparedWorkspace | TurnError:
        given: dict[str, Any] = {
            "suite_root": self.suite, "destination": self.root, "variables": {}, "skills": (),
            "skill_directories": (".claude/skills",), "env": self.env, "marker": new_marker(),
            "timeout_seconds": 60.0, **more,
        }  # fmt: skip

        async def prepare() -> PreparedWorkspace | TurnError:
            # A context that was made is taken as it is.
            return await prepare_workspace(Context.model_validate(context), **given)

        return anyio.run(prepare)

    def made(self, context: Given, **more: Any) -> Path:
        """The root of a workspace that could be prepared."""
        outcome = self.outcome(context, **more)
        assert isinstance(outcome, PreparedWorkspace), outcome
        return outcome.root

    def error(self, context: Given, **more: Any) -> TurnError:
        """Why a workspace could not be prepared."""
        outcome = self.outcome(context, **more)
        assert isinstance(outcome, TurnError), outcome
        return outcome

    def git(self, *arguments: str) -> str:
        """What git says in the workspace, without anybody's configuration."""
        env = self.env | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture
def preparation(tmp_path: Path) -> Preparation:
    """Prepares workspaces from a suite of the test's own."""
    return Preparation(tmp_path)


def test_a_fixture_is_copied_and_files_are_written_over_it(preparation: Preparation) -> None:
    assert list(preparation.made({}).iterdir()) == []
    fixture = make_tree(preparation.suite / "fixtures" / "logs", {"a.log": "1", "b/c.log": "2"})
    (fixture / "a.log").chmod(0o444)
    (fixture / "link").symlink_to("a.log")  # its place is taken, not that of its target
    files = {"link": "x", "a.log": "new", "b/<<x>>.txt": "folder <<folder>>", "e.sh": "#!/bin/sh"}
    root = preparation.made(
        {"fixture": "fixtures/logs", "files": files}, variables={"folder": "data"}
    )
    assert root == preparation.root.resolve()
    assert tree_of(root) == {**files, "b/c.log": "2", "b/<<x>>.txt": "folder data"}
    assert not (root / "e.sh").stat().st_mode & 0o111
    assert (fixture / "a.log").read_text() == "1"


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", ".", "a\0b"])
def test_a_file_outside_of_the_workspace_is_refused(preparation: Preparation, path: str) -> None:
    # Validation refuses most of these; the workspace does not rely on it.
    error = preparation.error(Context.model_construct(files={path: "x"}))
    assert error.kind == "setup"
    assert "context.files" in error.message


@pytest.mark.parametrize("path", ["taken", "file/below"])
def test_a_file_that_something_is_in_the_way_of_is_refused(
    preparation: Preparation, path: str
) -> None:
    make_tree(preparation.suite / "f", {"taken/x": "", "file": ""})
    assert "in its way" in preparation.error({"fixture": "f", "files": {path: "x"}}).message


@pytest.mark.parametrize(
    ("context", "kind", "message"),
    [
        ({"files": {"a": "<<nothing>>"}}, "template", "<<nothing>>"),
        ({"fixture": "missing"}, "setup", "suite/missing"),
        ({"fixture": "file"}, "setup", "suite/file"),
        ({"fixture": "unsafe"}, "setup", "unsafe/out leads out"),
        ({"fixture": "odd"}, "setup", "odd/pipe is a FIFO"),
        ({"setup": ["kill -9 $$"]}, "setup", "signal 9"),
        ({"setup": ["exit 3"]}, "setup", "`context.setup`: `exit 3` ended with exit code 3"),
    ],
)
def test_what_cannot_be_prepared_is_an_error(
    preparation: Preparation, context: dict[str, object], kind: str, message: str
) -> None:
    (preparation.suite / "file").touch()
    (make_tree(preparation.suite / "unsafe", {"a": "x"}) / "out").symlink_to("/etc")
    os.mkfifo(make_tree(preparation.suite / "odd", {"a": "x"}) / "pipe")
    error = preparation.error(context)
    assert error.kind == kind
    assert message in error.message
    assert not preparation.root.exists() or tree_of(preparation.root) == {}


def test_setup_commands_run_in_order_in_the_workspace_and_see_everything(
    preparation: Preparation, tmp_path: Path
) -> None:
    skill = make_tree(tmp_path / "s", {"SKILL.md": ""})
    root = preparation.made(
        {
            "files": {"seed": "x"},
            "git": {"init": True},
            "setup": ["cat seed suite > both", "git log --oneline | wc -l | tr -d ' ' > commits"],
        },
        skills=[SkillToInstall("s", skill)],
        setup_steps=["ls .claude/skills > suite", "pwd -P > where"],
    )
    assert tree_of(root) | {".claude/skills/s/SKILL.md": ""} == {
        ".claude/skills/s/SKILL.md": "",
        "seed": "x",
        "suite": "s\n",
        "both": "xs\n",
        "commits": "1\n",
        "where": f"{root}\n",
    }


def test_a_setup_command_that_hangs_is_ended(preparation: Preparation) -> None:
    error = preparation.error({"setup": ["echo begun; sleep 300"]}, timeout_seconds=1.0)
    assert "did not end within 1 s" in error.message
    assert "begun" in error.evidence


def test_setup_commands_have_no_input_and_the_given_environment_only(
    preparation: Preparation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    root = preparation.made({"setup": ["cat > empty; env > env"]})
    assert (root / "empty").read_text() == ""
    assert "secret" not in (root / "env").read_text()
    error = preparation.error({"setup": ["true"]}, env={"PATH": "/nonexistent"})
    assert "is there a shell" in error.message


def test_an_unusable_skill_and_a_disk_that_refuses_are_errors(
    preparation: Preparation, tmp_path: Path
) -> None:
    error = preparation.error({}, skills=[SkillToInstall("x", tmp_path / "missing")])
    assert "SKILL.md" in error.message
    preparation.root = tmp_path / "file" / "workspace"
    (tmp_path / "file").touch()
    assert "could not be prepared: Not a directory" in preparation.error({}).message


# The workspace as a repository: the same everywhere, whatever the user's git is like.

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
