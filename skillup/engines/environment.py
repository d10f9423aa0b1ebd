"""The environment and login of an agent: a trial's own under ``clean``, else the user's."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from skillup.dataclass import frozen
from skillup.engines.base import TrialContext
from skillup.engines.events import as_dict, words
from skillup.redaction.secrets import NO_SECRETS, Secrets, json_texts
from skillup.schema.profile import Profile
from skillup.workspace.disk import ensure_directory, leads_out, open_at_once, same_path, write_whole

# What a program needs to run here at all: where things are, language, the way to the network.
_PASSED_ON = words("""
    PATH LANG LANGUAGE TZ TMPDIR TERM SHELL USER LOGNAME SSL_CERT_FILE SSL_CERT_DIR
    NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HTTP_PROXY HTTPS_PROXY NO_PROXY
    ALL_PROXY http_proxy https_proxy no_proxy all_proxy VOLTA_HOME NVM_DIR FNM_DIR ASDF_DIR
    ASDF_DATA_DIR MISE_DATA_DIR
""")


@frozen
class EngineHome:
    """Where a CLI keeps its state: `$VARIABLE`, else `~/DIRECTORY`; and its login file in there.

    The variable is that of the registry (``skillup/adapters.py``), which is read without the CLI.
    """

    variable: str
    directory: str
    login_file: str | None = None  # None: it logs in by variables only, or not at all
    expiry: Callable[[dict[str, Any]], float | None] = lambda _: None
    """When a login file's content has to be renewed (Unix time); None: never, or it is none."""
    marks: frozenset[str] = frozenset()  # Variables by which it knows that it runs within itself
    passed_on: frozenset[str] = frozenset()  # Variables of its own that it needs under `clean`, too

    def of(self, environment: Mapping[str, str]) -> Path:
        """The directory that a CLI with this environment would use."""
        home = environment.get("HOME") or Path.home()
        return same_path(environment.get(self.variable) or f"{home}/{self.directory}")

    def login_of(self, environment: Mapping[str, str]) -> Path | None:
        """The login file, if there is one."""
        path = f"{self.of(environment)}/{self.login_file or ''}"
        return Path(path) if os.path.isfile(path) else None  # noqa: PTH113 - for every turn

    def due(self, login: bytes) -> float | None:
        """When the CLI will renew a login file of this content."""
        try:
            return self.expiry(as_dict(json.loads(login)))
        except (ValueError, RecursionError):
            return None

    def login_in(self, trial_home: Path) -> Path | None:
        """Where a trial's own copy of the login is, or would be."""
        directory = trial_home / "home" / self.directory
        return directory / self.login_file if self.login_file else None


