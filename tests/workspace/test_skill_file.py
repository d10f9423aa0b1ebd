"""SKILL.md: the skill's name, and what makes a directory no skill."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.workspace import skill_name, skill_problem
from tests.support.trees import make_tree


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
    ("text", "line", "said"),
    [
        ("---\nname: x\n# Title", 1, "has no end"),
        ("---\nok: 1\nname: a: b\n---\n", 3, ""),
        ("---\n- name\n---\n", 2, "mapping"),
        ("---\nname: ../up\n---\n", 2, "directory's name"),
        ("---\nname: '..'\n---\n", 2, "directory's name"),
        ('---\nname: "a\\nb"\n---\n', 2, "nobody would see: U+000A (a control character)"),
        ('---\nname: "a\\0b"\n---\n', 2, "nobody would see: U+0000 (a control character)"),
        ('---\nname: "日本語 \\u202ex"\n---\n', 2, "see: U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("---\nname: 404\n---\n", 2, "must be text"),
        (f"---\nname: {'n' * 256}\n---\n", 2, "longer than a directory's name"),
        (b"---\nname: \xff\n---\n", 2, "UTF-8"),
    ],
)
def test_problems_are_located(tmp_path: Path, text: str | bytes, line: int, said: str) -> None:
    problem = skill_problem(make_tree(tmp_path / "skill", {"SKILL.md": text}))
    assert problem is not None
    assert problem.file == tmp_path / "skill" / "SKILL.md"
    assert problem.line in (line, 1 if said == "mapping" else line)
    assert said in problem.message
    assert problem.severity == "error"


def test_a_directory_without_skill_md_and_none_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        problem = skill_problem(tmp_path / name)
        assert problem is not None
        assert "no SKILL.md" in problem.message


def test_skill_md_as_a_directory(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").mkdir()
    problem = skill_problem(tmp_path)
    assert problem is not None
    assert "a directory, not a file" in problem.message
