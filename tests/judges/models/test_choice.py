"""Which model reads for a case."""

from __future__ import annotations

import pytest

from skillup.judges.models.client import with_judge_model
from skillup.load.model import merge_defaults
from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel
from skillup.schema.suite import Suite

OWN = {"model": "openai:own", "base_url": "http://x/v1", "api_key_env": "OWN_KEY", "repeat": 3}


@pytest.mark.parametrize(
    ("own", "asked", "fallback", "model"),
    [
        (OWN, None, None, OWN),
        (OWN, None, "openai:fallback", OWN),
        (OWN, "openai:asked", "openai:fallback", {"model": "openai:asked", "repeat": 3}),
        (None, "openai:asked", "openai:fallback", {"model": "openai:asked"}),
        (None, None, "openai:fallback", {"model": "openai:fallback"}),
        (None, None, None, None),
    ],
)
def test_what_is_asked_for_outranks_the_case_and_that_the_fallback(
    own: object, asked: str | None, fallback: str | None, model: object
) -> None:
    case = Case.model_validate({"input": {"prompt": "Hello"}, "judge_model": own})
    expected = None if model is None else JudgeModel.model_validate(model)
    assert with_judge_model(case, asked, fallback).judge_model == expected


@pytest.mark.parametrize("asked", ["openai:asked", None])
def test_how_often_and_how_long_is_the_suites_whoever_names_the_model(asked: str | None) -> None:
    """J3: with --judge-model or its variable, `repeat` and `timeout_seconds` were lost."""
    suite = Suite.model_validate({"judge": {"repeat": 3, "timeout_seconds": 90}})
    case = Case.model_validate({"id": "a", "input": {"prompt": "Hello"}, "assertions": ["Is kind"]})
    case = merge_defaults(case, suite, default_id="a")
    model = with_judge_model(case, asked, "openai:fallback", suite).judge_model
    assert model == JudgeModel(model=asked or "openai:fallback", repeat=3, timeout_seconds=90)
