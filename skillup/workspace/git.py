"""The workspace as a git repository (``context.git``), the same on every machine.

Nothing of the user's own git configuration is read, no hook runs, nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.process import run_quiet
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
# Written into the repository, so that the agent, too, can commit without a configuration.
_USER = {"name": "skillup", "email": "skillup@example.invalid"}


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git in one workspace (a real path); every command may take ``timeout_seconds``."""

    workspace: Path
    env: Mapping[str, str]
    timeout_seconds: float

    async def run(self, *arguments: str, failure: str = "") -> bool:
        """Runs one command; whether its exit code is 0.

        Raises PreparationError if it cannot run; with git's own words if it fails and that is a
        `failure`.
        """
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        # A GIT_DIR or GIT_INDEX_FILE of a hook that started us would redirect every command.
        own = {name: value for name, value in self.env.items() if not name.startswith("GIT_")}
        done = await run_quiet(
            ["git", *settings, *arguments],
            cwd=self.workspace,
            env=own
            | {
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
            },
            timeout_seconds=self.timeout_seconds,
        )
        if done.start_error is not None:
            what = "`context.git` needs git, which could not be started; install git"
            raise PreparationError(what, evidence=done.start_error)
        if done.timed_out:
            failure = f"git {arguments[0]} did not end within {self.timeout_seconds:g} s"
        if failure and done.exit_code != 0:
            raise PreparationError(failure, evidence=done.stderr + done.stdout)
        return done.exit_code == 0


async def prepare_repository(git: Git, context: GitContext, patch: Path | None) -> None:
    """Makes the repository, commits what is there, sets branch and remotes, applies the patch.

    The patch stays uncommitted. A repository that came with the fixture keeps its history.
    Raises PreparationError.
    """
    is_new = not (git.workspace / ".git").exists()
    if (context.checkout or "").startswith("-"):
        raise PreparationError(_no(str(context.checkout)))
    if context.init:
        await _make_repository(git, context.checkout or _DEFAULT_BRANCH, is_new=is_new)
    elif (context.checkout or context.remotes) and is_new:
        raise PreparationError(
            "`context.git` wants a branch or a remote, but the workspace is no repository; "
            "set `init: true`"
        )
    if context.checkout is not None and not is_new:
        await _check_out(git, context.checkout)
    for remote in context.remotes:
        known = not is_new and await git.run("remote", "get-url", "--", remote.name)
        failure = f"`context.git.remotes`: git refuses the remote {remote.name!r}"
        verb = "set-url" if known else "add"
        await git.run("remote", verb, "--", remote.name, remote.url, failure=failure)
    if patch is not None:
        if not patch.is_file():
            raise PreparationError(f"`context.git.apply_diff`: there is no file {patch}")
        failure = f"`context.git.apply_diff`: {patch.name} does not apply to the workspace; "
        failure += "make it anew against the fixture and the files of this case"
        await git.run("apply", "--whitespace=nowarn", "--", str(patch), failure=failure)


async def _make_repository(git: Git, branch: str, *, is_new: bool) -> None:
    # Of a repository that is there it changes nothing.
    await git.run("init", "-q", "--template=", f"--initial-branch={branch}", failure=_no(branch))
    config = git.workspace / ".git" / "config"
    if "[user]" not in config.read_text("utf-8", "replace"):
        with config.open("a", encoding="utf-8") as file:
            file.write("".join(["[user]\n", *(f"\t{k} = {v}\n" for k, v in _USER.items())]))
    await git.run("add", "-A", failure="git could not add the workspace's files")
    if is_new or not await git.run("diff", "--cached", "--quiet"):
        commit = ("commit", "-q", "--allow-empty", "--no-verify", "-m", "Initial state")
        await git.run(*commit, failure="git could not commit the workspace's files")


async def _check_out(git: Git, revision: str) -> None:
    commit = ("rev-parse", "--verify", "-q", "--end-of-options", revision + "^{commit}")
    command = ["checkout", "-q", revision, "--"]
    if not await git.run(*commit):
        command = ["checkout", "-q", "-b", revision]
    await git.run(*command, failure=f"`context.git.checkout`: git cannot check out {revision!r}")


def _no(branch: str) -> str:
    return f"`context.git.checkout`: {branch!r} cannot be a branch's name"


def hide_from_git(workspace: Path, paths: list[str]) -> None:
    """Keeps directories out of ``git status``, in the repository's own exclude file.

    Does nothing where there is no repository; may be called again. Raises OSError.
    """
    if not (workspace / ".git").is_dir():
        return
    exclude = workspace / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    with exclude.open("a", encoding="utf-8", errors="surrogateescape") as file:
        for path in paths:
            file.write("\n{}\n".format(re.sub(r"([\\*?\[])", r"\\\1", f"/{path}/")))
