"""What a run uses, besides what its records hold: git, the CI job, the machine, and its skills.

Found out beside the run, and kept in what it knows of itself; nothing here is worth an error.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.load.discover import workspace_root
from skillup.load.model import LoadedSuite
from skillup.process.run import run_quiet
from skillup.workspace.prepare import PreparationError, files_of_skill, skill_digests, skills_for

_GIT_SECONDS = 5.0
_MOST_FILES = 500  # Of a skill; of larger ones only the digest of the whole is kept
# Of the CI systems that check out a commit and no branch, the first that is set.
_BRANCH = (
    *("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
    *("CI_COMMIT_BRANCH", "BITBUCKET_BRANCH", "CIRCLE_BRANCH", "BUILDKITE_BRANCH", "CHANGE_BRANCH"),
)
_TARGET = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")
_COMMIT = ("GITHUB_SHA", "CI_COMMIT_SHA", "BITBUCKET_COMMIT", "CIRCLE_SHA1", "BUILDKITE_COMMIT")
_HOST = ("CI_RUNNER_DESCRIPTION", "ImageOS")  # of a machine that is new every night: its kind


async def provenance(
    suites: Iterable[LoadedSuite], base: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """What a run of `suites`, begun in `base`, uses; a part that cannot be found out is empty."""
    loaded = list(suites)
    used = await checkout(loaded[0].root if loaded else base, environment, base)
    used["host"] = _first(environment, _HOST) or platform.node()
    used["skills"] = await anyio.to_thread.run_sync(_skills, loaded)
    return used


async def checkout(
    place: Path, environment: Mapping[str, str], base: Path | None = None
) -> dict[str, Any]:
    """`repository`, `root`, `branch`, `commit`, `dirty`, `target_branch` of the files at `place`.

    Without git the repository is the path of the workspace (of `base`, which keeps its runs). A CI
    job's variables count where no branch is checked out; a branch of a fork that is called as its
    target is another one.
    """

    async def git(*arguments: str) -> str:
        env = {**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        # A daemon that it begins would be ended with it.
        command = ["git", "-c", "core.fsmonitor=false", *arguments]
        done = await run_quiet(command, cwd=place, env=env, timeout_seconds=_GIT_SECONDS)
        return done.stdout.strip() if done.exit_code == 0 else ""

    root = await git("rev-parse", "--show-toplevel")
    status: list[str] = []
    remote = ""
    if root:
        status = (await git("status", "--porcelain=v2", "--branch", "-uno")).splitlines()
        remote = await git("config", "--get", "remote.origin.url")
    about = dict(line[2:].split(" ", 1) for line in status if line.startswith("# branch."))
    commit, branch = about.get("branch.oid", ""), about.get("branch.head", "")
    if branch in ("", "(detached)"):
        branch = _first(environment, _BRANCH)
    target = _first(environment, _TARGET)
    root = root or str(workspace_root(base or place).resolve())
    if not status and "GITHUB_REPOSITORY" in environment:  # git refuses what others own
        remote = f"{environment.get('GITHUB_SERVER_URL', '')}/{environment['GITHUB_REPOSITORY']}"
    elif not status:
        remote = environment.get("CI_PROJECT_URL", "")
    return {
        "repository": repository_of(remote) or root,
        "root": root,
        "branch": f"{branch} (pull request)" if branch and branch == target else branch,
        "commit": commit if commit.isalnum() else _first(environment, _COMMIT),
        "dirty": any(not line.startswith("#") for line in status),
        "target_branch": target,
    }


def repository_of(remote: str) -> str:
    """The same for all ways to reach it, without credentials: ``github.com/owner/name``."""
    bare = re.sub(r"[?#].*", "", remote.split("://", 1)[-1].rpartition("@")[2])
    found = re.fullmatch(r"([^/:]+)(?::\d+(?=/))?[:/]+(.*)", bare)
    path = f"{found[1].lower()}/{found[2]}" if found and remote[:1] not in "./" else bare
    return path.rstrip("/").removesuffix(".git")


def _first(environment: Mapping[str, str], names: Iterable[str]) -> str:
    return next(filter(None, map(environment.get, names)), "")


def _skills(suites: Iterable[LoadedSuite]) -> dict[str, Any]:
    """By name the digest of each skill, and by path those of its files."""
    found: dict[str, Any] = {}
    for suite in suites:
        skills = skills_for(suite, "with_skill")
        for skill in skills if isinstance(skills, list) else ():
            try:
                digest, files = skill_digests(files_of_skill(skill))
            except (PreparationError, OSError):  # which its trials will say
                continue
            own = {"digest": digest, "files": files if len(files) <= _MOST_FILES else {}}
            if found.setdefault(skill.name, own) != own:
                found[f"{suite.name}: {skill.name}"] = own
    return found
