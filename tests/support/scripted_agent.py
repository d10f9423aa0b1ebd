"""Runs the scripted agent directly, without skillup, to see what it does by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skillup.schema.profile import Script

AGENT = Path(__file__).parents[2] / "skillup" / "engines" / "scripted_agent" / "__main__.py"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class RawRun:
    returncode: int
    stdout: str
    stderr: str

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines() if line.strip()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("type") == kind]

    def one(self, kind: str) -> dict[str, Any]:
        """The only event of its type; fails, showing the output, if it is not the only one."""
        found = self.of_type(kind)
        assert len(found) == 1, f"{len(found)} events {kind!r} in:\n{self.stdout}\n{self.stderr}"
        return found[0]


class RawAgent:
    """The agent in a directory of its own: `base/home`, `base/workspace`."""

    def __init__(self, base: Path, replies: list[dict[str, Any]], **options: Any) -> None:
        self.home = base / "home"
        self.workspace = base / "workspace"
        self.home.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        self.script = self.home / "script.json"
        script = Script.model_validate({"replies": replies}).model_dump(mode="json")
        self.script.write_text(json.dumps({**script, **options}))

    def run(self, message: str, *args: str, env: Mapping[str, str] | None = None) -> RawRun:
        fixed = [f"--script={self.script}", f"--home={self.home}"]
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
        return self.run(message, "--session-id=s", *args, **kwargs)

    def resume(self, message: str, *args: str, **kwargs: Any) -> RawRun:
        return self.run(message, "--resume=s", *args, **kwargs)

    def install_skill(self, name: str, text: str, where: str = ".agents/skills") -> None:
        directory = self.workspace / where / name
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(text)

    def session_entries(self, name: str = "s") -> list[dict[str, Any]]:
        text = (self.home / "sessions" / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


def answer(run: RawRun) -> str:
    result = run.one("result")
    assert not result["is_error"], run.stdout
    assert run.returncode == 0
    return str(result["answer"])


def error(run: RawRun) -> dict[str, str]:
    result = run.one("result")
    assert result["is_error"], run.stdout
    assert run.returncode == 1
    found: dict[str, str] = result["error"]
    return found
