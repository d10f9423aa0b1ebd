"""The workspace as a git repository (``context.git``), the same on every machine.

Nothing of the user's own git configuration is read, no hook runs, nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.process import CompletedOutput, run_quiet
from skillup.schema.case import GitContext
from skillup.workspace.failures import PreparationError

_DEFAULT_BRANCH = "main"
_DATE = "2000-01-01T00:00:00Z"
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git in one workspace (a real path); every command may take ``timeout_seconds``."""

    workspace: Path
    env: Mapping[str, str]
    timeout_seconds: float

    async def ask(self, *arguments: str) -> CompletedOutput:
        """Runs one command, whatever its exit code. Raises PreparationError if it cannot run."""
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        done = await run_quiet(
            ["git", *settings, *arguments],
            cwd=self.workspace,
            env=self._environment(),
            timeout_seconds=self.timeout_seconds,
        )
        if done.start_error is not None:
            raise PreparationError(
                "`context.git` needs git, which could not be started; install git, or see that it "
                "is on PATH",
                evidence=done.start_error,
            )
        if done.timed_out:
            raise PreparationError(
                f"git {arguments[0]} did not end within {self.timeout_seconds:g} s; "
                "is the fixture very large?",
                evidence=done.stderr,
            )
        return done

    async def do(self, *arguments: str, failure: str) -> str:
        """Runs one command that must succeed; returns its stdout.

        Raises PreparationError with ``failure`` and git's own words if it does not.
        """
        done = await self.ask(*arguments)
        if done.exit_code != 0:
            raise PreparationError(failure, evidence=done.stderr + done.stdout)
        return done.stdout

    async def succeeds(self, *arguments: str) -> bool:
        """Runs one command that answers by its exit code."""
        return (await self.ask(*arguments)).exit_code == 0

    def _environment(self) -> dict[str, str]:
        # A GIT_DIR or GIT_INDEX_FILE of a hook that started us would redirect every command.
        own = {name: value for name, value in self.env.items() if not name.startswith("GIT_")}
        return own | {
            "HOME": "/nonexistent",
            "XDG_CONFIG_HOME": "/nonexistent",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            # Or `git apply` in a directory of somebody's repository would silently do nothing.
            "GIT_CEILING_DIRECTORIES": str(self.workspace.parent),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_DATE": _DATE,
            "GIT_COMMITTER_DATE": _DATE,
            "LC_ALL": "C",
        }


async def prepare_repository(git: Git, context: GitContext, patch: Path | None) -> None:
    """Makes the repository, commits what is there, sets branch and remotes, applies the patch.

    The patch stays uncommitted. A repository that came with the fixture keeps its history.
    Raises PreparationError.
    """
    if context.init:
        await _make_repository(git, context.checkout or _DEFAULT_BRANCH)
    elif (context.checkout or context.remotes) and not (git.workspace / ".git").exists():
        raise PreparationError(
            "`context.git` wants a branch or a remote, but the workspace is no repository; "
            "set `init: true`"
        )
    if context.checkout is not None:
        await _check_out(git, context.checkout)
    for remote in context.remotes:
        known = await git.succeeds("remote", "get-url", "--", remote.name)
        await git.do(
            "remote",
            "set-url" if known else "add",
            "--",
            remote.name,
            remote.url,
            failure=f"`context.git.remotes`: git refuses the remote {remote.name!r}",
        )
    if patch is not None:
        await _apply(git, patch)


async def _make_repository(git: Git, branch: str) -> None:
    await git.do("init", "-q", "--template=", failure="git could not make a repository")
    has_commits = await git.succeeds("rev-parse", "--verify", "-q", "HEAD")
    if not has_commits:
        await _need_branch_name(git, branch)
        await git.do(
            "symbolic-ref", "HEAD", f"refs/heads/{branch}", failure=f"no branch {branch!r}"
        )
    # Written into the repository, so that the agent, too, can commit without a configuration.
    for key, value in {"user.name": "skillup", "user.email": "skillup@example.invalid"}.items():
        if not await git.succeeds("config", "--local", "--get", key):
            await git.do("config", "--local", key, value, failure=f"git cannot set {key}")
    await git.do("add", "-A", failure="git could not add the workspace's files")
    if has_commits and await git.succeeds("diff", "--cached", "--quiet"):
        return
    await git.do(
        "commit",
        "-q",
        "--allow-empty",
        "--no-verify",
        "-m",
        "Initial state",
        failure="git could not commit the workspace's files",
    )


async def _check_out(git: Git, wanted: str) -> None:
    if await git.succeeds("show-ref", "--verify", "-q", f"refs/heads/{wanted}"):
        command = ["checkout", "-q", wanted, "--"]
    elif await git.succeeds(
        "rev-parse", "--verify", "-q", "--end-of-options", wanted + "^{commit}"
    ):
        command = ["checkout", "-q", "--detach", wanted, "--"]
    else:
        await _need_branch_name(git, wanted)
        command = ["checkout", "-q", "-b", wanted]
    await git.do(*command, failure=f"`context.git.checkout`: git cannot check out {wanted!r}")


async def _need_branch_name(git: Git, name: str) -> None:
    await git.do(
        "check-ref-format",
        "--branch",
        name,
        failure=f"`context.git.checkout`: {name!r} cannot be a branch's name",
    )


async def _apply(git: Git, patch: Path) -> None:
    if not patch.is_file():
        raise PreparationError(
            f"`context.git.apply_diff`: there is no file {patch}; correct the path, which is "
            "relative to the suite root"
        )
    await git.do(
        "apply",
        "--whitespace=nowarn",
        "--",
        str(patch),
        failure=f"`context.git.apply_diff`: {patch.name} does not apply to the workspace; "
        "make it anew against the fixture and the files of this case",
    )


def hide_from_git(workspace: Path, paths: list[str]) -> None:
    """Keeps directories out of ``git status``, in the repository's own exclude file.

    Does nothing where there is no repository; may be called again. Raises OSError.
    """
    repository = workspace / ".git"
    if not repository.is_dir():
        return
    exclude = repository / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    text = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    lines = text.splitlines()
    wanted = [re.sub(r"([\\*?\[])", r"\\\1", f"/{path}/") for path in paths]
    missing = [line for line in wanted if line not in lines]
    if missing:
        if text and not text.endswith("\n"):
            text += "\n"
        exclude.write_text(
            text + "".join(f"{line}\n" for line in missing),
            encoding="utf-8",
            errors="surrogateescape",
        )
