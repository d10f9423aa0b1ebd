"""Conversations with the real CLIs at a scripted model server, and where their state is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skillup.engines.base import Engine
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.cli_runner import CliEngine
from skillup.engines.codex.engine import Codex
from skillup.schema.profile import Profile
from tests.support.engine_turns import Conversation, make_trial

KEY = "sk-lab-0123456789"


def claude_conversation(cli: Path, base: Path, url: str, **keys: object) -> Conversation:
    """With claude, logged in by ANTHROPIC_API_KEY; `keys` are the profile's."""
    settings = {"engine": "claude_code", "base_url": url, **keys}
    return _conversation(ClaudeCode(), cli, base, settings, "ANTHROPIC_API_KEY")


def codex_conversation(cli: Path, base: Path, url: str, **keys: object) -> Conversation:
    """With codex, logged in by LAB_KEY; `keys` are the profile's."""
    own = {"engine": "codex", "model": "gpt-5.5", "api_key_env": "LAB_KEY"}
    return _conversation(Codex(), cli, base, {**own, "base_url": f"{url}/v1", **keys}, "LAB_KEY")


def _conversation(
    engine: Engine, cli: Path, base: Path, settings: dict[str, object], key_variable: str
) -> Conversation:
    profile = Profile.model_validate({"command": [str(cli)], "retries": 0, **settings})
    trial = make_trial(base, profile)
    return with_variables(Conversation(engine, trial), **{key_variable: KEY})


def with_variables(conversation: Conversation, **variables: str) -> Conversation:
    """The same conversation in an environment that has these variables, too."""
    environment = {**conversation.trial.environment, **variables}
    conversation.trial = replace(conversation.trial, environment=environment)
    return conversation


def state_of(conversation: Conversation) -> Path:
    """The CLI's own directory in the trial's home."""
    is_claude = conversation.engine.name == "claude_code"
    return conversation.trial.home / "home" / (".claude" if is_claude else ".codex")


def file_of(conversation: Conversation) -> Path:
    """The session's file after the latest turn."""
    session = conversation.outcomes[-1].session
    assert session is not None
    engine = conversation.engine
    assert isinstance(engine, CliEngine)
    path = engine.session_file(state_of(conversation), session)
    assert path is not None
    return path
