"""Runs the real CLIs directly, without our adapters, to see what they do by themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class RawRun:
    """What one process said and how it ended."""

    returncode: int
    stdout: str
    stderr: str

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The JSON objects on stdout, one a line."""
        return [json.loads(line) for line in self.stdout.splitlines() if line.strip()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The events whose `type` is `kind`."""
        return [event for event in self.events if event.get("type") == kind]

    def one(self, kind: str) -> dict[str, Any]:
        """The only event of its type; fails, showing the output, if it is not the only one."""
        found = self.of_type(kind)
        assert len(found) == 1, f"{len(found)} events {kind!r} in:\n{self.stdout}\n{self.stderr}"
        return found[0]

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Codex: the completed items of one type."""
        items = [event["item"] for event in self.of_type("item.completed")]
        return [item for item in items if item["type"] == kind]


@dataclass(frozen=True)
class _RawCli:
    """A CLI in a directory of its own: `base/home`, `base/state`, `base/workspace`."""

    cli: Path
    base: Path
    url: str

    @property
    def workspace(self) -> Path:
        """The working directory of every run."""
        return self._made("workspace")

    @property
    def state(self) -> Path:
        """CLAUDE_CONFIG_DIR or CODEX_HOME."""
        return self._made("state")

    def _made(self, name: str) -> Path:
        (self.base / name).mkdir(parents=True, exist_ok=True)
        return self.base / name

    def _run(self, argv: Sequence[str], prompt: str, settings: Mapping[str, str | None]) -> RawRun:
        """Runs to the end in a session of its own; over TIMEOUT_S all of it is killed, and fails.

        A variable that `settings` maps to None is left out.
        """
        env: dict[str, str | None] = {
            name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ
        }
        env |= {"HOME": str(self._made("home")), **settings}
        process = subprocess.Popen(
            argv,
            cwd=self.workspace,
            env={name: value for name, value in env.items() if value is not None},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                stdout, stderr = process.communicate(prompt, timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                # npm's codex is a wrapper: its child would outlive a kill of the wrapper alone.
                os.killpg(process.pid, signal.SIGKILL)
                stdout, stderr = process.communicate()
                raise TimeoutError(f"{argv} did not end:\n{stdout}\n{stderr}") from error
        return RawRun(process.returncode, stdout, stderr)


class RawClaude(_RawCli):
    """`claude -p`."""

    def run(self, prompt: str, *args: str, env: Mapping[str, str | None] | None = None) -> RawRun:
        """One process with the prompt on stdin; `env` adds to a minimal environment."""
        settings = {
            "CLAUDE_CONFIG_DIR": str(self.state),
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
            # Without it claude refuses, as root, to do without permission prompts.
            "IS_SANDBOX": "1",
        }
        argv = [str(self.cli), "-p", "--output-format", "stream-json", "--verbose", *args]
        return self._run(argv, prompt, {**settings, **(env or {})})

    def first(self, prompt: str, session_id: str, *args: str) -> RawRun:
        """The first turn of a session with a chosen id (a UUID)."""
        return self.run(prompt, "--session-id", session_id, *args)

    def resume(self, prompt: str, session_id: str, *args: str) -> RawRun:
        """A later turn of that session."""
        return self.run(prompt, "--resume", session_id, *args)


class RawCodex(_RawCli):
    """`codex exec`."""

    def run(self, prompt: str, *args: str, options: Sequence[str] = ()) -> RawRun:
        """One process: `args` stand after `codex exec OPTIONS`, the prompt goes in by stdin."""
        provider = {
            "name": '"lab"',
            "base_url": f'"{self.url}/v1"',
            "env_key": '"LAB_KEY"',
            "request_max_retries": "0",
            "stream_max_retries": "0",
        }
        argv = [str(self.cli), "exec", "--json", "--skip-git-repo-check", "-m", "gpt-5.5"]
        # The tests are about the conversation; the sandbox needs rights that not every host gives.
        argv += ["-s", "danger-full-access", "-c", "model_provider=lab"]
        for name, value in provider.items():
            argv += ["-c", f"model_providers.lab.{name}={value}"]
        settings = {"CODEX_HOME": str(self.state), "LAB_KEY": "dummy"}
        return self._run([*argv, *options, *args, "-"], prompt, settings)

    def first(self, prompt: str, *options: str) -> RawRun:
        """The first turn of a new thread; its id is in `thread.started`."""
        return self.run(prompt, options=options)

    def resume(self, prompt: str, thread_id: str, *options: str) -> RawRun:
        """A later turn of a thread."""
        return self.run(prompt, "resume", thread_id, options=options)
