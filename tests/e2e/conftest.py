"""Fixtures of the end-to-end tests: the real CLIs, and model servers for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.clis import NO_NPM, CliName, find_cli
from tests.support.engine_turns import Conversation
from tests.support.lab_engines import claude_conversation, codex_conversation
from tests.support.lab_profiles import ENGINES, profiles_at
from tests.support.model_server import ModelServer, Script

Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]


def _cli(name: CliName) -> Path:
    path = find_cli(name)
    if path is None:
        pytest.skip(NO_NPM)
    return path


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    """The real `claude`."""
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
def begin(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with the engine, without `skillup run`."""
    make = claude_conversation if engine == "claude" else codex_conversation
    return partial(make, request.getfixturevalue(f"{engine}_cli"), tmp_path / "parent")


@pytest.fixture
def lab_profiles(claude_cli: Path, codex_cli: Path) -> Callable[..., dict[str, str]]:
    """`lab_profiles(url, more="")`: the files of profiles `claude` and `codex` for that server."""
    return partial(profiles_at, claude_cli, codex_cli)


@pytest.fixture
def model_server() -> Iterator[Serve]:
    """Starts model servers: `model_server(script=None) -> ModelServer`; they end with the test."""
    with ExitStack() as running:

        def start(script: Script | None = None) -> ModelServer:
            return running.enter_context(ModelServer(script))

        yield start
