"""A suite and a workspace that is prepared from it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from skillup.process.tree import new_marker
from skillup.schema.case import Context
from skillup.schema.record import TurnError
from skillup.workspace.prepare import PreparedWorkspace, SkillToInstall, prepare_workspace


class Preparation:
    """Prepares workspaces from the suite in ``suite``."""

    def __init__(self, tmp_path: Path) -> None:
        self.suite = tmp_path / "suite"
        self.suite.mkdir()
        self.root = tmp_path / "scratch" / "workspace"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def outcome(
        self,
        context: Mapping[str, object] | Context,
        *,
        variables: Mapping[str, str] | None = None,
        skills: Sequence[SkillToInstall] = (),
        setup_steps: Sequence[str] = (),
        timeout_seconds: float = 60.0,
        env: Mapping[str, str] | None = None,
    ) -> PreparedWorkspace | TurnError:
        async def prepare() -> PreparedWorkspace | TurnError:
            return await prepare_workspace(
                Context.model_validate(context),  # a made one is taken as it is
                suite_root=self.suite,
                destination=self.root,
                variables=variables or {},
                skills=skills,
                skill_directories=(".claude/skills",),
                env=self.env if env is None else env,
                marker=new_marker(),
                setup_steps=setup_steps,
                timeout_seconds=timeout_seconds,
            )

        return anyio.run(prepare)

    def made(
        self,
        context: Mapping[str, object] | Context,
        *,
        variables: Mapping[str, str] | None = None,
        skills: Sequence[SkillToInstall] = (),
        setup_steps: Sequence[str] = (),
    ) -> Path:
        outcome = self.outcome(context, variables=variables, skills=skills, setup_steps=setup_steps)
        assert isinstance(outcome, PreparedWorkspace), outcome
        return outcome.root

    def error(
        self,
        context: Mapping[str, object] | Context,
        *,
        setup_steps: Sequence[str] = (),
        timeout_seconds: float = 60.0,
        env: Mapping[str, str] | None = None,
    ) -> TurnError:
        outcome = self.outcome(
            context, setup_steps=setup_steps, timeout_seconds=timeout_seconds, env=env
        )
        assert isinstance(outcome, TurnError), outcome
        return outcome

    def git(self, *arguments: str) -> str:
        """What git says in the workspace, without anybody's configuration."""
        env = self.env | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout
