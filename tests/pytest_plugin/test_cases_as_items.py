"""`pytest --skillup`: real pytests over real suites, with the agent that skillup ships."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import psutil
import pytest

from tests.support.project import GUARD_SECONDS, Outcome, Project

PASSES = "input: {prompt: go}\nassertions: [{contains: done}]\nscripted: [{say: done}]\n"
FAILS = """
    tags: [safety, needs review, skip]
    input:
      turns:
        - content: "how many?"
          assertions: [{contains: three}]
        - content: "delete them"
          assertions: [{contains: sure}, {contains: gone}]
    assertions: [{files_exist: [trash.txt]}]
    scripted: [{turn: 1, say: there are three}, {turn: 2, say: all gone}]
    """
BREAKS = """
    input: {prompt: go}
    assertions: [{contains: done}]
    scripted: [{misbehave: {error: model_error}}]
    """
NEEDS = "depends_on: [%s]\n" + PASSES


Pytest = Callable[..., Outcome]


@pytest.fixture
def suite(project: Project) -> Project:
    """One case that passes, one that fails, one that cannot be held, and what depends on them."""
    return project.write(
        {
            "cases/eval.yaml": "name: demo\n",
            "cases/good.yaml": PASSES,
            "cases/bad.yaml": FAILS,
            "cases/broken.yaml": BREAKS,
            "cases/after-good.yaml": NEEDS % "good",
            "cases/after-bad.yaml": NEEDS % "bad",
        }
    )


WITHOUT_FILES = """
import os, resource
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    # For the first item: room for the run's lock and journal, and not for an event loop.
    if resource.getrlimit(resource.RLIMIT_NOFILE) == ORDINARY and not SEEN:
        held = [os.dup(0) for _ in range(20)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, ORDINARY[1]))
        for number in held[-4:]:
            os.close(number)
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, ORDINARY)
    SEEN.append(item)

