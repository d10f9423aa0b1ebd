"""Jobs that were not held, by what their grades would have been."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.history.outcomes import CaseKey, planned_key

SUITES: dict[str, Any] = {"demo": {"cases": {"a/b": "a/b", "demo-asks": "asks"}}, "old": {}}


@pytest.mark.parametrize(
    ("job", "key", "number"),
    [
        ("a/b/claude/with_skill/3", CaseKey("demo", "a/b", "claude", "with_skill"), 3),
        ("demo-asks/x/without_skill/1", CaseKey("demo", "asks", "x", "without_skill"), 1),
        ("unknown/x/with_skill/2", CaseKey("only", "unknown", "x", "with_skill"), 2),
        ("broken", CaseKey("only", "broken", "", ""), 1),
    ],
)
def test_a_job_is_the_case_that_run_json_says(job: str, key: CaseKey, number: int) -> None:
    assert planned_key(job, SUITES, {"only"}) == (key, number)


def test_of_several_suites_none_is_guessed() -> None:
    key, _ = planned_key("unknown/x/with_skill/1", SUITES, {"one", "two"})
    assert key.suite == ""
