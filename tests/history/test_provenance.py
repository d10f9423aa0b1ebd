"""What a run says that it used: git, the CI job, the skills; and what differs between two."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from skillup.app.provenance import checkout, repository_of
from skillup.history.runs import About, read_run
from tests.support.project import Project
from tests.support.stored import content_of

SUITE = {
    "evals/eval.yaml": "name: demo\n",
    "evals/greets.yaml": """
        input: {prompt: Hello}
        judge: {type: rule_based, success: [{contains: hi}]}
        scripted: {replies: [{say: hi}]}
    """,
    "SKILL.md": """
        ---
        name: greeter
        description: Greets.
        ---
        Say hi.
    """,
    "more.md": "More of it.",
}


def git(place: Path, *arguments: str) -> str:
    own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *own, *arguments], cwd=place, capture_output=True, check=True)
    return done.stdout.decode().strip()


def committed(place: Path, remote: str = "") -> str:
    git(place, "init", "-q", "-b", "main")
    if remote:
        git(place, "remote", "add", "origin", remote)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "all")
    return git(place, "rev-parse", "HEAD")


def used(project: Project, env: Mapping[str, str] | None = None) -> About:
    done = project.run("run", "evals", "--label", "nightly", env=env)
    assert done.exit_code == 0, done.stderr
    return read_run(project.latest_run()).about


def test_a_run_keeps_what_it_used(project: Project) -> None:
    project.write(SUITE)
    commit = committed(project.root, "https://me:hunter2hunter2@git.example.org/team/skills.git")
    first = used(project)
    assert (first.repository, first.branch) == ("git.example.org/team/skills", "main")
    assert (first.commit, first.dirty, first.label) == (commit, False, "nightly")
    assert first.host
    assert [*first.skills] == ["greeter"]
    assert [*first.skill_files["greeter"]] == ["SKILL.md", "more.md"]
    assert [*first.cases] == ["demo/greets"]
    assert [*first.profiles] == [*first.cli_versions] == ["scripted"]
    assert b"hunter2hunter2" not in content_of(project.latest_run())

    project.write({"more.md": "Other.", "not-tracked.md": "A file that git does not know."})
    git(project.root, "checkout", "-q", "--detach")
    second = used(project, {"GITHUB_REF_NAME": "12/merge", "GITHUB_HEAD_REF": "feature"})
    assert (second.branch, second.dirty) == ("feature", True)
    assert second.skills != first.skills
    files, before = second.skill_files["greeter"], first.skill_files["greeter"]
    assert {path for path in files if files[path] != before.get(path)} == {
        "more.md",
        "not-tracked.md",
    }


@pytest.mark.parametrize(
    ("detached", "environment", "branch", "target"),
    [
        (False, {}, "main", ""),
        (False, {"GITHUB_REF_NAME": "elsewhere"}, "main", ""),
        (True, {}, "", ""),
        (True, {"GITHUB_REF_NAME": "v1"}, "v1", ""),
        (True, {"CI_COMMIT_BRANCH": "night"}, "night", ""),
        (
            True,
            {"GITHUB_HEAD_REF": "fix", "GITHUB_REF_NAME": "7/merge", "GITHUB_BASE_REF": "main"},
            "fix",
            "main",
        ),
        (
            True,
            {"GITHUB_HEAD_REF": "main", "GITHUB_BASE_REF": "main"},
            "main (pull request)",
            "main",
        ),
    ],
)
def test_the_branch_is_known_where_a_ci_job_has_checked_out_a_commit(
    tmp_path: Path, detached: bool, environment: dict[str, str], branch: str, target: str
) -> None:
    (tmp_path / "file").touch()
    committed(tmp_path)
    if detached:
        git(tmp_path, "checkout", "-q", "--detach")
    found = anyio.run(checkout, tmp_path, {"PATH": "/usr/bin:/bin", **environment})
    assert (found["branch"], found["target_branch"]) == (branch, target)
    assert found["repository"] == str(tmp_path.resolve())


def test_without_git_a_run_is_of_its_workspace(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "skillup.yaml").touch()
    environment = {"PATH": "/nowhere", "GITHUB_SHA": "abc"}
    found = anyio.run(checkout, tmp_path / "cases", environment)
    assert found["repository"] == found["root"] == str(tmp_path.resolve())
    assert (found["commit"], found["dirty"]) == ("abc", False)
    environment |= {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "owner/name"}
    found = anyio.run(checkout, tmp_path / "cases", environment)
    assert found["repository"] == "github.com/owner/name"


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("git@github.com:owner/name.git", "github.com/owner/name"),
        ("https://github.com/owner/name", "github.com/owner/name"),
        ("https://x-token:s3cret@GitHub.com/owner/name.git", "github.com/owner/name"),
        ("https://me:s3/cret@host/owner/name", "host/owner/name"),
        ("https://host/owner/name.git?token=s3cret", "host/owner/name"),
        ("ssh://git@host:2222/owner/name.git", "host/owner/name"),
        ("/srv/git/name.git", "/srv/git/name"),
        ("file:///srv/git/name.git", "/srv/git/name"),
        ("", ""),
    ],
)
def test_a_repository_is_the_same_however_it_is_reached(remote: str, expected: str) -> None:
    assert repository_of(remote) == expected
