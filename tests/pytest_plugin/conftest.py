"""A pytest over a project's cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from tests.support.project import GUARD_SECONDS, Outcome, Project


@pytest.fixture
def run_pytest(project: Project) -> Callable[..., Outcome]:
    """`pytest ARGUMENTS` in the project, with no settings of this repository; `env` adds to it."""

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=project.root,
            env=project.environment({"COLUMNS": "150", **(env or {})}),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=GUARD_SECONDS,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