def trial_environment(
    trial: TrialContext, home: EngineHome | None, credentials: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of the agent's process; makes the trial's homes if they are missing.

    Under ``clean`` without `credentials`, variables that log the CLI in, the user's login file is
    copied into the trial's home, once: the CLI may renew its own copy. A sandbox gets it without
    what renews it, which serves once: a login that comes from there may be somebody else's.
    """
    # The system's holds other programs' files, and sandboxes let tools write into it.
    temporary = trial.temporary
    ensure_directory(temporary, 0o700)
    given = {"TMPDIR": str(temporary), **credentials, **trial.extra_env}
    if trial.profile.isolation == "shared":
        marks = home.marks if home is not None else frozenset()
        return {k: v for k, v in trial.environment.items() if k not in marks} | given
    own_home = f"{trial.home}/home"
    directory = same_path(f"{own_home}/{home.directory}" if home is not None else own_home)
    ensure_directory(directory)
    env = clean_variables(trial.environment) | {"HOME": own_home}
    if home is not None:
        env |= {k: v for k, v in trial.environment.items() if k in home.passed_on}
        env |= {home.variable: str(directory)} if home.variable else {}
        copy = None if credentials else home.login_in(trial.home)
        source, lends = home.login_of(trial.environment) if copy else None, trial.box.isolates
        if copy is not None and source is not None and (lends or not os.path.lexists(copy)):
            login = _RENEWING.sub(rb'\1""', _read(source)) if lends else _read(source)
            with suppress(OSError):  # the agent may have made it a directory, or a link
                if copy.parent.resolve() == copy.parent and login != _read(copy):
                    write_whole(copy, [login], _PRIVATE)
    return env | given


def clean_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The few variables that pass from the user to an agent under ``clean``."""
    kept = {k: v for k, v in environment.items() if k in _PASSED_ON or k.startswith("LC_")}
    return {"PATH": os.defpath, **kept}


# Both CLIs renew a login from five minutes before its expiry on; one minute more for our clocks.
_RENEWED_BEFORE_SECONDS = 360.0
_LOCK_PAUSE_SECONDS = 0.1
_RENEWING = re.compile(rb'("refresh_?[tT]oken"\s*:\s*)"[^"]*"')  # Codex needs one, if only empty
_PRIVATE = 0o600  # For the owner only
_LONGEST_LOGIN = 1 << 20  # Bytes; the agent may have made it another file, or a pipe


@frozen
class Login:
    """`variable` is the user's name for the key, `value` its value; both None: the login file."""

    variable: str | None = None
    value: str | None = None
    missing: str | None = None  # What is wrong: the profile names a variable that is not set


def find_login(profile: Profile, variables: Mapping[str, str], own: Sequence[str]) -> Login:
    """The key that the profile names, else the first of the CLI's `own` variables that is set."""
    named = profile.api_key_env
    if named is not None and not variables.get(named):
        what = f"the variable {named}, which the profile names in `api_key_env`, is not set"
        return Login(missing=what)
    found = next((n for n in ([named] if named is not None else own) if variables.get(n)), None)
    return Login(found, variables[found]) if found else Login()


def login_problem(trial: TrialContext, home: EngineHome | None) -> str | None:
    """Why the login file does not serve: in a sandbox it must last for a turn."""
    file = home.login_of(trial.environment) if home is not None and trial.box.isolates else None
    due = home.due(_read(file)) if home is not None and file is not None else None
    if due is None or due - time.time() >= trial.profile.timeout_seconds:
        return None
    end = datetime.fromtimestamp(due, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    what = f"the login in {file} ends at {end}, within a turn's time, and no sandbox renews it"
    return f"{what}: start the CLI once without one, after that"


def login_secrets(login: Path | None) -> dict[str, str]:
    """The long texts of a login file, by a name of their own: tokens that must not be written."""
    if login is None:
        return {}
    try:
        texts = json_texts(_read(login).decode().strip())
    except (OSError, ValueError):
        return {}
    return {f"{login.name}.{number}": text for number, text in enumerate(texts)}


@asynccontextmanager
async def renewed_once(
    trial: TrialContext, home: EngineHome | None, env: Mapping[str, str], turn_seconds: float
) -> AsyncIterator[Callable[[Secrets], None]]:
    """A turn whose CLI is logged in by a file, if there is one; it renews it before it expires.

    What it renews with serves once, and all trials have copies of one login. So one process at a
    time begins a turn in which that may happen; the others wait until the new login is in the
    user's own file, and take that. Call what this yields at signs of life of the CLI, with the
    secrets of the turn: they and those of the run learn the new login.
    """
    is_own = trial.profile.isolation != "shared"
    if (
        home is None
        or trial.box.isolates
        or (theirs := home.login_of(trial.environment)) is None
        or (is_own and leads_out(home.of(env) / theirs.name, trial.home))  # by the agent
    ):
        yield lambda _: None
        return
    login = _SharedLogin(home, theirs.resolve(), home.of(env) / theirs.name, trial.secrets)
    try:
        if not await login.is_fresh(turn_seconds):
            await login.lock()
            if await login.is_fresh(turn_seconds):
                login.unlock()
        try:
            yield login.give_back
        finally:
            login.give_back(NO_SECRETS)
    finally:
        login.unlock()


class _SharedLogin:
    """The user's login file and a trial's copy of it; with `isolation: shared` they are one."""

    def __init__(self, home: EngineHome, theirs: Path, own: Path, secrets: Secrets) -> None:
        self._home, self._theirs, self._own, self._secrets = home, theirs, own, secrets
        self._lock: int | None = None
        self._taken = b""
        self._stamp: object = None

    async def is_fresh(self, seconds: float) -> bool:
        """Takes the login; whether it will not be renewed within so many seconds."""
        await anyio.to_thread.run_sync(self._take)
        due = self._home.due(self._taken)
        return due is None or due - time.time() >= seconds + _RENEWED_BEFORE_SECONDS

    def _take(self) -> None:
        """Renews the copy, if the user's file has been renewed."""
        self._taken = _read(self._theirs)
        due = self._home.due(self._taken) or 0
        if self._own.resolve() != self._theirs and due > (self._home.due(_read(self._own)) or 0):
            write_whole(self._own, [self._taken], _PRIVATE)
            self._secrets.learn(login_secrets(self._own))
        self._stamp = self._stamp_now()

    def give_back(self, secrets: Secrets) -> None:
        """Renews the user's file, if the copy has been, and nobody has changed that since."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        new, before = _read(self._own), self._home.due(self._taken)
        if before is None or before >= (self._home.due(new) or 0):
            return  # not written whole yet, or a login that is used up
        self._stamp = stamp
        for masking in (secrets, self._secrets):
            masking.learn(login_secrets(self._own))
        if self._own.resolve() != self._theirs and _read(self._theirs) == self._taken:
            with suppress(OSError):  # the user's file may be read-only: the trial has its own
                write_whole(self._theirs, [new], _PRIVATE)
        self.unlock()

    async def lock(self) -> None:
        """Waits for the lock, in this process or another; goes on where there can be none."""
        path = self._theirs.with_name(f"{self._theirs.name}.skillup-lock")
        with suppress(OSError):
            self._lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            while True:
                with suppress(BlockingIOError):
                    return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                await anyio.sleep(_LOCK_PAUSE_SECONDS)

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _stamp_now(self) -> object:
        try:
            status = self._own.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> bytes:
    try:
        with open_at_once(path) as file:
            return file.read(_LONGEST_LOGIN) or b""
    except OSError:
        return b""
