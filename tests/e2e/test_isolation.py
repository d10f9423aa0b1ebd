"""What the user has at home stays out of a clean trial, and is there in a shared one.

The model server's log holds every word that reached the model, so a decoy that leaks is found
wherever in the request it stands.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.engines.base import EngineTurn
from tests.e2e.conftest import KEY, Begin, Serve, with_variables
from tests.support.engine_turns import Conversation, error_kind, write_skill
from tests.support.model_server import ModelServer
from tests.support.trees import make_tree

pytestmark = pytest.mark.e2e

DECOY = "DECOY"
OWN_INSTRUCTIONS = "OWN-INSTRUCTIONS"
Say = Callable[..., tuple[Conversation, EngineTurn]]


def decoys_of_claude(home: Path, marker: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": f"touch {marker}; echo {DECOY}-hook"}]}
    hooks = {"SessionStart": [hook], "UserPromptSubmit": [hook]}
    make_tree(
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
    make_tree(home, {".claude.json": json.dumps(server)})


def decoys_of_codex(home: Path) -> None:
    make_tree(
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
    make_tree(
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


@pytest.fixture
def server(model_server: Serve) -> ModelServer:
    return model_server()


@pytest.fixture
def say(begin: Begin, server: ModelServer, engine: str, tmp_path: Path) -> Say:
    """`say(isolation="clean")`: a turn in a workspace with a skill, below and beside decoys."""

    def greet(isolation: str = "clean") -> tuple[Conversation, EngineTurn]:
        conversation = begin(server.url, isolation=isolation, api_key_env="LAB_KEY")
        with_variables(conversation, LAB_KEY=KEY, DECOY_VARIABLE=f"{DECOY}-variable")
        workspace = conversation.trial.workspace
        (folder,) = conversation.engine.skill_directories()
        write_skill(workspace / folder)
        name = {"claude": "CLAUDE.md", "codex": "AGENTS.md"}[engine]
        make_tree(workspace, {name: OWN_INSTRUCTIONS})
        outcome = conversation.say("hello")
        assert error_kind(outcome) is None
        return conversation, outcome

    above = tmp_path / "parent"
    if engine == "claude":
        decoys_of_claude(above / "user-home", tmp_path / "hook-ran")
    else:
        decoys_of_codex(above / "user-home")
    decoys_above(above)
    return greet


def test_nothing_of_the_users_reaches_a_clean_trial(
    say: Say, server: ModelServer, tmp_path: Path
) -> None:
    """Nor does the memory of an earlier turn."""
    conversation, outcome = say()
    for project in (conversation.trial.home / "home").glob(".claude/projects/*"):
        make_tree(project, {"memory/MEMORY.md": f"{DECOY}-memory"})
    conversation.say("again")

    assert leaks(server) == []
    assert not (tmp_path / "hook-ran").exists()
    assert "Says hello politely (greeter)" in server.requests[0].raw_text
    assert OWN_INSTRUCTIONS in server.requests[0].raw_text
    assert not any("DECOY" in notice.upper() for notice in outcome.notices)


def test_a_shared_trial_has_the_users_own(
    say: Say, server: ModelServer, engine: str, tmp_path: Path
) -> None:
    is_claude = engine == "claude"

    conversation, _ = say("shared")

    assert (tmp_path / "hook-ran").exists() is is_claude
    found = " ".join(leaks(server)).upper()
    names = ("instructions", "skill", "above") if is_claude else ("instructions", "one", "two")
    assert [name for name in names if f"{DECOY}-{name}".upper() not in found] == []
    assert is_claude or f"{DECOY}-CONFIG" in found
    assert not (conversation.trial.home / "home").exists()
    assert conversation.say("again").session_verified is True
