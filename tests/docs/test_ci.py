"""The workflow and the script of docs/nightly.md: run, night after night, as CI and cron would."""

from __future__ import annotations

import shutil
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
RUN = {step["name"]: step["run"] for step in STEPS if "run" in step}
ALWAYS = {step["name"] for step in STEPS if "cancelled()" in step.get("if", "")}
ASKS_FOR_MORE = {step["name"] for step in STEPS if "steps." in step.get("if", "")}


class Night:
    """One run of the workflow's commands; the agent that skillup ships stands in for claude.

    Without an `earlier` night no index is restored: it is the first, or the cache is gone.
    """

    def __init__(self, project: Project, *, earlier: bool) -> None:
        self.failed: list[str] = []
        self.output = ""
        self.summary = project.root / "step-summary.md"
        self.summary.write_text("")
        for left in ("night", "night.txt", "night.code", "compare.txt"):
            _remove(project.root / left)
        if not earlier:
            _remove(project.root / ".skillup" / "index.sqlite")
        for name, script in RUN.items():
            if name == "Install" or (name in ASKS_FOR_MORE and not earlier):
                continue
            if not self.failed or name in ALWAYS:
                self._step(project, name, script)

    def _step(self, project: Project, name: str, script: str) -> None:
        command = ["bash", "-e", "-c", script.replace("claude_code", "scripted")]
        done = project.shell(*command, env={"GITHUB_STEP_SUMMARY": str(self.summary)})
        self.output += done.stdout + done.stderr
        if done.returncode != 0:
            self.failed.append(name)


def _night_by_cron(project: Project) -> subprocess.CompletedProcess[str]:
    (project.root / "night.sh").write_text(_shown("night.sh"))
    return project.shell("sh", str(project.root / "night.sh"), cwd="/")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


@pytest.fixture
def nights(project: Project) -> Project:
    """A workspace with one suite, whose gate lets nothing new fail."""
    return project.write(
        {
            "cases/eval.yaml": "name: demo\ngates: {max_new_failures: 0}\n",
            "cases/steady.yaml": PASSES,
            "cases/other.yaml": PASSES,
        }
    )


@pytest.mark.slow
def test_which_nights_fail_the_job_and_what_they_sum_up(
    nights: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Night(nights, earlier=False)
    assert first.failed == [], first.output
    assert "6 of 6 passed" in first.summary.read_text()
    assert "no earlier run in the index" in first.summary.read_text()
    reports = {path.name for path in (nights.root / "night").iterdir()}
    assert {"junit.xml", "summary.md", "result.json"} <= reports

    nights.write({"cases/other.yaml": FAILS})
    worse = Night(nights, earlier=True)
    assert worse.failed == ["Compare with the night before"], worse.output
    assert "newly failing" in worse.output
    assert "other" in worse.summary.read_text().partition("```text")[2]

    still = Night(nights, earlier=True)
    assert still.failed == [], still.output

    with monkeypatch.context() as changed:
        cut = RUN["Run the suites"].replace("--max-cost-usd 20", "--max-tokens 1 -j 1")
        changed.setitem(RUN, "Run the suites", cut)
        short = Night(nights, earlier=True)
    assert short.failed[0] == "Run the suites", short.output
    assert "5 not run" in short.summary.read_text()

    nights.write({"cases/other.yaml": "input: {promt: go}\n"})
    invalid = Night(nights, earlier=True)
    assert invalid.failed == ["Check the files and the CLIs", "Compare with the night before"]
    assert "the night has no result" in invalid.summary.read_text()

    nights.write({"cases/other.yaml": BREAKS})
    broken = Night(nights, earlier=True)
    assert broken.failed[0] == "Run the suites", broken.output
    assert "ERROR" in broken.summary.read_text()

    renamed = "name: renamed\ngates: {max_new_failures: 0}\n"
    nights.write({"cases/other.yaml": PASSES, "cases/eval.yaml": renamed})
    other = Night(nights, earlier=True)
    assert other.failed == [], other.output
    assert "no earlier run in the index" in other.output + other.summary.read_text()


@pytest.mark.slow
def test_the_script_for_cron_tells_what_came_of_the_night_and_of_no_other(nights: Project) -> None:
    first = _night_by_cron(nights)
    assert first.returncode == 0, first.stderr
    assert "no earlier run in the index" in first.stderr
    assert "6 passed" in first.stderr
    nights.write({"cases/other.yaml": FAILS})
    worse = _night_by_cron(nights)
    assert worse.returncode == 1, worse.stderr
    assert "other" in worse.stdout
    assert _night_by_cron(nights).returncode == 0  # it fails as it did the night before
    nights.write({"cases/other.yaml": BREAKS})
    assert _night_by_cron(nights).returncode == 3
    nights.write({"cases/other.yaml": "input: {promt: go}\n"})
    invalid = _night_by_cron(nights)
    assert (invalid.returncode, invalid.stdout) == (2, "")
    assert "promt" in invalid.stderr


def test_what_runs_is_installed_and_the_key_is_the_profile_s() -> None:
    workflow = _workflow()
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert "skillup-eval[models]" in RUN["Install"]
    assert 'name = "skillup-eval"' in project
    assert "models = [" in project
    profile = (ROOT / "engines" / "claude_code.yaml").read_text("utf-8")
    assert set(workflow["jobs"]["night"]["env"]) <= {"ANTHROPIC_API_KEY"}
    assert "ANTHROPIC_API_KEY" in profile
    assert set(workflow["on"]) == {"schedule", "workflow_dispatch"}


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
