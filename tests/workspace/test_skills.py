"""Skills: what makes a directory one, which files are installed, where, with which fingerprint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from skillup.workspace.failures import PreparationError
from skillup.workspace.skills import (
    InstalledSkill,
    SkillToInstall,
    install_skill,
    skill_name,
    skill_problem,
)
from tests.support.trees import make_tree, tree_of

DIRECTORIES = (".claude/skills",)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "log-keeper", {"SKILL.md": "---\nname: log-keeper\n---\n", "scripts/run.sh": "x"}
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "workspace", {})


def install(
    source: Path,
    workspace: Path,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    target: str | None = None,
    directories: Sequence[str] = DIRECTORIES,
) -> InstalledSkill:
    skill = SkillToInstall("log-keeper", source, include, exclude, target)
    return install_skill(skill, workspace, directories)


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


def test_cases_and_litter_are_never_installed(source: Path, workspace: Path) -> None:
    make_tree(
        source,
        {
            "evals/eval.yaml": "",
            "evals/a.yaml": "",
            ".git/HEAD": "",
            ".skillup/runs/r/run.json": "",
            "scripts/__pycache__/a.pyc": "",
            "scripts/.DS_Store": "",
            "docs/evals/kept.md": "",
        },
    )
    install(source, workspace, include=["**"])
    assert paths(workspace) == ["SKILL.md", "docs/evals/kept.md", "scripts/run.sh"]


def test_include_and_exclude(source: Path, workspace: Path) -> None:
    make_tree(source, {"scripts/draft.sh": "", "notes.md": "", "ref/deep/a.md": ""})
    install(source, workspace, include=["scripts/**", "**/*.md"], exclude=["**/draft*", "notes.md"])
    assert paths(workspace) == ["SKILL.md", "ref/deep/a.md", "scripts/run.sh"]


def test_what_include_and_target_change(source: Path, workspace: Path) -> None:
    with pytest.raises(PreparationError, match=r"excludes its own SKILL\.md"):
        install(source, workspace, exclude=["*.md"])
    install(source, workspace, include=["scripts"])  # SKILL.md always
    assert paths(workspace) == ["SKILL.md", "scripts/run.sh"]
    with pytest.raises(PreparationError, match="is there already"):
        install(source, workspace)
    installed = install(source, workspace, target=".dsh-skills/keeper/")
    assert installed.directories == (".dsh-skills/keeper",)
    assert sorted(tree_of(workspace / ".dsh-skills")) == [
        "keeper/SKILL.md",
        "keeper/scripts/run.sh",
    ]
    renamed = install_skill(SkillToInstall("other", source, role="distractor"), workspace, ["s"])
    assert renamed.directories == ("s/other",)
    assert (renamed.info.name, renamed.info.role) == ("other", "distractor")


@pytest.mark.parametrize("target", ["../out", "/tmp/out", ".", ""])
def test_a_target_outside_of_the_workspace_is_refused(
    source: Path, workspace: Path, target: str
) -> None:
    with pytest.raises(PreparationError, match="cannot be installed"):
        install(source, workspace, target=target)


def test_a_target_behind_a_link_out_of_the_workspace_is_refused(
    source: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (workspace / ".claude").symlink_to(tmp_path / "outside")
    with pytest.raises(PreparationError, match="out of the workspace"):
        install(source, workspace)
    assert tree_of(tmp_path / "outside") == {}


def test_links_within_the_skill_become_what_they_point_to(source: Path, workspace: Path) -> None:
    make_tree(source, {"shared/a.md": "A", "evals/answers.md": "secret"})
    os.symlink("shared/a.md", source / "b.md")  # noqa: PTH211 - as it is written
    (source / "leak.md").symlink_to("evals/answers.md")
    (source / "leaks").symlink_to("evals")
    install(source, workspace)
    assert paths(workspace) == ["SKILL.md", "b.md", "scripts/run.sh", "shared/a.md"]
    installed = workspace / ".claude" / "skills" / "log-keeper"
    assert not (installed / "b.md").is_symlink()
    assert (installed / "b.md").read_text() == "A"


@pytest.mark.parametrize("target", ["../other", "/etc/hosts", ".", "missing", "scripts"])
def test_links_that_lead_elsewhere_are_refused_unless_they_are_excluded(
    source: Path, workspace: Path, target: str
) -> None:
    (source / "link").symlink_to(target)
    with pytest.raises(PreparationError, match="link"):
        install(source, workspace)
    install(source, workspace, exclude=["link"])
    assert paths(workspace) == ["SKILL.md", "scripts/run.sh"]


def test_fifos_are_refused(source: Path, workspace: Path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(PreparationError, match="FIFO"):
        install(source, workspace)


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
        ("---\nname: 404\n---\n", 2, "must be text"),
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
