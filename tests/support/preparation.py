"""A suite and a workspace that is prepared from it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from skillup.process.tree import new_marker
from skillup.schema.case import Context
from skillup.schema.record import TurnError
from skillup.workspace.prepare import PreparedWorkspace, prepare_workspace


class Preparation:
    """Prepares workspaces from the suite in ``suite``."""

    def __init__(self, tmp_path: Path) -> None:
        self.suite = tmp_path / "suite"
        self.suite.mkdir()
        self.root = tmp_path / "scratch" / "workspace"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def outcome(
        self, context: Mapping[str, object] | Context, **options: Any
    ) -> PreparedWorkspace | TurnError:
        """`options` as :func:`prepare_workspace` has them."""
        defaults: dict[str, Any] = {
            "suite_root": self.suite, "destination": self.root, "variables": {}, "skills": (),
            "skill_directories": (".claude/skills",), "env": self.env, "marker": new_marker(),
            "setup_steps": (), "timeout_seconds": 60.0,
        }  # fmt: skip
        given = Context.model_validate(context)  # a made one is taken as it is
        return anyio.run(partial(prepare_workspace, given, **{**defaults, **options}))

    def made(self, context: Mapping[str, object] | Context, **options: Any) -> Path:
        outcome = self.outcome(context, **options)
        assert isinstance(outcome, PreparedWorkspace), outcome
        return outcome.root

    def error(self, context: Mapping[str, object] | Context, **options: Any) -> TurnError:
        outcome = self.outcome(context, **options)
        assert isinstance(outcome, TurnError), outcome
        return outcome

    def git(self, *arguments: str) -> str:
        """What git says in the workspace, without anybody's configuration."""
        env = self.env | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout
