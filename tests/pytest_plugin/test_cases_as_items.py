"""`pytest --skillup`: real pytests over real suites, with the agent that skillup ships."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from skillup.pytest_plugin.plugin import marker_of_tag
from tests.support.children import is_alive
from tests.support.forked import FORKS
from tests.support.project import GUARD_SECONDS, Outcome, Project, wait_until

NO_OTHERS = ("-p", "no:anyio", "-p", "no:hypothesispytest")
"""Plug-ins that are installed for our own tests, and take as long to start as pytest does."""
FORKED = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")


@pytest.fixture
def run_pytest(project: Project) -> Callable[..., Outcome]:
    """`pytest ARGUMENTS` in the project, with no settings of this repository; `env` adds to it."""

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
        own = project.environment({"COLUMNS": "150", **(env or {})})
        given = (*NO_OTHERS, *FORKED, *arguments)
        done = FORKS.run(given, project.root, own, GUARD_SECONDS, program="pytest")
        assert done is not None
        return Outcome(done[0], done[1].decode(), done[2].decode())

    return run


@pytest.fixture
def at_work(
    project: Project, tmp_path: Path
) -> Callable[..., AbstractContextManager[tuple[subprocess.Popen[str], int]]]:
    """`pytest ARGUMENTS` in the project, and the pid of the agent of the case `a`, which hangs."""
    agent = tmp_path / "agent"
    case = f"""
        input: {{prompt: go}}
        assertions: [{{contains: ok}}]
        scripted: [{{steps: [{{run: 'echo $$ > "{agent}"; sleep 300'}}], say: ok}}]
        """
    project.write({"cases/a.yaml": case})

    @contextmanager
    def start(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
        with project.start(*NO_OTHERS, *arguments, module="pytest") as process:
            wait_until(lambda: agent.exists() and agent.read_text().endswith("\n"), process)
            yield process, int(agent.read_text())

    return start


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
    scripted: [{turn: 1, say: there are three}, {turn: 2, say: "\\e[2Jall gone"}]
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
    """One case that passes, one that fails, one that cannot be run, and what depends on them."""
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


def result_of(run: Path) -> Any:
    return json.loads((run / "result.json").read_text())


def outcomes(outcome: Outcome) -> dict[str, str]:
    """``bad[scripted]`` → FAILED, as `-v` or `-rA` tells."""
    found = {}
    for line in outcome.stdout.splitlines():
        for word in ("PASSED", "FAILED", "ERROR", "SKIPPED"):
            if "::" in line and f" {word}" in f" {line}":
                found[line.partition("::")[2].split("]")[0] + "]"] = word
    return found


def test_a_session_is_a_run_of_which_pytest_and_other_verbs_tell(
    suite: Project, run_pytest: Pytest
) -> None:
    options = ("-v", "--junitxml", "out.xml", "--skillup-out", "here")
    outcome = run_pytest("--skillup", "cases", *options)

    text = outcome.stdout
    assert outcome.exit_code == 1, text
    assert outcomes(outcome) == {
        "good[scripted]": "PASSED",
        "bad[scripted]": "FAILED",
        "broken[scripted]": "ERROR",
        "after-good[scripted]": "PASSED",
        "after-bad[scripted]": "SKIPPED",
    }
    assert "1 failed, 2 passed, 1 skipped, 1 error" in text
    assert "Traceback" not in text
    # A failure shows the conversation, what its checks found, and where the record is.
    assert "FAILED cases/eval.yaml::bad[scripted] - NotPassed: turn 2: " in text
    shown = text.partition("_ bad[scripted] _")[2].partition("all of it, raw streams too: ")
    for said in ("how many?", "there are three", "delete them", "all gone", "trash.txt"):
        assert said in shown[0]
    assert 'FAILED   contains "sure"' in shown[0]
    assert "\x1b[2J" not in text
    assert shown[2].startswith("skillup export here --format files --out DIR\n")
    # An error is trouble of the set-up.
    assert "ERROR at setup of broken[scripted]" in text
    assert "ERROR cases/eval.yaml::broken[scripted] - NotRun: model_error: " in text
    cases = {c.attrib["name"]: c for c in ET.parse(suite.root / "out.xml").iter("testcase")}
    told = {p.attrib["name"]: p.attrib["value"] for p in cases["bad[scripted]"].iter("property")}
    assert (told["status"], int(told["output_tokens"]) > 0) == ("FAIL", True)
    assert 0 < float(told["score"]) < 1
    assert suite.record(told["job"], run=told["run"])["case_id"] == "bad"
    assert "skillup: here" in text
    summary = result_of(suite.root / "here")["summary"]
    assert [summary[key] for key in ("pass", "fail", "error", "skip")] == [2, 1, 1, 1]
    assert suite.run("report", "here", "--report", "junit,markdown").exit_code == 0
    assert suite.run("judge", "here").exit_code == 3
    again = run_pytest("--skillup", "cases", "--skillup-out", "here")
    assert (again.exit_code, "here holds a run already" in again.stderr) == (4, True)


def test_what_fails_without_the_skill_is_no_failure_and_the_first_failure_can_stop_it(
    suite: Project, run_pytest: Pytest
) -> None:
    options = ("--skillup", "cases/bad.yaml", "--skillup-baseline", "-v", "-rs")
    outcome = run_pytest(*options, "-x")
    assert outcome.exit_code == 1, outcome.stdout
    assert outcomes(outcome) == {"bad[scripted]": "FAILED"}
    result = result_of(suite.latest_run())
    assert result["not_run"] == ["bad/scripted/without_skill/1"]
    assert result["finished"] is False
    alone = run_pytest(*options, "-k", "without_skill")
    assert outcomes(alone) == {"bad[scripted-without_skill]": "SKIPPED"}
    assert "without the skill: failed (" in alone.stdout
    assert alone.exit_code == 0


def test_with_workers_all_cases_are_one_run_of_one_of_them(
    suite: Project, run_pytest: Pytest
) -> None:
    suite.write(
        {
            "tests/test_own.py": "def test_own():\n    assert True\n",
            "cases/vague.yaml": "input: {prompt: go}\nscripted: [{say: done}]\n",
        }
    )
    outcome = run_pytest("tests", "--skillup", "cases", "-n", "2", "-rA", "--junitxml", "out.xml")
    assert "2 failed, 3 passed, 1 skipped, 1 error" in outcome.stdout, outcome.stdout
    run, result = suite.latest_run(), result_of(suite.latest_run())
    assert f"skillup: {run.relative_to(suite.root)}\n" in outcome.stdout
    assert "skillup: cases/vague.yaml:1:1: warning: nothing is checked" in outcome.stdout
    assert (result["run_id"], result["finished"]) == (run.name, True)
    summary = result["summary"]
    assert [summary[key] for key in ("pass", "fail", "error", "skip")] == [2, 2, 1, 1]
    events = [event["job"] for event in suite.journal() if event["event"] == "trial_started"]
    assert len(events) == len(set(events)) == 6
    shown = [p.attrib for p in ET.parse(suite.root / "out.xml").iter("property")]
    jobs = [p["value"] for p in shown if p["name"] == "job"]
    assert jobs
    assert all(suite.record(job)["case_id"] == job.partition("/")[0] for job in jobs)


@pytest.mark.slow
def test_a_dependency_that_was_not_selected_runs_first(suite: Project, run_pytest: Pytest) -> None:
    outcome = run_pytest("--skillup", "cases", "-k", "after", "-v", "-rs")
    assert outcomes(outcome)["after-good[scripted]"] == "PASSED"
    assert "depends on bad, which ended as FAIL" in outcome.stdout
    ran = {event["job"].partition("/")[0] for event in suite.journal("trial_finished")}
    assert ran == {"good", "bad", "after-good", "after-bad"}
    assert result_of(suite.latest_run())["finished"] is True


def test_what_is_collected_and_by_which_names_and_markers(
    suite: Project, run_pytest: Pytest
) -> None:
    suite.write(
        {
            "engines/one.yaml": "engine: scripted\n",
            "tests/test_own.py": "def test_own():\n    assert True\n",
            "cases/fixtures/test_of_a_fixture.py": "def test_no():\n    assert False\n",
        }
    )

    def listed(*arguments: str) -> list[str]:
        outcome = run_pytest(*arguments, "--collect-only", "-q", "--strict-markers")
        assert outcome.exit_code == 0, outcome.stdout
        return outcome.stdout.split("\n\n")[0].splitlines()

    engines = ("--skillup-engine", "one", "--skillup-engine=scripted", "--skillup-trials", "2")
    assert listed("--skillup", "cases/good.yaml", *engines, "--skillup-baseline") == [
        f"cases/eval.yaml::good[{engine}{variant}{trial}]"
        for engine in ("one", "scripted")
        for variant in ("", "-without_skill")
        for trial in ("", "-2")
    ]
    tagged = ("-m", "safety and needs_review and tag_skip and skillup")
    assert listed("--skillup", "cases", *tagged) == ["cases/eval.yaml::bad[scripted]"]
    both = ["tests/test_own.py::test_own", "cases/eval.yaml::good[scripted]"]
    assert listed("tests", "--skillup", "cases", both[1]) == both
    suite.write({"pytest.ini": "[pytest]\naddopts = --skillup cases\ntestpaths = tests\n"})
    assert {*both, "cases/eval.yaml::bad[scripted]"} < set(listed())
    assert not (suite.root / ".skillup").exists()


@pytest.mark.parametrize(
    ("tag", "marker"),
    [
        ("größe: b(c)", "größe__b_c_"),
        ("xfail", "tag_xfail"),
        ("not", "tag_not"),
        ("_private", "tag__private"),
        ("!", "tag__"),
    ],
)
def test_a_tag_becomes_a_name_that_pytest_takes_and_gives_no_meaning_to(
    tag: str, marker: str
) -> None:
    assert marker_of_tag(tag) == marker


def test_what_is_wrong_is_said_with_its_place(suite: Project, run_pytest: Pytest) -> None:
    suite.write({"cases/bad.yaml": "input: {promt: go}\n"})
    outcome = run_pytest("--skillup", "cases")
    assert (outcome.exit_code, "cases/bad.yaml:1:" in outcome.stdout) == (2, True), outcome.stdout
    assert "promt" in outcome.stdout
    nowhere = run_pytest("--skillup", "nowhere")
    assert (nowhere.exit_code, "nowhere: no such file or folder" in nowhere.stderr) == (4, True)
    for one in (outcome, nowhere):
        assert "Traceback" not in one.stdout + one.stderr


WITHOUT_FILES = """
import os, resource
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    # For the first item: room for the run's lock and its file, and not for an event loop.
    if resource.getrlimit(resource.RLIMIT_NOFILE) == ORDINARY and not SEEN:
        spare = [os.dup(0) for _ in range(20)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, ORDINARY[1]))
        for number in spare[-6:]:
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


