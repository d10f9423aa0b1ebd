"""Installing skills: which files, where, and with which fingerprint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from skillup.workspace import InstalledSkill, SkillToInstall, install_skill
from skillup.workspace.failures import PreparationError
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


def test_skill_md_is_installed_even_if_include_does_not_name_it(
    source: Path, workspace: Path
) -> None:
    install(source, workspace, include=["scripts"])
    assert paths(workspace) == ["SKILL.md", "scripts/run.sh"]


def test_a_skill_that_excludes_its_skill_md_is_refused(source: Path, workspace: Path) -> None:
    with pytest.raises(PreparationError, match=r"excludes its own SKILL\.md"):
        install(source, workspace, exclude=["*.md"])


def test_a_target_takes_the_place_of_the_engines_directories(source: Path, workspace: Path) -> None:
    installed = install(source, workspace, target=".dsh-skills/keeper/")
    assert installed.directories == (".dsh-skills/keeper",)
    assert sorted(tree_of(workspace)) == [
        ".dsh-skills/keeper/SKILL.md",
        ".dsh-skills/keeper/scripts/run.sh",
    ]


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


def test_a_place_that_is_taken_is_refused(source: Path, workspace: Path) -> None:
    install(source, workspace)
    with pytest.raises(PreparationError, match="is there already"):
        install(source, workspace)


def test_links_within_the_skill_become_what_they_point_to(source: Path, workspace: Path) -> None:
    make_tree(source, {"shared/a.md": "A", "evals/answers.md": "secret"})
    os.symlink("shared/a.md", source / "b.md")  # noqa: PTH211 - as it is written
    (source / "more").symlink_to("shared")
    (source / "leak.md").symlink_to("evals/answers.md")
    (source / "leaks").symlink_to("evals")
    install(source, workspace)
    assert paths(workspace) == ["SKILL.md", "b.md", "more/a.md", "scripts/run.sh", "shared/a.md"]
    installed = workspace / ".claude" / "skills" / "log-keeper"
    assert not (installed / "b.md").is_symlink()
    assert (installed / "more" / "a.md").read_text() == "A"


@pytest.mark.parametrize("target", ["..", "../other", "/etc/hosts", ".", "missing", "scripts/.."])
def test_links_that_lead_elsewhere_are_refused_unless_they_are_excluded(
    source: Path, workspace: Path, target: str
) -> None:
    (source / "link").symlink_to(target)
    with pytest.raises(PreparationError, match="link"):
        install(source, workspace)
    install(source, workspace, exclude=["link"])
    assert paths(workspace) == ["SKILL.md", "scripts/run.sh"]


def test_links_that_lead_to_each_other_end(source: Path, workspace: Path) -> None:
    (source / "a").mkdir()
    (source / "b").mkdir()
    (source / "a" / "to-b").symlink_to("../b")
    (source / "b" / "to-a").symlink_to("../a")
    with pytest.raises(PreparationError, match="circle"):
        install(source, workspace)


def test_a_fifo_is_refused(source: Path, workspace: Path) -> None:
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


def test_a_skill_of_another_name_goes_by_that_name(source: Path, workspace: Path) -> None:
    skill = SkillToInstall("renamed", source, role="distractor")
    installed = install_skill(skill, workspace, DIRECTORIES)
    assert installed.directories == (".claude/skills/renamed",)
    assert (installed.info.name, installed.info.role) == ("renamed", "distractor")
