"""Preparing a workspace: fixture, files, skills, setup commands, and what can go wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.schema.case import Context
from skillup.workspace.prepare import SkillToInstall
from tests.support.preparation import Preparation
from tests.support.trees import make_tree, tree_of


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
        ({"fixture": "unsafe"}, "setup", "link out in the fixture"),
        ({"fixture": "odd"}, "setup", "pipe in the fixture"),
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
    outcome = preparation.outcome({}, skills=[SkillToInstall("x", tmp_path / "missing")])
    assert "SKILL.md" in getattr(outcome, "message", "")
    preparation.root = tmp_path / "file" / "workspace"
    (tmp_path / "file").touch()
    assert "could not be prepared: Not a directory" in preparation.error({}).message
