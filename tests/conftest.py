"""Fixtures for every test."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.project import Project


def pytest_configure() -> None:
    """Tests that press Ctrl-C also work where the test run itself was started in the background.

    A shell without job control has such commands ignore SIGINT, and children inherit that. And no
    test fails because the machine has much to do.
    """
    # Where bytecode is not kept, each process of the tests would compile all modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # What a run says in CI is said where a test sets these, not wherever the tests themselves run.
    for name in list(os.environ):
        if name == "CI" or name.startswith(("CI_", "GITHUB_")):
            del os.environ[name]
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: tests also wait, as for agents that hang."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first: else one worker is left with them when the others have ended."""
    items.sort(key=lambda item: "test_conformance" not in item.nodeid)


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """An empty project with a home of its own."""
    return Project(tmp_path, indexed=request.node.get_closest_marker("indexed") is not None)
