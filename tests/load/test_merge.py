"""Defaults of the suite in its cases: lists are joined, anything else the case says outranks."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.load.model import merge_defaults
from skillup.schema.case import Case
from skillup.schema.suite import Suite


def merged(case: dict[str, Any], **suite: Any) -> Case:
    made = Case.model_validate({"input": {"prompt": "hi"}, **case})
    return merge_defaults(made, Suite.model_validate(suite), default_id="stem")


def with_defaults(case: dict[str, Any], **defaults: Any) -> Case:
    return merged(case, cases={"defaults": defaults})


@pytest.mark.parametrize(
    ("key", "default", "own"),
    [
        ("timeout_seconds", 10.0, 20.0),
        ("pass_threshold", 0.5, 0.0),
        ("on_turn_failure", "stop", "continue"),
    ],
)
def test_a_scalar_of_the_case_outranks_the_default(key: str, default: Any, own: Any) -> None:
    assert getattr(with_defaults({}, **{key: default}), key) == default
    assert getattr(with_defaults({key: own}, **{key: default}), key) == own
    assert getattr(with_defaults({key: own}), key) == own


def test_lists_of_the_gate_are_joined_and_the_rest_is_the_cases() -> None:
    case = with_defaults(
        {"expect": {"must_contain": ["b", "c"], "exit_code": 1, "golden_file": "own.txt"}},
        expect={
            "must_contain": ["a", "b"],
            "exit_code": 0,
            "golden_file": "theirs.txt",
            "files_exist": ["x"],
            "case_sensitive": True,
        },
    )
    assert case.expect is not None
    given = dict(case.expect.given())
    assert given["must_contain"] == ["a", "b", "c"]
    assert given["exit_code"] == 1
    assert given["golden_file"].path == "own.txt"
    assert given["files_exist"] == ["x"]
    assert case.expect.case_sensitive is True


RULES = {"type": "rule_based", "success": [{"contains": "x"}]}


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"assertions": [{"contains": "y"}]},
        {"expect": {"must_contain": ["y"]}},
        {"input": {"turns": [{"content": "a", "assertions": [{"contains": "y"}]}]}},
        # A judge that does not say by what it judges leaves that to the suite's.
        {"judge": {"pass_threshold": 0.5}},
        {"judges": [{"id": "own"}]},
    ],
)
def test_the_suites_judge_decides_whatever_else_the_case_checks(own: dict[str, Any]) -> None:
    """V2: it was dropped as soon as a case had `expect` or an assertion."""
    for case in (
        merged(own, judge=RULES),
        with_defaults(own, judge=RULES),
        merged(own, judge=RULES, cases={"defaults": {"judge": {"timeout_seconds": 9}}}),
    ):
        (judge,) = case.all_judges()
        assert [check.key for check in judge.success] == ["contains"]


def test_the_nearest_judge_decides() -> None:
    """V2: the case's before the one of `cases.defaults`, that before the suite's."""

    def looked_for(case: Case) -> list[str]:
        return [
            check.key_and_spec()[1].all[0] for judge in case.all_judges() for check in judge.success
        ]

    own, near = {"success": [{"contains": "own"}]}, {"success": [{"contains": "near"}]}
    suite = {"judge": RULES, "cases": {"defaults": {"judge": near}}}
    assert looked_for(merged({}, **suite)) == ["near"]
    assert looked_for(merged({"judge": own}, **suite)) == ["own"]
    assert looked_for(merged({"judges": [own, own]}, **suite)) == ["own", "own"]


def test_what_a_judge_leaves_open_is_the_defaults() -> None:
    own = {"judge": {"criteria": ["it is polite"], "type": "agent_judge"}}
    judge = merged(own, judge={"model": "m", "pass_threshold": 0.7}).judge
    assert judge is not None
    assert (judge.model, judge.pass_threshold) == ("m", 0.7)
    judge = with_defaults({"judge": RULES}, judge={"type": "agent_judge", "criteria": ["c"]}).judge
    assert judge is not None
    assert judge.type == "rule_based"
    assert judge.criteria == []
