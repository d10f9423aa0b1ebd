"""vibecheck, Anthropic's skill evals, and Langfuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InvalidFilesError
from skillup.importers.convert import import_files
from skillup.load.yaml_reader import read_yaml
from tests.importers.conftest import Convert


def test_every_check_comes_over(convert: Convert) -> None:
    result = convert("""
        metadata:
          name: capitals
          description: For {{env.TEAM}}
          model: some/model
          system_prompt: Be brief about {{var('topic')}}.
          threads: 3
          mcp_server: {url: "https://mcp.example", name: maps, authorization_token: secret}
        evals:
          - prompt: What is the capital of {{var('country')}}, {{name}}?
            checks:
              - match: "*Paris*"
              - not_match: "*London*"
              - semantic: {expected: It is Paris, threshold: 0.8}
              - llm_judge: {criteria: Names the capital}
              - min_tokens: 1
              - max_tokens: 100
              - or: [{match: "*a*"}, {match: "*b*"}]
        """)
    case = result.case
    assert result.suite["name"] == "capitals"
    assert result.suite["cases"]["parallelism"] == 3
    assert result.suite["mcp"]["servers"] == [
        {"name": "maps", "mode": "real", "transport": "http", "endpoint": "https://mcp.example"}
    ]
    assert case["input"]["prompt"] == r"What is the capital of {{var('country')}}, \{{name}}?"
    assert result.suite["description"] == "For {{env.TEAM}}"
    assert sum("cannot be filled in" in note for note in result.notes) == 3
    assert case["assertions"] == [
        {"glob": "*Paris*"},
        {"not_glob": "*London*"},
        {"similar": {"to": "It is Paris", "threshold": 0.8}},
        {"rubric": "Names the capital"},
        {"min_tokens": 1},
        {"max_tokens": 100},
        {"any_of": [{"glob": "*a*"}, {"glob": "*b*"}]},
    ]
    assert result.noted("metadata.model") == ["not carried over"]
    assert result.noted("metadata.mcp_server.authorization_token") == ["not carried over"]


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ("[{semantic: {expected: x}}]", "needs `expected` and a `threshold`"),
        ("[just text]", "not a check"),
        ("[]", "there is no `checks` here"),
    ],
)
def test_a_wrong_check_is_refused_with_its_place(convert: Convert, checks: str, said: str) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        convert(f"""
            metadata: {{name: n, model: m}}
            evals:
              - {{prompt: fine, checks: [{{match: "*x*"}}]}}
              - prompt: p
                checks: {checks}
            """)
    (problem,) = refused.value.problems
    assert said in problem.message
    assert problem.line == 6


def test_what_is_no_check_of_vibechecks_is_left_out_and_listed(convert: Convert) -> None:
    checks = "[{matches: x, match: '*y*'}, {llm_judge: {}}, {max_tokens: many}]"
    result = convert(f"metadata: {{name: n}}\nevals: [{{prompt: p, checks: {checks}}}]")
    assert result.case["assertions"] == [{"glob": "*y*"}]
    assert len(result.noted("evals[0].checks[0].matches")) == 1
    assert len(result.noted("evals[0].checks[1].llm_judge")) == 1
    assert len(result.noted("evals[0].checks[2].max_tokens")) == 2


def test_a_prompt_among_the_checks_becomes_a_follow_up(convert: Convert) -> None:
    """F21: it is sent if a check beside it failed, as deep as it goes."""
    case = convert("""
        metadata: {name: sums}
        evals:
          - prompt: What is 15 * 7?
            checks:
              - match: "*105*"
              - prompt: Please recalculate {{var('what')}}.
                checks:
                  - match: "*105*"
                  - {min_tokens: 1, prompt: "10*7 + 5*7?", checks: [{match: "*105*"}]}
        """).case
    assert case["input"]["turns"] == [
        {
            "content": "What is 15 * 7?",
            "assertions": [
                {"glob": "*105*"},
                {
                    "prompt": "Please recalculate {{var('what')}}.",
                    "assertions": [
                        {"glob": "*105*"},
                        {"min_tokens": 1},
                        {"prompt": "10*7 + 5*7?", "assertions": [{"glob": "*105*"}]},
                    ],
                },
            ],
        }
    ]
    with pytest.raises(InvalidFilesError) as raised:
        convert("evals: [{prompt: a, checks: [{match: x}, {prompt: b}]}]", format_="vibecheck")
    assert "there is no `checks` here" in raised.value.problems[0].message


# Anthropic.

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


# Langfuse.

HISTORY = [
    {"role": "user", "content": "I want to apply", "message_index": 1},
    {"role": "assistant", "content": "Which <<stage>>? 😀", "message_index": 2},
]
ITEM = {
    "id": "item-a",
    "input": {"query": "Series <<A>>"},
    "expected_output": {"response": "Fits"},
    "metadata": {"history": HISTORY, "message_index": 3},
}


def test_a_line_for_each_item_becomes_a_case(convert: Convert) -> None:
    other = {"id": "b", "input": "Hi", "expectedOutput": {"x": 1, "y": 2}, "odd": 1}
    archived = {**ITEM, "id": "c", "status": "ARCHIVED"}
    result = convert("\n".join(map(json.dumps, (ITEM, other, archived))), "items.jsonl")
    assert result.imported.format == "langfuse"
    assert result.suite["name"] == "items"
    first, second = result.cases
    assert first == {
        "id": "item-a",
        "input": {
            "history": [HISTORY[0], {**HISTORY[1], "content": r"Which \<<stage>>? 😀"}],
            "message_index": 3,
            "prompt": r"Series \<<A>>",
        },
        "expected_output": "Fits",
    }
    assert second == {"id": "b", "input": {"prompt": "Hi"}}
    places = [(note.line, note.field) for note in result.imported.notes]
    assert places == [(2, "[1].expectedOutput"), (2, "[1].odd"), (3, "[2]")]


def test_an_item_without_a_message_is_refused_with_its_place(convert: Convert) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        convert(json.dumps({"data": [ITEM, {**ITEM, "input": {"other": 1}}]}), "dataset.json")
    assert [problem.field for problem in refused.value.problems] == ["data[1].input"]
