"""The profile of the agent that judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.judges.agent.judge import profile_of
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from tests.support.judging import Bench

OWN = Profile(name="own", engine="codex", model="gpt", permission="full", args=["--x"])


def _profile(tmp_path: Path, **keys: Any) -> Profile:
    other = Profile(name="other", engine="claude_code", permission="edits", base_url="http://a")
    bench = Bench(tmp_path, profiles={"other": other}, own=OWN)
    judge = JudgeConfig.model_validate({"type": "agent_judge", "criteria": "x", **keys})
    place = replace(bench.place(), environment={"SKILLUP_TRUST": "1"})
    return profile_of(judge, place)


@pytest.mark.parametrize(
    ("keys", "model"),
    [
        ({"model": "sonnet"}, "sonnet"),
        ({"model": "anthropic/claude-sonnet-4-6"}, "claude-sonnet-4-6"),
        ({"model": "openai:gpt-5"}, "gpt-5"),
        ({"model": "openai/gpt-5", "base_url": "http://router"}, "openai/gpt-5"),
        ({"model": "dashscope/qwen"}, "dashscope/qwen"),
        ({}, "gpt"),
    ],
)
def test_the_judges_model_is_named_as_the_cli_takes_it(
    tmp_path: Path, keys: dict[str, str], model: str
) -> None:
    profile = _profile(tmp_path, **keys, api_key_env="JUDGE_KEY")

    assert (profile.model, profile.api_key_env) == (model, "JUDGE_KEY")
    assert profile.base_url == keys.get("base_url")
