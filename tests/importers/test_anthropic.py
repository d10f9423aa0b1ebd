from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InvalidFilesError
from skillup.importers.convert import import_files
from skillup.load.yaml_reader import read_yaml
from tests.importers.conftest import Convert

EVALS = {
    "skill_name": "pdf-tools",
    "evals": [
        {
            "id": 1,
            "prompt": "Fill in <<the>> form {{x}}",
            "expected_output": "A filled form",
            "files": ["evals/files/form.txt"],
            "expectations": ["The name is filled in", {"text": "The skill's script ran"}],
        },
        {"id": "named", "prompt": "Second", "assertions": ["One thing"]},
    ],
}


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill directory with its evals."""
    directory = tmp_path / "pdf-tools"
    (directory / "evals" / "files").mkdir(parents=True)
    (directory / "SKILL.md").write_text("---\nname: pdf-tools\ndescription: d\n---\n")
    (directory / "evals" / "files" / "form.txt").write_text("form")
    (directory / "evals" / "evals.json").write_text(json.dumps(EVALS))
    return directory


def test_both_spellings_of_expectations_become_rubrics(skill: Path, tmp_path: Path) -> None:
    (imported,) = import_files([skill / "evals" / "evals.json"], tmp_path / "out")
    suite = read_yaml(tmp_path / "out" / "eval.yaml").data
    first, second = (read_yaml(tmp_path / "out" / case.file).data for case in imported.draft.cases)
    assert imported.format == "anthropic"
    assert suite["name"] == "pdf-tools"
    assert suite["skills"] == [{"path": "../pdf-tools"}]
    assert first["id"] == "eval-1"
    assert first["input"] == {"prompt": r"Fill in \<<the>> form \{{x}}"}
    assert first["expected_output"] == "A filled form"
    assert first["assertions"] == [
        {"rubric": "The name is filled in"},
        {"rubric": "The skill's script ran"},
    ]
    placed = tmp_path / "out" / first["context"]["fixture"] / "evals" / "files" / "form.txt"
    assert placed.read_text() == "form"
    assert second["id"] == "named"
    assert second["assertions"] == [{"rubric": "One thing"}]
    (note,) = imported.notes
    assert note.field == "skills[0].path", "the skill lies outside of the new suite's project"
    assert "--trust" in note.fix


def test_a_suite_in_the_skills_own_evals_names_the_skill_from_its_root(skill: Path) -> None:
    import_files([skill / "evals" / "evals.json"], skill / "evals")
    suite = read_yaml(skill / "evals" / "eval.yaml").data
    assert suite["skills"] == [{"path": "."}]
    assert suite["cases"]["files"] == ["evals/cases/eval-1.yaml", "evals/cases/named.yaml"]


def test_queries_that_should_trigger_the_skill_ask_whether_it_was_used(
    skill: Path, tmp_path: Path
) -> None:
    queries = [
        {"query": "Fill in a form", "should_trigger": True},
        {"query": "What time is it?", "should_trigger": False},
    ]
    source = skill / "evals" / "trigger-queries.json"
    source.write_text(json.dumps(queries))
    (imported,) = import_files([source], tmp_path / "out")
    cases = [read_yaml(tmp_path / "out" / case.file).data for case in imported.draft.cases]
    assert [case["assertions"] for case in cases] == [
        [{"skill_used": "pdf-tools"}],
        [{"skill_not_used": "pdf-tools"}],
    ]


def test_queries_of_an_unknown_skill_ask_for_any(convert: Convert) -> None:
    result = convert('[{"query": "q", "should_trigger": true}]', "queries.json")
    assert result.case["assertions"] == [{"tool_called": {"kind": "skill"}}]
    assert any("which skill" in note for note in result.notes)


@pytest.mark.parametrize(
    "entry", [{"id": 1, "expected_output": "x"}, {"id": 1, "prompt": " "}, {"query": ""}]
)
def test_an_eval_without_a_message_is_refused(convert: Convert, entry: dict[str, Any]) -> None:
    with pytest.raises(InvalidFilesError):
        convert(json.dumps({"skill_name": "s", "evals": [entry]}), "evals.json")
