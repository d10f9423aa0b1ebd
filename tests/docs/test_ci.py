"""The workflow and the script of docs/nightly.md: run, night after night, as CI and cron would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillup.load.yaml_reader import parse_yaml
from tests.docs.blocks import ROOT, blocks_of, tables_of
from tests.support.project import Project

pytestmark = pytest.mark.indexed

PASSES = "input: {prompt: go}\nassertions: [{contains: done}]\nscripted: [{say: done}]\n"
FAILS = PASSES.replace("say: done", "say: nothing")
BREAKS = PASSES.replace("say: done", "misbehave: {error: model_error}")
HANGS = PASSES.replace("say: done", "steps: [{delay: 6}], say: done")
INVALID = "input: {promt: go}\n"


def _shown(name: str) -> str:
    (text,) = (
        block.text
        for block in blocks_of(ROOT / "docs" / "nightly.md")
        if block.marker is not None
        and (block.marker.action, block.marker.value) == ("workflow", name)
    )
    return text


def _workflow() -> Any:
    return parse_yaml(_shown("nightly"), Path("skills.yaml")).data


STEPS = _workflow()["jobs"]["night"]["steps"]
RUN = {step["name"]: step for step in STEPS if "run" in step}
COMPARE = "Compare with the nights before"
CHECK = "Check the files and the CLIs"
GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_HEAD_REF": "", "GITHUB_BASE_REF": ""}


class Night:
    """One run of the workflow's commands; the agent that skillup ships stands in for claude.

    `replaced`: texts of the commands; `inputs`: of `workflow_dispatch`; `event`: what began it.
    """

    def __init__(
        self,
        project: Project,
        *replaced: tuple[str, str],
        inputs: dict[str, str] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        # Those of earlier nights are still there, as on a machine that is not new every night.
        number = len(list(project.root.glob("night-*"))) + 1
        self.path = project.root / f"night-{number}-1"
        self.failed: list[str] = []
        self.output = ""
        summary = project.root / "step-summary.md"
        summary.write_text("")
        given = {"GITHUB_STEP_SUMMARY": str(summary), "NIGHT": f"./{self.path.name}"}
        given |= {**GITHUB, **(env or {})}
        for name, step in RUN.items():
            needs_input = "inputs." in step.get("if", "")
            always = "cancelled()" in step.get("if", "")
            if name == "Install" or (needs_input and not inputs) or (self.failed and not always):
                continue
            script = step["run"].replace("claude_code", "scripted")
            for old, new in replaced:
                script = script.replace(old, new)
            own = dict.fromkeys(step.get("env", {}), "")
            own |= {name.upper(): value for name, value in (inputs or {}).items()}
            done = project.shell("bash", "-e", "-c", script, env={**given, **own})
            self.output += done.stdout + done.stderr
            if done.returncode != 0:
                self.failed.append(name)
        self.summary = summary.read_text()


def _night_by_cron(project: Project) -> subprocess.CompletedProcess[str]:
    (project.root / "night.sh").write_text(_shown("night.sh"))
    return project.shell("sh", str(project.root / "night.sh"), cwd="/")


@pytest.fixture
def nights(project: Project) -> Project:
    """A workspace with a suite, and no gate but those that every suite has."""
    cases = {f"cases/{name}.yaml": PASSES for name in ("steady", "other", "third")}
    return project.write({"cases/eval.yaml": "name: demo\n", **cases})


MORE = ("--trials 3", "--trials 12")  # A night as good as four


@pytest.mark.slow
def test_a_night_in_which_something_broke_is_red_until_it_is_mended_or_accepted(
    nights: Project,
) -> None:
    first = Night(nights, MORE)
    assert first.failed == [], first.output
    assert "36 of 36 passed" in first.summary
    good = json.loads((first.path / "result.json").read_text())["run_id"]
    assert {"junit.xml", "summary.md", "result.json"} <= {
        path.name for path in first.path.iterdir()
    }
    quiet = Night(nights)
    assert quiet.failed == [], quiet.output
    assert quiet.summary.startswith("# ✅ skillup: ")

    nights.write({"cases/other.yaml": FAILS})
    worse = Night(nights)
    assert worse.failed == [COMPARE], worse.output
    assert "1 case regressed (other); " in worse.output
    assert "::error file=cases/other.yaml,line=1::other: 15/15 → 0/3; p " in worse.output
    assert worse.summary.startswith("# ❌ skillup: 1 of 4 gates failed\n\n## What changed\n")
    still = Night(nights)
    assert still.failed == [COMPARE], "red stays red"
    assert "1 case stayed red (other); " in still.output
    accepted = Night(nights, inputs={"accept": "other"})
    assert accepted.failed == [], accepted.output
    assert Night(nights).failed == []
    nights.write({"cases/third.yaml": FAILS})
    pinned = Night(nights, inputs={"pin": good})
    assert pinned.failed == [COMPARE], "another one"
    assert f"A  pinned: {good} to " in pinned.output


@pytest.mark.slow
def test_a_night_that_was_not_whole_is_red(nights: Project) -> None:
    assert Night(nights).failed == []
    nights.write({"cases/other.yaml": BREAKS})
    broken = Night(nights)
    assert broken.failed == [COMPARE], broken.output
    assert "max\\_errors" in broken.summary
    nights.write({"cases/other.yaml": PASSES})
    short = Night(nights, ("--max-cost-usd 20", "--max-tokens 1 -j 1"))
    assert short.failed == [COMPARE], short.output
    assert "8 trials not run" in short.summary
    nights.write({"cases/other.yaml": HANGS})
    killed = Night(nights, ("skillup run", f"timeout -s KILL 3 {sys.executable} -m skillup run"))
    assert killed.failed == [COMPARE], killed.output
    assert "max\\_not\\_run" in killed.summary
    nights.write({"cases/other.yaml": INVALID})
    invalid = Night(nights)
    assert invalid.failed == [CHECK, COMPARE], invalid.output
    # It did not begin, and the nights before it are there by directory, label and id.
    none = Night(nights, ("validate", "list"), ("skillup run", "skillup nothing"))
    assert COMPARE in none.failed
    assert f"{none.path.name} does not exist" in none.output


@pytest.mark.slow
def test_a_pull_request_is_compared_with_the_nights_of_its_target(nights: Project) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = nights.shell("git", *who, *arguments)
        assert done.returncode == 0, done.stderr

    nights.write({".gitignore": ".skillup/\nnight-*/\nstep-summary.md\n"})
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    assert Night(nights, MORE).failed == []
    git("checkout", "-qb", "change")
    nights.write({"cases/other.yaml": FAILS})
    git("commit", "-qam", "two")
    request = {"GITHUB_HEAD_REF": "change", "GITHUB_BASE_REF": "main"}
    found = Night(nights, env=request)
    assert found.failed == [COMPARE], found.output
    assert "on main: " in found.output
    git("revert", "--no-edit", "HEAD")
    assert Night(nights, env=request).failed == []


@pytest.mark.slow
def test_the_script_for_cron_tells_what_came_of_the_night_and_of_no_other(nights: Project) -> None:
    for _ in range(4):
        quiet = _night_by_cron(nights)
        assert quiet.returncode == 0, quiet.stderr
    nights.write({"cases/other.yaml": FAILS})
    worse = _night_by_cron(nights)
    assert worse.returncode == 1, worse.stdout
    assert "other" in worse.stdout
    assert _night_by_cron(nights).returncode == 1, "red stays red"
    nights.write({"cases/other.yaml": BREAKS})
    assert _night_by_cron(nights).returncode == 1
    nights.write({"cases/other.yaml": INVALID})
    invalid = _night_by_cron(nights)
    assert (invalid.returncode, invalid.stdout) == (2, "")
    assert "promt" in invalid.stderr


def test_what_runs_is_installed_and_the_key_is_the_profile_s() -> None:
    workflow = _workflow()
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert "skillup-eval[models]" in RUN["Install"]["run"]
    assert 'name = "skillup-eval"' in project
    assert "models = [" in project
    profile = (ROOT / "engines" / "claude_code.yaml").read_text("utf-8")
    assert set(workflow["jobs"]["night"]["env"]) <= {"ANTHROPIC_API_KEY", "NIGHT"}
    assert "ANTHROPIC_API_KEY" in profile
    assert set(workflow["on"]) == {"schedule", "workflow_dispatch", "pull_request"}


def test_the_page_about_pytest_names_the_options_there_are() -> None:
    helped = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True
    )
    there = {
        word.rstrip("=,")
        for line in helped.stdout.splitlines()
        for word in line.replace("=", " ").split()[:1]
        if word.startswith("--skillup")
    }
    (table,) = tables_of(ROOT / "docs" / "pytest.md")
    assert {name.split()[0] for name in table.names()} == there
