"""skill-up's judge-debug files: the same verdicts, check by check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers.judge_debug import (
    JudgeInput,
    is_judge_input,
    mocked_result,
    read_judge_input,
)
from skillup.judges import grade_record
from skillup.schema.judge import JudgeConfig
from skillup.workspace.snapshot import BlobStore

BASE: dict[str, Any] = {
    "case_id": "c",
    "final_message": "There is a bug.",
    "transcript": [{"role": "user", "content": "look", "turn": 1}],
}


def read(tmp_path: Path, data: dict[str, Any]) -> JudgeInput:
    path = tmp_path / "input.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return read_judge_input(path, BlobStore())


def test_entries_become_turns_with_their_calls(tmp_path: Path) -> None:
    call = {"id": "a", "name": "read_file", "arguments": {"path": "x"}}
    given = read(
        tmp_path,
        {
            "final_message": "done",
            "transcript": [
                {"role": "user", "content": "look", "turn": 1},
                {"role": "tool_call", "turn": 1, "tool_call": call},
                {
                    "role": "tool_result",
                    "turn": 1,
                    "tool_result": {"call_id": "a", "status": "success", "content": "x"},
                },
                {"role": "assistant", "content": "looked", "turn": 1},
                {"role": "user", "content": "and now?", "turn": 2},
            ],
            "judge": {
                "success": [
                    {"turn_response_contains": {"turn": 1, "contains_any": ["looked"]}},
                    {"tool_called": {"kind": "read"}},
                ]
            },
        },
    )

    first, second = given.record.turns
    assert (first.content, first.response) == ("look", "looked")
    assert [c.kind for c in first.tool_calls] == ["read"]
    assert (second.content, second.response) == ("and now?", "done")
    assert grade_record(given.record, lambda _: None).status == "PASS"


def test_a_mistake_in_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        read(tmp_path, {**BASE, "jugde": {}})
    assert "jugde: unknown key; did you mean `judge`?" in str(refused.value.problems[0])


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"final_message": 1}', '{"final_message": "", "transcript": 3}',
     '{"final_message": "", "exit_code": "1"}', '{"final_message": "", "mock_results": ["x"]}'],
)  # fmt: skip
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "input.json"
    path.write_text(text, encoding="utf-8")

    assert not is_judge_input(path) or text.startswith('{"final')
    with pytest.raises(UsageError):
        read_judge_input(path, BlobStore())


CRITERIA = JudgeConfig.model_validate(
    {"type": "agent_judge", "criteria": ["A", "B", "C"], "pass_threshold": 0.6}
)


@pytest.mark.parametrize(
    ("results", "passed", "score"),
    [
        ([{"criterion_id": f"criterion-{n}", "passed": n < 3, "evidence": [""]} for n in (3, 1, 2)],
         True, 0.666667),
        ([{"criterion": name, "passed": name == "B", "failures": 5} for name in "ABC"],
         False, 0.333333),
    ],
)  # fmt: skip
def test_mocked_results_stand_for_the_agents_answer(
    results: list[dict[str, Any]], passed: bool, score: float
) -> None:
    result = mocked_result(CRITERIA, results)

    assert (result.passed, result.score, result.error) == (passed, score, None)


def test_a_criterion_that_is_not_mocked_is_an_error() -> None:
    result = mocked_result(CRITERIA, [{"criterion_id": "criterion-1", "passed": True}])

    assert not result.passed
    assert result.error == "`mock_results` has nothing for criterion-2, criterion-3"


def test_what_says_nothing_here_is_left_out_and_told(tmp_path: Path) -> None:
    gate = {"golden_file": "golden.md", "must_contain": ["bug"]}
    data = {
        **BASE,
        "skill_dir": "__SKILL_DIR__",
        "expect": gate,
        "cost_of_run": 3,
        "title": "",
        "tags": [],
        "mock_results": None,
        "exit_code": None,
        "judge": {"type": "rule_based", "success": [{"contains": "bug"}]},
    }

    given = read(tmp_path, data)

    unknown, golden = given.notes
    assert unknown == "`cost_of_run` was left out: it has no meaning in a judge-debug file"
    assert "golden.md` was left out" in golden
    assert grade_record(given.record, lambda _: None).status == "PASS"
