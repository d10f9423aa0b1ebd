"""A pytest over a project's cases."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

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


@pytest.fixture
def at_work(
    project: Project, tmp_path: Path
) -> Callable[..., AbstractContextManager[tuple[subprocess.Popen[str], int]]]:
    """`pytest ARGUMENTS` in the project, and the pid of the agent of the case `a`, which hangs."""
    agent = tmp_path / "agent"
    project.write(
        {
            "cases/a.yaml": f"""
                input: {{prompt: go}}
                assertions: [{{contains: ok}}]
                scripted: [{{steps: [{{run: 'echo $$ > "{agent}"; sleep 300'}}], say: ok}}]
                """
        }
    )

    @contextmanager
    def start(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=project.root,
            env=project.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + GUARD_SECONDS
            while not agent.exists() or not agent.read_text().endswith("\n"):
                assert time.monotonic() < deadline
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.02)
            yield process, int(agent.read_text())
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    return start
