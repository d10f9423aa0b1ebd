"""What the user has at home stays out of a clean trial, and is there in a shared one.

The model server's log holds every word that reached the model, so a decoy that leaks is found
wherever in the request it stands.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from skillup.engines.base import Engine, EngineTurn
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.codex.engine import Codex
from skillup.schema.profile import Profile
from tests.support.engine_turns import (
    Conversation,
    error_kind,
    make_trial,
    write_files,
    write_skill,
)
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.e2e

Serve = Callable[..., ModelServer]

DECOY = "DECOY"
OWN_INSTRUCTIONS = "OWN-INSTRUCTIONS"


@dataclass(frozen=True)
class Bench:
    """One CLI between a user's home full of decoys and a workspace with a skill of its own."""

    engine: Engine
    command: Path
    base: Path
    url: str
    files_of_the_workspace: dict[str, str]

    def say(self, isolation: str = "clean") -> tuple[Conversation, EngineTurn]:
        is_claude = self.engine.name == "claude_code"
        profile = Profile.model_validate(
            {
                "engine": self.engine.name,
                "command": [str(self.command)],
                "base_url": self.url if is_claude else f"{self.url}/v1",
                "model": None if is_claude else "gpt-5.5",
                "api_key_env": "LAB_KEY",
                "isolation": isolation,
                "retries": 0,
            }
        )
        trial = make_trial(self.base / "above", profile)
        user_home = self.base / "above" / "user-home"
        environment = {
            **trial.environment,
            "LAB_KEY": "sk-lab-0123456789",
            "HOME": str(user_home),
            "DECOY_VARIABLE": f"{DECOY}-variable",
        }
        (folder,) = self.engine.skill_directories()
        if not (trial.workspace / folder).exists():
            write_skill(trial.workspace / folder)
            write_files(trial.workspace, self.files_of_the_workspace)
        conversation = Conversation(self.engine, replace(trial, environment=environment))
        outcome = conversation.say("hello")
        assert error_kind(outcome) is None
        return conversation, outcome


def decoys_of_claude(home: Path, marker: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": f"touch {marker}; echo {DECOY}-hook"}]}
    hooks = {"SessionStart": [hook], "UserPromptSubmit": [hook]}
    write_files(
        home / ".claude",
        {
            "CLAUDE.md": f"{DECOY}-instructions",
            "settings.json": json.dumps({"hooks": hooks, "env": {"X": f"{DECOY}-env"}}),
            "agents/decoy.md": f"---\nname: decoy\ndescription: {DECOY}-agent\n---\nx\n",
            "commands/decoy.md": f"---\ndescription: {DECOY}-command\n---\nx\n",
            "output-styles/decoy.md": f"---\nname: decoy\ndescription: {DECOY}-style\n---\nx\n",
        },
    )
    write_skill(home / ".claude" / "skills", f"{DECOY}-skill".lower(), DECOY)
    server = {"mcpServers": {"decoy": {"command": f"/nonexistent/{DECOY}"}}}
    write_files(home, {".claude.json": json.dumps(server)})


def decoys_of_codex(home: Path) -> None:
    write_files(
        home / ".codex",
        {
            "AGENTS.md": f"{DECOY}-instructions",
            "config.toml": f'developer_instructions = "{DECOY}-config"\n',
            "prompts/decoy.md": f"{DECOY}-prompt",
        },
    )
    write_skill(home / ".codex" / "skills", f"{DECOY}-one".lower(), DECOY)
    write_skill(home / ".agents" / "skills", f"{DECOY}-two".lower(), DECOY)


def decoys_above(directory: Path) -> None:
    """In a git repository around the workspace."""
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    write_files(
        directory,
        {
            "CLAUDE.md": f"{DECOY}-above",
            "CLAUDE.local.md": f"{DECOY}-above-local",
            ".claude/CLAUDE.md": f"{DECOY}-above-dot",
            ".claude/rules/rule.md": f"{DECOY}-above-rule",
            "AGENTS.md": f"{DECOY}-above-agents",
            ".mcp.json": json.dumps({"mcpServers": {"decoy": {"command": f"/x/{DECOY}"}}}),
        },
    )
    write_skill(directory / ".agents" / "skills", f"{DECOY}-above".lower(), DECOY)


def leaks(server: ModelServer) -> list[str]:
    """Where the decoy's word stands in what reached the model, with what is around it."""
    found = []
    for request in server.requests:
        text = request.raw_text
        folded = text.upper()
        position = folded.find(DECOY)
        while position >= 0:
            found.append(text[max(0, position - 60) : position + 60])
            position = folded.find(DECOY, position + 1)
    return found


@pytest.fixture(params=["claude", "codex"])
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, model_server: Serve
) -> tuple[Bench, ModelServer]:
    home, server = tmp_path / "above" / "user-home", model_server()
    cli: Path = request.getfixturevalue(f"{request.param}_cli")
    if request.param == "claude":
        decoys_of_claude(home, tmp_path / "hook-ran")
        files = {"CLAUDE.md": OWN_INSTRUCTIONS}
        made = Bench(ClaudeCode(), cli, tmp_path, server.url, files)
    else:
        decoys_of_codex(home)
        files = {"AGENTS.md": OWN_INSTRUCTIONS}
        made = Bench(Codex(), cli, tmp_path, server.url, files)
    decoys_above(tmp_path / "above")
    return made, server


def test_nothing_of_the_users_reaches_a_clean_trial(bench: tuple[Bench, ModelServer]) -> None:
    """Nor does the memory of an earlier turn."""
    made, server = bench

    conversation, outcome = made.say()
    for project in (conversation.trial.home / "home").glob(".claude/projects/*"):
        write_files(project, {"memory/MEMORY.md": f"{DECOY}-memory"})
    conversation.say("again")

    assert leaks(server) == []
    assert not (made.base / "hook-ran").exists()
    assert "Says hello politely (greeter)" in server.requests[0].raw_text
    assert OWN_INSTRUCTIONS in server.requests[0].raw_text
    assert not any("DECOY" in notice.upper() for notice in outcome.notices)


def test_a_shared_trial_has_the_users_own(bench: tuple[Bench, ModelServer]) -> None:
    made, server = bench
    is_claude = made.engine.name == "claude_code"

    conversation, _ = made.say("shared")

    assert (made.base / "hook-ran").exists() is is_claude
    found = " ".join(leaks(server)).upper()
    names = ("instructions", "skill", "above") if is_claude else ("instructions", "one", "two")
    assert [name for name in names if f"{DECOY}-{name}".upper() not in found] == []
    assert is_claude or f"{DECOY}-CONFIG" in found
    assert not (conversation.trial.home / "home").exists()
    assert conversation.say("again").session_verified is True
