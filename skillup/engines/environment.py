"""The environment that an agent gets: its own home under ``clean``, the user's under ``shared``."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.base import TrialContext
from skillup.engines.events import words

# What a program needs to run here at all: where things are, language, the way to the network.
_PASSED_ON = words("""
    PATH LANG LANGUAGE TZ TMPDIR TERM SHELL USER LOGNAME SSL_CERT_FILE SSL_CERT_DIR
    NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HTTP_PROXY HTTPS_PROXY NO_PROXY
    ALL_PROXY http_proxy https_proxy no_proxy all_proxy VOLTA_HOME NVM_DIR FNM_DIR ASDF_DIR
    ASDF_DATA_DIR MISE_DATA_DIR
""")


@dataclass(frozen=True, slots=True)
class EngineHome:
    """Where a CLI keeps its state: `$VARIABLE`, else `~/DIRECTORY`; and its login file in there."""

    variable: str
    directory: str
    login_file: str
    expiry: Callable[[dict[str, Any]], float | None] = lambda _: None
    """When a login file's content has to be renewed (Unix time); None: never, or it is none."""
    marks: frozenset[str] = frozenset()
    """Variables by which the CLI knows that it runs within itself; ours does not."""
    passed_on: frozenset[str] = frozenset()
    """Variables of the CLI's own that it needs under ``clean``, too."""

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

    def login_in(self, trial_home: Path) -> Path:
        """Where a trial's own copy of the login is."""
        return trial_home / "home" / self.directory / self.login_file


def trial_environment(
    trial: TrialContext, home: EngineHome | None, credentials: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of the agent's process; makes the trial's homes if they are missing.

    `credentials` are the variables that log the CLI in. Under ``clean`` without any of them the
    user's login file is copied into the trial's home, once: the CLI may renew its own copy.
    """
    # Beside the home: the system's holds other trials, and sandboxes let tools write into it.
    temporary = trial.home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    given = {"TMPDIR": str(temporary), **credentials, **trial.extra_env}
    if trial.profile.isolation == "shared":
        marks = home.marks if home is not None else frozenset()
        return {k: v for k, v in trial.environment.items() if k not in marks} | given
    own_home = trial.home / "home"
    own_home.mkdir(exist_ok=True)
    env = clean_variables(trial.environment) | {"HOME": str(own_home)}
    if home is not None:
        engine_home = own_home / home.directory
        engine_home.mkdir(exist_ok=True)
        env |= {k: v for k, v in trial.environment.items() if k in home.passed_on}
        env[home.variable] = str(engine_home)
        source, copy = home.login_of(trial.environment), home.login_in(trial.home)
        if not credentials and source is not None and not copy.exists():
            shutil.copyfile(source, copy)
            copy.chmod(0o600)
    return env | given


def clean_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The few variables that pass from the user to an agent under ``clean``."""
    kept = {k: v for k, v in environment.items() if k in _PASSED_ON or k.startswith("LC_")}
    return {"PATH": os.defpath, **kept}


def write_private(path: Path, chunks: Iterable[bytes]) -> None:
    """At once, for the owner only: who reads the file finds the old or the new, whole."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
