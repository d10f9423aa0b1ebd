"""Fixtures of the end-to-end tests: the real CLIs, and model servers for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.clis import NO_NPM, CliName, find_cli
from tests.support.lab_profiles import profiles_at
from tests.support.model_server import ModelServer, Script
from tests.support.raw_cli import RawClaude, RawCodex


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


@pytest.fixture
def lab_profiles(claude_cli: Path, codex_cli: Path) -> Callable[..., dict[str, str]]:
    """`lab_profiles(url, more="")`: the files of profiles `claude` and `codex` for that server."""
    return partial(profiles_at, claude_cli, codex_cli)


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """Starts model servers: `model_server(script=None) -> ModelServer`; they end with the test."""
    with ExitStack() as running:

        def start(script: Script | None = None) -> ModelServer:
            return running.enter_context(ModelServer(script))

        yield start


@pytest.fixture
def raw_claude(claude_cli: Path, tmp_path: Path) -> Callable[[str], RawClaude]:
    """`raw_claude(url)`: claude with a home and a workspace of its own, without our adapter."""
    return lambda url: RawClaude(claude_cli, tmp_path / "claude", url)


@pytest.fixture
def raw_codex(codex_cli: Path, tmp_path: Path) -> Callable[[str], RawCodex]:
    """`raw_codex(url)`: codex with a home and a workspace of its own, without our adapter."""
    return lambda url: RawCodex(codex_cli, tmp_path / "codex", url)
