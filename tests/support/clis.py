"""Finds the real `claude` and `codex` for the end-to-end tests, or installs them from npm.

In order: the variable SKILLUP_TEST_CLAUDE or SKILLUP_TEST_CODEX, PATH, and `.cache/clis/` of the
repository, filled on first use by npm with the versions below. One lock file keeps the workers of
pytest-xdist from installing at the same time.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

CliName = Literal["claude", "codex"]

# The versions whose behaviour the adapters were written against.
PACKAGES = {"claude": "@anthropic-ai/claude-code@2.1.197", "codex": "@openai/codex@0.169.0"}
CACHE = Path(__file__).parents[2] / ".cache" / "clis"
NO_NPM = "npm not found: end-to-end tests with the real claude and codex were not run"

_INSTALL_TIMEOUT_S = 900
_VERSION_TIMEOUT_S = 60


class CliUnusableError(RuntimeError):
    """A CLI is there, or npm is, and yet it cannot be used: a failure, not a reason to skip."""


def find_cli(name: CliName, cache: Path = CACHE) -> Path | None:
    """The command that starts a CLI, proven to run `--version`; None if it is not here nor npm.

    Raises CliUnusableError if the command does not run, or npm could not install it.
    """
    command = _given(name) or shutil.which(name)
    if command is None:
        npm = shutil.which("npm")
        if npm is None:
            return None
        command = str(_installed(name, cache, npm))
    problem = _version_problem(command)
    if problem:
        raise CliUnusableError(f"{command} --version does not work: {problem}")
    return Path(command).absolute()


def _given(name: CliName) -> str | None:
    variable = f"SKILLUP_TEST_{name.upper()}"
    command = os.environ.get(variable)
    if command and shutil.which(command) is None:
        raise CliUnusableError(f"{variable} is {command!r}, which is no executable file")
    return command


def _installed(name: CliName, cache: Path, npm: str) -> Path:
    """The command in the cache, after npm has put both CLIs there if need be."""
    marker = cache / "installed.json"
    with _lock(cache.with_name(f"{cache.name}.lock")):
        complete = marker.exists() and json.loads(marker.read_text()) == PACKAGES
        if not complete or not _bin(cache, name).exists():
            marker.unlink(missing_ok=True)
            cache.mkdir(parents=True, exist_ok=True)
            _npm_install(npm, cache)
            _finish_claude(cache)
            marker.write_text(json.dumps(PACKAGES))
    return _bin(cache, name)


def _npm_install(npm: str, cache: Path) -> None:
    quiet = ["--no-audit", "--no-fund", "--no-save"]
    problem = _problem(
        [npm, "install", *quiet, "--prefix", str(cache), *PACKAGES.values()], _INSTALL_TIMEOUT_S
    )
    if problem:
        raise CliUnusableError(f"npm could not install {' and '.join(PACKAGES)}: {problem}")


def _finish_claude(cache: Path) -> None:
    """Runs claude's own postinstall step where npm was not allowed to.

    Without it the command is a placeholder; codex needs no such step.
    """
    script = cache / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs"
    if _version_problem(str(_bin(cache, "claude"))) and script.exists():
        problem = _problem(["node", str(script)], _INSTALL_TIMEOUT_S)
        if problem:
            raise CliUnusableError(f"claude's install step failed: {problem}")


def _bin(cache: Path, name: CliName) -> Path:
    return cache / "node_modules" / ".bin" / name


def _version_problem(command: str) -> str | None:
    return _problem([command, "--version"], _VERSION_TIMEOUT_S)


def _problem(argv: Sequence[str], timeout_s: float) -> str | None:
    """What went wrong when the command was run; None if nothing did."""
    try:
        subprocess.run(
            argv,
            check=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.CalledProcessError as error:
        return f"exit code {error.returncode}: {error.stdout.strip()[-2000:]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Holds the file's lock; other processes wait. The system frees it if this process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
