"""Profiles `claude` and `codex`: the real CLIs at a scripted model server, and what they need."""

from __future__ import annotations

from pathlib import Path

from tests.support.model_server import ModelRequest, Reply, Rule, Script, Text, by_rules

ENGINES = ("claude", "codex")
KEYS = {
    "ANTHROPIC_API_KEY": "sk-lab-anthropic",
    "LAB_KEY": "sk-lab-openai",
    "SKILLUP_TRUST": "1",
}
"""The environment that they find their keys in."""


def profiles_at(claude: Path, codex: Path, url: str, more: str = "") -> dict[str, str]:
    """The files of both, for :meth:`Project.write`; `more` are lines for each of them."""
    own = f"engine: claude_code\ncommand: {claude}\nbase_url: {url}\nretries: 0\n"
    other = f"engine: codex\ncommand: {codex}\nbase_url: {url}/v1\nretries: 0\n"
    other += "api_key_env: LAB_KEY\nmodel: gpt-5.5\n"
    return {"engines/claude.yaml": own + more, "engines/codex.yaml": other + more}


def remembering(*rules: Rule) -> Script:
    """A model that answers with all the user has told it, where none of `rules` matches."""
    return by_rules(*rules, otherwise=_all_it_was_told)


def _all_it_was_told(request: ModelRequest) -> Reply:
    return Text("I was told: " + " | ".join(request.user_texts))
