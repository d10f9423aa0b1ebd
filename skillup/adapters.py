"""The registry of engines: one line each. Adapters are imported when they are asked for."""

from __future__ import annotations

from skillup.frozen import frozen


@frozen
class Adapter:
    """What must be known of an engine without importing it."""

    target: str  # ``module:Class`` of the :class:`skillup.engines.base.Engine`
    home_variable: str | None = None
    """The variable that says where the CLI keeps its sessions, settings and login."""
    login_file: str | None = None  # In there; None: it logs in by variables only, or not at all
    aliases: tuple[str, ...] = ()
    live: bool = False  # One process can hold several turns
    npm: tuple[str, str] | None = None  # Its CLI's package there, and the command in it


ADAPTERS = {
    "claude_code": Adapter(
        "skillup.engines.claude_code.engine:ClaudeCode",
        home_variable="CLAUDE_CONFIG_DIR",
        login_file=".credentials.json",
        aliases=("claude", "claude-code"),
        live=True,
        npm=("@anthropic-ai/claude-code", "claude"),
    ),
    "codex": Adapter(
        "skillup.engines.codex.engine:Codex",
        home_variable="CODEX_HOME",
        login_file="auth.json",
        live=True,
        npm=("@openai/codex", "codex"),
    ),
    "acp": Adapter("skillup.engines.acp.engine:Acp", live=True),
    "scripted": Adapter("skillup.engines.scripted.engine:ScriptedEngine"),
}

ALIASES = {alias: name for name, adapter in ADAPTERS.items() for alias in adapter.aliases}
HOME_VARIABLES = frozenset(
    {"HOME", *(each.home_variable for each in ADAPTERS.values() if each.home_variable)}
)
"""Under ``isolation: clean`` these are the trial's own."""
