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


def find_cli(name: CliName) -> Path | None:
    """The command that starts a CLI, proven to run `--version`; None if it is not here nor npm.

    Raises CliUnusableError if the command does not run, or npm could not install it.
    """
    command = os.environ.get(f"SKILLUP_TEST_{name.upper()}") or shutil.which(name)
    if command is None:
        npm = shutil.which("npm")
        if npm is None:
            return None
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with CACHE.with_name(f"{CACHE.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
            command = str(_installed(name, npm))
    problem = _problem(_VERSION_TIMEOUT_S, command, "--version")
    if problem:
        raise CliUnusableError(f"{command} --version does not work: {problem}")
    return Path(command).absolute()


def _installed(name: CliName, npm: str) -> Path:
    """The command in the cache, after npm has put both CLIs there if need be."""
    marker, commands = CACHE / "installed.json", CACHE / "node_modules" / ".bin"
    complete = marker.exists() and json.loads(marker.read_text()) == PACKAGES
    if complete and (commands / name).exists():
        return commands / name
    marker.unlink(missing_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    quiet = ["--no-audit", "--no-fund", "--no-save", "--prefix", str(CACHE)]
    problem = _problem(_INSTALL_TIMEOUT_S, npm, "install", *quiet, *PACKAGES.values())
    # Claude's own postinstall step, where npm was not allowed to: without it the command is a
    # placeholder; codex needs no such step.
    script = CACHE / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs"
    broken = _problem(_VERSION_TIMEOUT_S, str(commands / "claude"), "--version")
    if not problem and broken and script.exists():
        problem = _problem(_INSTALL_TIMEOUT_S, "node", str(script))
    if problem:
        raise CliUnusableError(f"npm could not install {' and '.join(PACKAGES)}: {problem}")
    marker.write_text(json.dumps(PACKAGES))
    return commands / name


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
