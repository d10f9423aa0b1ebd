"""What is known of a model before it is asked: its address, its key, and what is missing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillup.judges.models.client import Models
from skillup.judges.models.question import endpoint_of
from skillup.schema.judge import JudgeModel
from tests.support.asking import KEYS


def problem(model: str, environment: Mapping[str, str], **settings: str) -> str | None:
    models = Models(environment, str)
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
        ("anthropic:m", {}, "`anthropic:m` needs a key: set the variable ANTHROPIC_API_KEY"),
        ("openai:m", {}, "`openai:m` needs a key: set the variable OPENAI_API_KEY"),
        (
            "openai:m",
            {"base_url": "http://x/v1", "api_key_env": "MY_KEY"},
            "`openai:m` needs a key: set the variable MY_KEY",
        ),
        ("gpt-5.5", {}, "`gpt-5.5` names no model: write `anthropic:…`, `openai:…`, or"),
        ("google:gemini", {}, "there is no provider `google`"),
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
