"""Which model is asked; its address, its key, and what is missing, known before it is asked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from skillup.app.planning import keys_of, models_of
from skillup.judges.models import Models, with_judge_model
from skillup.judges.question import endpoint_of
from skillup.load.model import judge_models, merge_defaults
from skillup.redaction.secrets import NO_SECRETS
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.judge_model import JudgeModel
from skillup.schema.suite import Suite
from tests.support.asking import KEYS


def problem(model: str, environment: Mapping[str, str], **settings: str) -> str | None:
    models = Models(environment, NO_SECRETS)
    return models.problem(JudgeModel.model_validate({"model": model, **settings}), Path())


@pytest.mark.parametrize(
    ("model", "settings", "environment", "api", "address"),
    [
        ("anthropic:m", {}, {}, "anthropic", "https://api.anthropic.com"),
        ("openai:m", {}, {}, "responses", "https://api.openai.com/v1"),
        ("openai-chat:m", {}, {}, "chat", "https://api.openai.com/v1"),
        ("openai:m", {"base_url": "http://x/v1"}, {}, "chat", "http://x/v1"),
        ("openai-responses:m", {"base_url": "http://x/v1"}, {}, "responses", "http://x/v1"),
        ("openai:m", {}, {"OPENAI_BASE_URL": "http://y/v1"}, "chat", "http://y/v1"),
        ("anthropic:m", {}, {"ANTHROPIC_BASE_URL": "http://y"}, "anthropic", "http://y"),
        (
            "anthropic:m",
            {"base_url": "http://x"},
            {"ANTHROPIC_BASE_URL": "http://y"},
            "anthropic",
            "http://x",
        ),
    ],
)
def test_addresses(
    model: str, settings: dict[str, str], environment: dict[str, str], api: str, address: str
) -> None:
    found = endpoint_of(
        JudgeModel.model_validate({"model": model, **settings}), {**KEYS, **environment}
    )
    assert (found.name, found.api, found.base_url) == ("m", api, address)


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        ("openai:m", {}, "`openai:m` needs a key: set the variable OPENAI_API_KEY"),
        ("openai:m", {"base_url": "http://x/v1", "api_key_env": "MY_KEY"}, "the variable MY_KEY"),
        ("gpt-5.5", {}, "`gpt-5.5` names no model: write `anthropic:…`, `openai:…`, or"),
        ("google:gemini", {}, "`google:gemini` names no model: write"),
        ("openai:m", {"base_url": "localhost"}, "`base_url: localhost` is no address"),
    ],
)
def test_what_is_missing_is_named(model: str, settings: dict[str, str], said: str) -> None:
    assert said in (problem(model, {}, **settings) or "")


@pytest.mark.parametrize("package", ["pydantic_ai", "openai"])
def test_a_missing_extra_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as Python marks what cannot be imported
    assert problem("openai:m", KEYS) == (
        "asking a model needs an extra that is not installed: pip install 'skillup-eval[models]'"
    )


# Which model reads for a case.

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


def test_panels_and_models_of_single_checks_are_among_those_that_are_asked() -> None:
    """Their keys are masked, and what they lack is known before the first turn."""
    own = {"model": ["openai:a", "anthropic:b"], "api_key_env": "OWN_KEY"}
    written = {
        "input": {"turns": [{"content": "x", "assertions": [{"rubric": "A", "judge": own}]}]},
        "assertions": [{"any_of": [{"similar": "y", "judge": "openai:c"}, {"contains": "z"}]}],
    }
    case = Case.model_validate(written)
    assert sorted(one.model for one in judge_models(case)) == [
        "anthropic:b",
        "openai:a",
        "openai:c",
    ]
    assert keys_of(models_of((), [case])) == {"OWN_KEY"}
    asked = with_judge_model(case, "openai:other")
    assert [one.model for one in judge_models(asked)] == ["openai:other"]
    again = Case.model_validate(asked.model_dump(mode="json", by_alias=True, exclude_unset=True))
    assert judge_models(again) == judge_models(asked)
    fallback = with_judge_model(case, None, "openai:other")
    assert len(judge_models(fallback)) == 3


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"contains": "a", "judge": "openai:a"}, "beside a check that no model reads"),
        (
            {"similar": "a", "judge": {"model": "openai:a", "combine": "majority"}},
            "is about verdicts, and this has a score",
        ),
        ({"relevance": {}, "judge": {"model": "openai:a", "combine": "median"}}, "is about scores"),
        ({"rubric": "a", "judge": {"model": []}}, "should be a valid string"),
        ({"rubric": "a", "judge": {"model": ["a:b", "a:b"]}}, "a model is named twice"),
    ],
)
def test_a_judge_that_does_not_fit_its_check_is_refused(check: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Check.model_validate(check)