def test_ctrl_c_ends_the_agents_and_what_was_selected_can_be_resumed(
    project: Project, at_work: Callable[..., Any]
) -> None:
    project.write(
        {f"cases/{name}.yaml": PASSES for name in ("b", "other")} | {"cases/eval.yaml": "name: x"}
    )
    left_out = ("-k", "not other", "--deselect", "cases/eval.yaml::b[scripted]")
    with at_work("--skillup", "cases", "--skillup-trials", "2", *left_out) as (process, agent):
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 2, stdout
    assert not is_alive(agent)
    jobs = [f"{name}/scripted/with_skill/{n}" for name, n in (("a", 1), ("a", 2), ("b", 2))]
    assert result_of(project.latest_run())["not_run"] == jobs
    project.write({"cases/a.yaml": PASSES})
    assert project.run("run", "--resume", "last").exit_code == 0
    result = result_of(project.latest_run())
    assert (len(result["cases"]), result["not_run"]) == (3, [])


PROBE = """
import sys, pytest
code = pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "--skillup-engine", "x"])
print(int(code), sorted(name for name in sys.modules if name.partition(".")[0] == "skillup"))
"""


def test_without_the_option_the_plug_in_imports_nothing(project: Project) -> None:
    project.write({"test_own.py": "def test_own():\n    assert True\n"})
    done = project.shell(sys.executable, "-c", PROBE, check=True)
    assert done.stdout.splitlines()[-1] == "0 ['skillup', 'skillup.pytest_plugin']"
