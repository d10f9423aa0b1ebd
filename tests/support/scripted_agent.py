"""Runs the scripted agent directly, without skillup, to see what it does by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillup.schema.scripted import Script
from tests.support.raw_cli import RawRun

AGENT = Path(__file__).parents[2] / "skillup" / "engines" / "scripted_agent" / "__main__.py"
TIMEOUT_S = 60.0


class RawAgent:
    """The agent in a directory of its own: `base/home`, `base/workspace`."""

    def __init__(self, base: Path, replies: list[dict[str, Any]]) -> None:
        self.home = base / "home"
        self.workspace = base / "workspace"
        self.home.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        self.script = self.home / "script.json"
        self.script.write_text(Script.model_validate(replies).model_dump_json())

    def run(self, message: str, *args: str, env: Mapping[str, str] | None = None) -> RawRun:
        """One process with the message on stdin."""
        fixed = ["--script", str(self.script), "--home", str(self.home)]
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(AGENT), *fixed, *args],
            input=message.encode(),
            capture_output=True,
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"], **(env or {})},
            timeout=TIMEOUT_S,
            check=False,
        )
        return RawRun(done.returncode, done.stdout.decode(), done.stderr.decode())

    def first(self, message: str, *args: str, **kwargs: Any) -> RawRun:
        """The first turn of session `s`."""
        return self.run(message, "--session-id", "s", *args, **kwargs)

    def resume(self, message: str, *args: str, **kwargs: Any) -> RawRun:
        """A later turn of session `s`."""
        return self.run(message, "--resume", "s", *args, **kwargs)

    def install_skill(self, name: str, text: str, where: str = ".agents/skills") -> None:
        """A skill in the workspace."""
        directory = self.workspace / where / name
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(text)

    def session_entries(self, name: str = "s") -> list[dict[str, Any]]:
        """The lines of a session file."""
        text = (self.home / "sessions" / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


def answer(run: RawRun) -> str:
    """The answer of a turn that went well."""
    result = run.one("result")
    assert not result["is_error"], run.stdout
    assert run.returncode == 0
    return str(result["answer"])


def error(run: RawRun) -> dict[str, str]:
    """The error of a turn that ended with one."""
    result = run.one("result")
    assert result["is_error"], run.stdout
    assert run.returncode == 1
    found: dict[str, str] = result["error"]
    return found
