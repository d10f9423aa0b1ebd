"""The environment that an agent gets: its own home under ``clean``, the user's under ``shared``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.base import TrialContext
from skillup.engines.transcript import as_dict
from skillup.process.secrets import json_texts

# What a program needs to run here at all: where things are, language, the way to the network.
_PASSED_ON = frozenset(
    {
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TERM",
        "SHELL",
        "USER",
        "LOGNAME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "CODEX_CA_CERTIFICATE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "VOLTA_HOME",
        "NVM_DIR",
        "FNM_DIR",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "MISE_DATA_DIR",
    }
)
_PASSED_ON_PREFIXES = ("LC_",)

# An agent that starts skillup marks its children; an agent that skillup starts is no such child.
_OF_AN_OUTER_AGENT = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_EXECPATH",
        "CODEX_THREAD_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_MANAGED_BY_NPM",
        "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
    }
)


@dataclass(frozen=True, slots=True)
class EngineHome:
    """Where a CLI keeps its state: `$VARIABLE`, else `~/DIRECTORY`; and its login file in there."""

    variable: str
    directory: str
    login_file: str
    expiry: Callable[[dict[str, Any]], float | None] = lambda _: None
    """When a login file's content has to be renewed (Unix time); None: never, or it is none."""

    def of(self, environment: Mapping[str, str]) -> Path:
        """The directory that a CLI with this environment would use."""
        given = environment.get(self.variable)
        if given:
            return Path(given)
        home = environment.get("HOME")
        return (Path(home) if home else Path.home()) / self.directory

    def login_of(self, environment: Mapping[str, str]) -> Path | None:
        """The login file, if there is one."""
        path = self.of(environment) / self.login_file
        return path if path.is_file() else None


def lookup(trial: TrialContext, name: str) -> str | None:
    """A variable as suite and profile set it, else as the user has it; None if unset or empty."""
    return trial.extra_env.get(name) or trial.environment.get(name) or None


def trial_environment(
    trial: TrialContext, home: EngineHome, credentials: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of the agent's process; makes the trial's homes if they are missing.

    `credentials` are the variables that log the CLI in. Under ``clean`` without any of them the
    user's login file is copied into the trial's home, once: the CLI may renew its own copy.
    """
    # The system's holds other trials, and sandboxes let tools write into what TMPDIR names.
    temporary = {"TMPDIR": str(temporary_directory(trial))}
    if trial.profile.isolation == "shared":
        inherited = {
            name: value
            for name, value in trial.environment.items()
            if name not in _OF_AN_OUTER_AGENT
        }
        return {**inherited, **temporary, **credentials, **trial.extra_env}
    own_home = trial.home / "home"
    engine_home = own_home / home.directory
    engine_home.mkdir(parents=True, exist_ok=True)
    if not credentials:
        _copy_login(home.login_of(trial.environment), engine_home / home.login_file)
    return {
        **clean_variables(trial.environment),
        "HOME": str(own_home),
        home.variable: str(engine_home),
        **temporary,
        **credentials,
        **trial.extra_env,
    }


def temporary_directory(trial: TrialContext) -> Path:
    """A directory for temporary files that is beside the trial's home, not in it; it is made."""
    directory = trial.home / "tmp"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def clean_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The few variables that pass from the user to an agent under ``clean``."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    return {"PATH": os.defpath, **kept}


def login_secrets(login: Path | None) -> dict[str, str]:
    """The long texts of a login file, by a name of their own: tokens that must not be written."""
    if login is None:
        return {}
    try:
        texts = json_texts(login.read_text("utf-8").strip())
    except (OSError, ValueError):
        return {}
    return {f"{login.name}.{number}": text for number, text in enumerate(texts)}


def renewal_due(home: EngineHome, login: bytes) -> float | None:
    """When the CLI will renew this login, which is a login file's content."""
    try:
        return home.expiry(as_dict(json.loads(login)))
    except (ValueError, RecursionError):
        return None


def _copy_login(source: Path | None, target: Path) -> None:
    if source is None or target.exists():
        return
    shutil.copyfile(source, target)
    target.chmod(0o600)
