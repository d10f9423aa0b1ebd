"""The environment that an agent gets: its own home under ``clean``, the user's under ``shared``."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.base import TrialContext
from skillup.engines.cli_runner import as_dict
from skillup.redaction.secrets import json_texts

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


# What of a trial's home is a login, or only a cache: no copy of the home is made of it.

LOGIN_FILES = ("home/.claude/.credentials.json", "home/.codex/auth.json")
"""Relative to the trial's home; a copy of the user's own, which the CLI may have renewed."""


def remove_logins(home: Path) -> None:
    """Removes the logins from a trial's home: it is kept, and nobody works in it."""
    for name in LOGIN_FILES:
        with suppress(OSError):
            (home / name).unlink()


# Paths in texts and data that were made in one directory and are to mean another.


def moved(value: Any, old: str, new: str) -> Any:
    """`value` (JSON data) with the directory `old` replaced by `new` in all its texts."""
    if isinstance(value, str):
        return moved_text(value, old, new)
    if isinstance(value, list):
        return [moved(item, old, new) for item in value]
    if isinstance(value, dict):
        return {moved(key, old, new): moved(item, old, new) for key, item in value.items()}
    return value


def moved_text(text: str, old: str, new: str) -> str:
    """`text` with the path `old` replaced, but not where it only begins a longer name.

    ``/w/one`` is moved in ``/w/one``, ``/w/one/a`` and ``cd /w/one.``, not in ``/w/one-2``.
    """
    if old not in text:
        return text
    # A dot may end a sentence; only before another character of a name is it part of one.
    end = r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9_])"
    return re.sub(re.escape(old) + end, lambda _: new, text)