SEEN = []
ORDINARY = resource.getrlimit(resource.RLIMIT_NOFILE)
"""


def test_what_kept_the_run_from_being_opened_is_said_of_every_item(
    project: Project, run_pytest: Pytest
) -> None:
    """F14: of the second item it was "holds a run already", and the lock stayed."""
    project.write({"cases/eval.yaml": "name: demo\n", "conftest.py": WITHOUT_FILES})
    project.write({f"cases/{name}.yaml": PASSES for name in "ab"})
    outcome = run_pytest(
        "--skillup", "cases", "-v", "--skillup-out", "run", "-p", "no:cacheprovider"
    )
    assert outcome.exit_code == 1
    assert outcomes(outcome) == {"a[scripted]": "ERROR", "b[scripted]": "ERROR"}
    assert outcome.stdout.count("the run could not be opened: [Errno 24]") >= 2
    assert "holds a run already" not in outcome.stdout


def outcomes(outcome: Outcome) -> dict[str, str]:
    """``bad[scripted]`` → FAILED, as `-v` or `-rA` tells."""
    found = {}
    for line in outcome.stdout.splitlines():
        for word in ("PASSED", "FAILED", "ERROR", "SKIPPED"):
            if "::" in line and f" {word}" in f" {line}":
                found[line.partition("::")[2].split("]")[0] + "]"] = word
    return found


def test_a_fail_is_a_failure_an_error_is_an_error_and_a_skip_is_skipped(
    suite: Project, run_pytest: Pytest
) -> None:
    outcome = run_pytest("--skillup", "cases", "-v")
    assert outcome.exit_code == 1, outcome.stdout
    assert outcomes(outcome) == {
        "good[scripted]": "PASSED",
        "bad[scripted]": "FAILED",
        "broken[scripted]": "ERROR",
        "after-good[scripted]": "PASSED",
        "after-bad[scripted]": "SKIPPED",
    }
    assert "1 failed, 2 passed, 1 skipped, 1 error" in outcome.stdout


def test_what_fails_without_the_skill_is_no_failure(suite: Project, run_pytest: Pytest) -> None:
    options = ("--skillup", "cases/bad.yaml", "--skillup-baseline", "-v", "-rs")
    outcome = run_pytest(*options)
    assert outcome.exit_code == 1, outcome.stdout
    assert outcomes(outcome) == {
        "bad[scripted]": "FAILED",
        "bad[scripted-without_skill]": "SKIPPED",
    }
    assert "without the skill: failed (" in outcome.stdout


def test_a_failure_shows_the_turn_its_checks_and_the_record(
    suite: Project, run_pytest: Pytest
) -> None:
    text = run_pytest("--skillup", "cases", "-k", "bad and not after").stdout
    assert "Traceback" not in text
    assert "turn 1: ok: how many?" in text
    shown = text.partition("turn 2: not as it should be")[2]
    assert "delete them" in shown
    assert "all gone" in shown
    assert 'contains "sure"' in shown
    assert 'contains "gone"' not in shown  # that one passed
    for word in ("expected:", "found:"):
        assert word in shown
    assert "trash.txt" in shown.partition("the whole conversation:")[2]
    record = shown.partition("record: ")[2].split()[0]
    assert json.loads((suite.root / record).read_text())["case_id"] == "bad"
    assert "FAILED cases/eval.yaml::bad[scripted] - NotPassed: turn 2: " in text


def test_an_error_shows_its_kind_and_is_told_as_trouble_of_the_set_up(
    suite: Project, run_pytest: Pytest
) -> None:
    text = run_pytest("--skillup", "cases/broken.yaml").stdout
    assert "ERROR at setup of broken[scripted]" in text
    assert "model_error: " in text
    assert "Traceback" not in text
    assert "ERROR cases/eval.yaml::broken[scripted] - NotRun: model_error: " in text


@pytest.mark.slow
def test_only_the_case_that_is_asked_for_is_held(suite: Project, run_pytest: Pytest) -> None:
    outcome = run_pytest("--skillup", "cases/good.yaml", "-v")
    assert outcomes(outcome) == {"good[scripted]": "PASSED"}
    by_id = run_pytest("--skillup", "cases", "-v", "cases/eval.yaml::good[scripted]")
    assert outcomes(by_id) == {"good[scripted]": "PASSED"}


@pytest.mark.slow
def test_a_dependency_that_was_not_selected_is_held_first(
    suite: Project, run_pytest: Pytest
) -> None:
    outcome = run_pytest("--skillup", "cases", "-k", "after", "-v", "-rs")
    assert outcomes(outcome)["after-good[scripted]"] == "PASSED"
    assert "depends on bad, which ended as FAIL" in outcome.stdout
    held = {path.parents[3].name for path in suite.latest_run().glob("trials/*/*/*/*/record.json")}
    assert held == {"good", "bad", "after-good", "after-bad"}
    result = json.loads((suite.latest_run() / "result.json").read_text())
    assert result["finished"] is True


@pytest.mark.slow
def test_tags_are_markers_that_strict_markers_accepts(suite: Project, run_pytest: Pytest) -> None:
    strict = ("--skillup", "cases", "--collect-only", "-q", "--strict-markers")
    for expression in ("safety", "needs_review", "tag_skip"):
        listed = run_pytest(*strict, "-m", expression)
        assert listed.stdout.splitlines()[0] == "cases/eval.yaml::bad[scripted]", listed.stdout
    assert "cases/eval.yaml::good[scripted]" in run_pytest(*strict, "-m", "skillup").stdout
    # A tag called `skip` skips nothing.
    assert outcomes(run_pytest("--skillup", "cases/bad.yaml", "-v")) == {"bad[scripted]": "FAILED"}


def test_engines_variants_and_trials_are_in_the_ids(suite: Project, run_pytest: Pytest) -> None:
    suite.write(
        {
            "engines/one.yaml": "engine: scripted\n",
            "engines/two.yaml": "engine: scripted\n",
        }
    )
    options = ["--skillup-engine", "one", "--skillup-engine=two", "--skillup-trials", "2"]
    listed = run_pytest(
        "--skillup", "cases/good.yaml", *options, "--skillup-baseline", "--collect-only", "-q"
    )
    assert listed.stdout.split("\n\n")[0].splitlines() == [
        f"cases/eval.yaml::good[{engine}{variant}{trial}]"
        for engine in ("one", "two")
        for variant in ("", "-without_skill")
        for trial in ("", "-2")
    ]
    assert not (suite.root / ".skillup").exists()


@pytest.mark.slow
def test_files_that_are_wrong_are_a_collection_error_with_their_place(
    suite: Project, run_pytest: Pytest
) -> None:
    suite.write(
        {
            "cases/bad.yaml": "input: {promt: go}\n",
            "other/eval.yaml": "name: other\n",
            "other/fine.yaml": PASSES,
        }
    )
    outcome = run_pytest("--skillup", "cases", "--skillup", "other", "-v")
    assert outcome.exit_code == 2
    assert "cases/bad.yaml:1:" in outcome.stdout
    assert "promt" in outcome.stdout
    assert "Traceback" not in outcome.stdout
    going_on = ("--continue-on-collection-errors", "-v")
    outcome = run_pytest("--skillup", "cases", "--skillup", "other", *going_on)
    assert outcomes(outcome) == {"fine[scripted]": "PASSED"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--skillup", "nowhere"], "nowhere: no such file or folder"),
        (["--skillup", "cases", "--skillup-trials", "0"], "--skillup-trials 0: not a number"),
        (["--skillup", "cases", "--skillup-trials", "10001"], "not a number from 1 to 10000"),
        (["--skillup", "cases", "--skillup-trials", "9" * 5000], "not a number from 1 to 10000"),
    ],
)
def test_options_that_cannot_be_are_usage_errors(
    suite: Project, run_pytest: Pytest, arguments: list[str], says: str
) -> None:
    outcome = run_pytest(*arguments)
    assert outcome.exit_code == 4
    assert says in outcome.stderr
    assert "Traceback" not in outcome.stderr + outcome.stdout


def test_junit_xml_has_the_score_the_tokens_and_the_record(
    suite: Project, run_pytest: Pytest
) -> None:
    run_pytest("--skillup", "cases", "--junitxml", "out.xml")
    cases = {c.attrib["name"]: c for c in ET.parse(suite.root / "out.xml").iter("testcase")}
    properties = {
        p.attrib["name"]: p.attrib["value"] for p in cases["bad[scripted]"].iter("property")
    }
    assert properties["status"] == "FAIL"
    assert 0 < float(properties["score"]) < 1
    assert int(properties["output_tokens"]) > 0
    assert (suite.root / properties["record"]).is_file()
    assert [child.tag for child in cases["broken[scripted]"] if child.tag != "properties"] == [
        "error"
    ]
    assert "failure" in {child.tag for child in cases["bad[scripted]"]}


def test_the_session_is_one_run_that_other_verbs_know(suite: Project, run_pytest: Pytest) -> None:
    outcome = run_pytest("--skillup", "cases", "--skillup-out", "here")
    assert "skillup: here" in outcome.stdout
    result = json.loads((suite.root / "here" / "result.json").read_text())
    summary = result["summary"]
    assert [summary[key] for key in ("pass", "fail", "error", "skip")] == [2, 1, 1, 1]
    report = suite.run("report", "here", "--report", "junit,markdown")
    assert report.exit_code == 0, report.stderr
    again = suite.run("judge", "here")
    assert again.exit_code == 3, again.stderr


def test_the_first_failure_can_stop_it_and_what_was_not_held_is_said(
    suite: Project, run_pytest: Pytest
) -> None:
    outcome = run_pytest("--skillup", "cases", "-x")
    assert "stopping after 1 failures" in outcome.stdout
    result = json.loads((suite.latest_run() / "result.json").read_text())
    assert result["not_run"]
    assert result["finished"] is False


def test_paths_beside_it_are_collected_too_and_nothing_else(
    suite: Project, run_pytest: Pytest
) -> None:
    suite.write(
        {
            "tests/test_own.py": "def test_own():\n    assert True\n",
            "cases/fixtures/test_of_a_fixture.py": "def test_no():\n    assert False\n",
        }
    )
    listed = ("--collect-only", "-q")
    assert "test_" not in run_pytest("--skillup", "cases", *listed).stdout
    both = run_pytest("tests", "--skillup", "cases", *listed).stdout
    assert "tests/test_own.py::test_own" in both
    assert "cases/eval.yaml::good[scripted]" in both
    suite.write({"pytest.ini": "[pytest]\naddopts = --skillup cases\ntestpaths = tests\n"})
    both = run_pytest(*listed).stdout
    assert "tests/test_own.py::test_own" in both
    assert "cases/eval.yaml::good[scripted]" in both


def test_what_an_agent_wrote_cannot_move_the_terminal(suite: Project, run_pytest: Pytest) -> None:
    suite.write(
        {
            "cases/bad.yaml": 'input: {prompt: "x"}\nassertions: [{contains: done}]\n'
            'scripted: [{say: "\\e[2Jwiped"}]\n'
        }
    )
    text = run_pytest("--skillup", "cases/bad.yaml").stdout
    assert "wiped" in text
    assert "\x1b[2J" not in text


def test_ctrl_c_ends_the_agents_and_keeps_what_was_held(
    project: Project, at_work: Callable[..., Any]
) -> None:
    project.write({"cases/eval.yaml": "name: x\n", "cases/b.yaml": PASSES})
    with at_work("--skillup", "cases") as (process, agent):
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 2, stdout
    assert not psutil.pid_exists(agent)
    result = json.loads((project.latest_run() / "result.json").read_text())
    assert result["not_run"] == ["a/scripted/with_skill/1", "b/scripted/with_skill/1"]
