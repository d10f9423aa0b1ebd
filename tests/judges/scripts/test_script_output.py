"""What a script prints, as a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillup.judges.router import verdict_of
from skillup.process.run import CompletedOutput
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig

JUDGE = JudgeConfig(type="script", script_path="x")
BLANK = CheckResult(name="script", kind="script", passed=False, score=0.0)


def verdict(stdout: str, exit_code: int = 0, *, threshold: float = 1.0) -> CheckResult:
    output = CompletedOutput(exit_code, stdout, "", timed_out=False, start_error=None)
    judge = JUDGE.model_copy(update={"pass_threshold": threshold})
    return verdict_of(output, BLANK, judge)


@pytest.mark.parametrize(
    ("told", "exit_code", "threshold", "passed", "score"),
    [
        ({"pass": True}, 0, 1.0, True, 1.0),
        ({"passed": False}, 0, 1.0, False, 0.0),
        ({"score": 0.8}, 0, 1.0, False, 0.8),
        ({"score": 0.8}, 0, 0.7, True, 0.8),
        ({"score": 0.4, "pass": True}, 0, 1.0, True, 0.4),
        ({"score": 0.4, "pass": False}, 1, 1.0, False, 0.4),
        ({"pass": True}, 1, 1.0, False, 0.0),
        ({"assertions": [{"pass": True}, {"pass": False}]}, 0, 1.0, False, 0.5),
        ({"details": [{"pass": True}, {"score": 1.0}]}, 0, 1.0, True, 1.0),
        ({"pass": None, "score": 1}, 0, 1.0, True, 1.0),
    ],
)
def test_a_json_verdict_counts_and_the_exit_code_can_only_say_no(
    told: dict[str, Any], exit_code: int, threshold: float, passed: bool, score: float
) -> None:
    result = verdict(json.dumps(told), exit_code, threshold=threshold)

    assert (result.passed, result.score, result.error) == (passed, score, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 1.5}',
        '{"score": "good"}',
        '{"score": true}',
        '{"pass": "yes"}',
        '{"assertions": ["a"]}',
        '{"assertions": []}',
        '{"score": null}',
        json.dumps({"score": 10**400}),
        '{"pass": true, "passed": false}',
        '{"assertions": [{"pass": true}], "details": [{"pass": false}]}',
        '{"pass": true, "Score": 0.1}',
        '{"verdict": "fail"}',
        "{'score': 0.1}",
        '{"score": 0.1,}',
        '{"score": 0.1, "reason": "cut o',
        'log\n{"score": 0.1, "reason": "cut o',
        'result: {"score": 0.1}',
        '{"score": 0.1}\n{"level": "info"}',
        '{"pass": false} and more',
        '{"pass": true}\n{"pass": false}',
        '{"note": 1}\n{"pass": true}',
        'the answer was {"pass": true}\n{"pass": true}',
        '{"pass": false, "pass": true}',
        '{"assertions": [{"pass": false, "pass": true}]}',
        '{"score": NaN}',
        '{"score": ' + "1" * 5000 + "}",
        '{"a":' * 100_000 + "}",
        "[" * 100_000,
        '[{"score": 0.1}]',
    ],
)
def test_what_looks_like_a_verdict_and_cannot_be_read_is_an_error_and_is_shown(text: str) -> None:
    result = verdict(text)

    assert not result.passed
    assert (result.error or "").startswith("the script printed")
    assert text[:5] in (result.error or "")


@pytest.mark.parametrize("before", ["", "checking…\n", "[1/2] {note}\n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_verdict_may_stand_at_the_end_of_other_output(before: str, indent: int | None) -> None:
    result = verdict(before + json.dumps({"pass": False, "reason": "no"}, indent=indent) + "\n")

    assert (result.passed, result.found) == (False, "no")


@pytest.mark.parametrize(
    "text", ["fine", "[ok] 3 of 3", "[1/3] a\n[2/3] b", "f(x) = {x}", "a {b: 1}"]
)
def test_other_output_is_evidence_as_it_is(text: str) -> None:
    result = verdict(text)

    assert (result.passed, result.found, result.children) == (True, text, [])


def test_assertions_become_children_with_names_and_reasons() -> None:
    told = {
        "pass": False,
        "reason": "one is missing",
        "assertions": [
            {"text": "has a title", "passed": True, "evidence": "# Title"},
            {"name": "has an end", "pass": False, "score": 0.25, "reason": ["stops", 3]},
            {"pass": True},
        ],
    }
    result = verdict(json.dumps(told))

    assert result.found == "one is missing"
    assert [(c.name, c.passed, c.score, c.found) for c in result.children] == [
        ("has a title", True, 1.0, "# Title"),
        ("has an end", False, 0.25, '["stops", 3]'),
        ("assertion 3", True, 1.0, ""),
    ]


def test_what_could_steer_a_terminal_is_not_passed_on_and_long_output_is_shortened() -> None:
    result = verdict("\x1b[2Jgone " + "x" * 10_000)

    assert "\x1b" not in result.found
    assert len(result.found) < 3000
    assert "left out" in result.found
