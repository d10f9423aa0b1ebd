"""Skills: what makes a directory one, which files are installed, where, with which fingerprint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skillup.load.discover import skill_name, skill_problem
from skillup.workspace.prepare import (
    InstalledSkill,
    PreparationError,
    SkillToInstall,
    install_skill,
)
from tests.support.trees import make_tree, tree_of


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "log-keeper", {"SKILL.md": "---\nname: log-keeper\n---\n", "scripts/run.sh": "x"}
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "workspace", {})


def install(source: Path, workspace: Path, **more: Any) -> InstalledSkill:
    directories = more.pop("directories", [".claude/skills"])
    return install_skill(SkillToInstall("log-keeper", source, **more), workspace, directories)


def paths(workspace: Path) -> list[str]:
    root = workspace / ".claude" / "skills" / "log-keeper"
    return sorted(tree_of(root))


def test_files_come_to_each_place_that_the_engine_looks_in(source: Path, workspace: Path) -> None:
    (source / "scripts" / "run.sh").chmod(0o755)
    installed = install(source, workspace, directories=[".claude/skills", ".agents/skills"])
    assert installed.directories == (".claude/skills/log-keeper", ".agents/skills/log-keeper")
    for directory in installed.directories:
        assert sorted(tree_of(workspace / directory)) == ["SKILL.md", "scripts/run.sh"]
        assert (workspace / directory / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o755
    with pytest.raises(PreparationError, match="is there already"):
        install(source, workspace)
    installed = install(source, workspace, target=".dsh-skills/keeper/")
    assert installed.directories == (".dsh-skills/keeper",)
    renamed = install_skill(SkillToInstall("other", source, role="distractor"), workspace, ["s"])
    assert renamed.directories == ("s/other",)
    assert (renamed.info.name, renamed.info.role) == ("other", "distractor")


def test_what_is_left_out_and_what_never_comes(source: Path, workspace: Path) -> None:
    with pytest.raises(PreparationError, match=r"excludes its own SKILL\.md"):
        install(source, workspace, exclude=["*.md"])
    never = ("evals/a.yaml", ".git/HEAD", ".skillup/runs/r/run.json", "scripts/__pycache__/a.pyc",
             "scripts/.DS_Store")  # fmt: skip
    make_tree(source, dict.fromkeys([*never, "docs/evals/kept.md", "scripts/draft.sh"], ""))
    make_tree(source, {"notes.md": "", "other.txt": ""})
    os.symlink("docs/evals/kept.md", source / "b.md")  # noqa: PTH211 - as it is written
    (source / "leak.md").symlink_to("evals/a.yaml")
    install(
        source, workspace, include=["scripts", "**/*.md"], exclude=["**/draft*", "notes.md"]
    )  # SKILL.md always
    assert paths(workspace) == ["SKILL.md", "b.md", "docs/evals/kept.md", "scripts/run.sh"]
    assert not (workspace / ".claude/skills/log-keeper/b.md").is_symlink()


@pytest.mark.parametrize("target", ["../out", "/tmp/out", ".", "", "link/x"])
def test_a_target_outside_of_the_workspace_is_refused(
    source: Path, workspace: Path, tmp_path: Path, target: str
) -> None:
    (tmp_path / "outside").mkdir()
    (workspace / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(PreparationError, match="cannot be installed"):
        install(source, workspace, target=target)
    assert tree_of(tmp_path / "outside") == {}


@pytest.mark.parametrize(
    "target", ["../other", "/etc/hosts", ".", "missing", "link", "scripts", "FIFO"]
)
def test_links_that_lead_elsewhere_and_fifos_are_refused_unless_they_are_excluded(
    source: Path, workspace: Path, target: str
) -> None:
    if target == "FIFO":
        os.mkfifo(source / "link")
    else:
        (source / "link").symlink_to(target)
    with pytest.raises(PreparationError, match="link"):
        install(source, workspace)
    install(source, workspace, exclude=["link"])
    assert paths(workspace) == ["SKILL.md", "scripts/run.sh"]


def test_the_fingerprint_tells_path_mode_and_content(source: Path, tmp_path: Path) -> None:
    def fingerprint(name: str) -> str:
        return install(source, make_tree(tmp_path / name, {})).info.sha256

    first = fingerprint("w1")
    assert fingerprint("w2") == first
    make_tree(source, {"evals/a.yaml": "does not count"})
    assert fingerprint("w3") == first
    (source / "scripts" / "run.sh").chmod(0o755)
    executable = fingerprint("w4")
    make_tree(source, {"scripts/run.sh": "y"})
    content = fingerprint("w5")
    (source / "scripts" / "run.sh").rename(source / "scripts" / "go.sh")
    assert len({first, executable, content, fingerprint("w6")}) == 4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\nname: log-keeper\ndescription: Keeps logs\n---\n# Log keeper\n", "log-keeper"),
        ("\ufeff---\r\nname: windows\r\n---\r\n", "windows"),
        ("---\nname: 'with space'\n---", "with space"),
        ("---\ndescription: no name\n---\n", "the-directory"),
        ("---\n# nothing yet\n---\n", "the-directory"),
        ("# No front matter\n\n---\nname: later\n---\n", "the-directory"),
        ("", "the-directory"),
    ],
)
def test_names(tmp_path: Path, text: str, name: str) -> None:
    skill = make_tree(tmp_path / "the-directory", {"SKILL.md": text})
    assert skill_problem(skill) is None
    assert skill_name(skill) == name


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("---\nname: x\n# Title", 1, "has no end"),
        ("---\nok: 1\nname: a: b\n---\n", 3, ""),
        ("---\n- name\n---\n", 2, "mapping"),
        ("---\nname: ../up\n---\n", 2, "directory's name"),
        ("---\nname: '..'\n---\n", 2, "directory's name"),
        ('---\nname: "a\\nb"\n---\n', 2, "directory's name"),
        ('---\nname: "日本語 \\u202ex"\n---\n', 2, "u202ex' cannot be"),
        ("---\nname: 404\n---\n", 2, "cannot be a directory"),
        (f"---\nname: {'n' * 256}\n---\n", 2, "directory's name"),
        (b"---\nname: \xff\n---\n", 2, "UTF-8"),
    ],
)
def test_problems_are_located(tmp_path: Path, text: str | bytes, line: int, message: str) -> None:
    problem = skill_problem(make_tree(tmp_path / "skill", {"SKILL.md": text}))
    assert problem is not None
    assert problem.file == tmp_path / "skill" / "SKILL.md"
    assert problem.line in (line, 1 if message == "mapping" else line)
    assert message in problem.message
    assert problem.severity == "error"


def test_a_directory_without_skill_md_none_at_all_and_skill_md_as_a_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd" / "SKILL.md").mkdir(parents=True)
    for name, message in {
        "empty": "no SKILL.md",
        "missing": "no SKILL.md",
        "odd": "not a regular file",
    }.items():
        problem = skill_problem(tmp_path / name)
        assert problem is not None
        assert message in problem.message
