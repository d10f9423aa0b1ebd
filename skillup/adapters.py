"""The registry of engines: one line each. Adapters are imported when they are asked for."""

from __future__ import annotations

from skillup.dataclass import frozen


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
    described: bool = False  # In YAML; `target` makes an engine of its name


def _described(home_variable: str | None, package: str, command: str, *aliases: str) -> Adapter:
    """Of a CLI that ``skillup/engines/command/agents`` describes."""
    target = "skillup.engines.command.engine:shipped_engine"
    npm = (package, command)
    return Adapter(target, home_variable, aliases=aliases, npm=npm, described=True)


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
    "copilot": _described("COPILOT_HOME", "@github/copilot", "copilot"),
    "gemini_cli": _described(None, "@google/gemini-cli", "gemini", "gemini", "gemini-cli"),
    "goose": _described(None, "@aaif/goose-binary-linux-x64", "goose"),
    "opencode": _described(None, "opencode-ai", "opencode"),
    "pi": _described("PI_CODING_AGENT_DIR", "@earendil-works/pi-coding-agent", "pi"),
    "qwen_code": _described("QWEN_HOME", "@qwen-code/qwen-code", "qwen", "qwen", "qwen-code"),
    "scripted": Adapter("skillup.engines.scripted.engine:ScriptedEngine"),
}

NOT_RUN = dict.fromkeys(
    ("qodercli", "qoder"),
    "models of Qoder need a login to its own service, which skillup cannot keep apart by trial",
)
"""Engines that suites of others name and that are not here, and why."""
ALIASES = {alias: name for name, adapter in ADAPTERS.items() for alias in adapter.aliases}
HOME_VARIABLES = frozenset(
    {"HOME", *(each.home_variable for each in ADAPTERS.values() if each.home_variable)}
)
"""Under ``isolation: clean`` these are the trial's own."""
