"""The real CLIs at a scripted model server: in a project, and in conversations without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.engines.base import Engine
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.cli_runner import CliEngine
from skillup.engines.codex.engine import Codex
from skillup.schema.profile import Profile
from tests.support.clis import NO_NPM, CliName, find_cli
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

ENGINES = ("claude", "codex")
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


def _cli(name: CliName) -> Path:
    path = find_cli(name)
    if path is None:
        pytest.skip(NO_NPM)
    return path


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    return _cli("claude")


@pytest.fixture(scope="session")
def codex_cli() -> Path:
    """The real `codex`: npm's node wrapper, unless another one was given."""
    return _cli("codex")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """`claude`, then `codex`; a test that is about one of them parametrizes it itself."""
    return str(request.param)


@pytest.fixture
def model_server() -> Iterator[Serve]:
    """Starts model servers: `model_server(script=None) -> ModelServer`; they end with the test."""
    with ExitStack() as running:

        def start(script: Script | None = None) -> ModelServer:
            return running.enter_context(ModelServer(script))

        yield start


@pytest.fixture
def lab(project: Project, claude_cli: Path, codex_cli: Path, model_server: Serve) -> Lab:
    """`lab(script, files, more="")`: the project with profiles `claude` and `codex` for a server of
    that script, and the server; `more` are lines for both profiles.
    """

    def start(
        script: Script, files: Mapping[str, str], more: str = ""
    ) -> tuple[Project, ModelServer]:
        server = model_server(script)
        claude = f"engine: claude_code\ncommand: {claude_cli}\nbase_url: {server.url}\nretries: 0\n"
        codex = f"engine: codex\ncommand: {codex_cli}\nbase_url: {server.url}/v1\nretries: 0\n"
        codex += "api_key_env: LAB_KEY\nmodel: gpt-5.5\n"
        profiles = {"engines/claude.yaml": claude + more, "engines/codex.yaml": codex + more}
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
def begin(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: claude with ANTHROPIC_API_KEY, or codex with LAB_KEY."""
    is_claude = engine == "claude"
    made: Engine = ClaudeCode() if is_claude else Codex()
    cli: Path = request.getfixturevalue(f"{engine}_cli")

    def start(url: str, **keys: object) -> Conversation:
        own = {"engine": made.name, "command": [str(cli)], "retries": 0, "base_url": url}
        if not is_claude:
            own |= {"base_url": f"{url}/v1", "model": "gpt-5.5", "api_key_env": "LAB_KEY"}
        trial = make_trial(tmp_path / "parent", Profile.model_validate(own | keys))
        key = {"ANTHROPIC_API_KEY" if is_claude else "LAB_KEY": KEY}
        return with_variables(Conversation(made, trial), **key)

    return start


def with_variables(conversation: Conversation, **variables: str) -> Conversation:
    environment = {**conversation.trial.environment, **variables}
    conversation.trial = replace(conversation.trial, environment=environment)
    return conversation


def state_of(conversation: Conversation) -> Path:
    is_claude = conversation.engine.name == "claude_code"
    return conversation.trial.home / "home" / (".claude" if is_claude else ".codex")


def file_of(conversation: Conversation) -> Path:
    """The session's file after the latest turn."""
    session, engine = conversation.outcomes[-1].session, conversation.engine
    assert session is not None
    assert isinstance(engine, CliEngine)
    path = engine.session_file(state_of(conversation), session)
    assert path is not None
    return path
