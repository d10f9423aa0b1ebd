"""What a run prints, whatever agents and authors put into texts and names."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.result import print_result
from skillup.schema.grade import CheckResult
from tests.support.graded import a_grade, a_result
from tests.support.plans import a_plan
from tests.support.project import GUARD_SECONDS, Project

CASE = r"""
    id: "case\e[31m[/red]"
    input: {prompt: go}
    assertions: [{equals: "\e]0;title\a[/b]"}]
    scripted: [{say: "\e[2J[/b]"}]
    """


def test_no_terminal_control_and_no_markup_of_others_reaches_the_terminal(
    project: Project,
) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": CASE})

    outcome = project.run("run", ".", "--out", "to [/b] \x1b[31m")

    assert outcome.exit_code == 1, outcome.stderr
    assert "\x1b" not in outcome.stderr
    assert "case[/red]" in outcome.stderr
    assert "to [/b]" in outcome.stderr


ALIKE = """
    input:
      turns:
        - content: one
          branches:
            - {name: a, turns: [two]}
            - {name: b, turns: [two]}
    assertions: [{contains: x}]
    scripted: [{say: x, misbehave: {error: auth}}]
    """


def test_a_long_reason_stands_once_in_full(project: Project) -> None:
    words = "a text that is much longer than what a line of the progress has room for"
    case = f"input: {{prompt: go}}\nassertions: [{{contains: {words}}}]\nscripted: [{{say: x}}]\n"
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})

    outcome = project.run("run", ".")

    assert outcome.exit_code == 1, outcome.stderr
    told = [line for line in outcome.stderr.splitlines() if 'contains "a text' in line]
    first, full = told
    assert first.startswith("FAIL   a  ")
    assert first.endswith("…")
    assert full.startswith(f'a: contains "{words}"')


def test_what_is_the_same_of_several_trials_is_told_once(project: Project) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/c.yaml": ALIKE})

    outcome = project.run("run", ".")

    assert outcome.exit_code == 3, outcome.stderr
    (told,) = [line for line in outcome.stderr.splitlines() if "script asked for this" in line]
    assert told.startswith("c/a, c/b: auth: ")


def test_a_very_long_id_is_shortened_for_people_and_whole_in_data(project: Project) -> None:
    case_id = "first-" + "x" * 5000 + "-last"
    case = f"id: {case_id}\ninput: {{prompt: hi}}\nassertions: [{{contains: no}}]\n"
    project.write({"s/eval.yaml": "name: s\n", "s/a.yaml": case + "scripted: [{say: hey}]\n"})
    held = project.run("run", "s", "--out", "run")
    listed, judged = project.run("list", "s"), project.run("judge", "run")
    for shown in (held.stderr, listed.stdout, judged.stderr):
        assert "x" * 200 not in shown
        assert "first-xxx" in shown
        assert "xxx-last" in shown
    assert project.run("list", "s", "--json").data[0]["id"] == case_id
    assert project.run("judge", "run", "--json").data["cases"][0]["job_id"].startswith(case_id)


def test_trials_of_a_case_that_came_to_the_same_are_counted(project: Project) -> None:
    case = "input: {prompt: go}\nassertions: [{contains: x}]\nscripted: [{say: y}]\n"
    project.write({"eval.yaml": "name: x\n", "cases/fails.yaml": case})

    outcome = project.run("run", ".", "--trials", "8", "--report", "markdown")

    assert 'fails (8 of 8): contains "x": not found\n' in outcome.stderr
    told = (project.latest_run() / "summary.md").read_text("utf-8").partition("## What did not")[2]
    assert told.count("### ") == 1
    assert "fails (8 of 8 trials)" in told
    assert told.count("not found") == 1


def test_what_is_said_of_a_judge_in_several_trials_stands_once(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, {"please": {}, "once": {}}, trials=3)
    note = "this quotation is not in what was judged: please"
    unsure = CheckResult(
        name="polite", kind="rubric", passed=True, score=1.0, role="judge", notes=[note]
    )
    marked = [
        (job, a_grade(job.loaded.case.id or "", "p", job.trial, assertions=[unsure]))
        for job in plan.jobs
        if job.id.startswith("please") or job.trial == 2
    ]
    shown = StringIO()

    result = a_result([grade for _, grade in marked])
    print_result(result, "run", make_console(shown))

    (told,) = [line for line in shown.getvalue().splitlines() if note in line]
    assert sorted(told.partition(": ")[0].split(", ")) == ["once #2", "please (3 of 3)"]


TWICE = """
    input: {prompt: go}
    assertions: [{contains: x}]
    scripted: [{say: x}]
    """


def rows_of(stderr: str) -> list[str]:
    """Labels in the closing table."""
    lines = stderr.splitlines()
    heads = [number for number, line in enumerate(lines) if line.split()[:2] == ["case", "turns"]]
    rows = lines[heads[0] + 1 :] if heads else []
    return [" ".join(row.split()[1:3]) for row in rows if row[:4] in ("PASS", "FAIL")]


def test_of_cases_held_several_times_only_trials_that_did_not_pass_have_a_row(
    project: Project,
) -> None:
    fails = TWICE.replace("say: x", "say: y")
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": TWICE, "cases/b.yaml": fails})

    quiet = project.run("run", ".", "--trials", "2", "-q", "-j", "1")
    assert rows_of(quiet.stderr) == ["b #1", "b #2"]
    assert "\n2 trials passed\n" in quiet.stderr
    told = project.run("run", ".", "--trials", "2", "-q", "-v", "-j", "1")
    assert rows_of(told.stderr) == ["a #1", "a #2", "b #1", "b #2"]
    assert "trials passed" not in told.stderr
    once = project.run("run", ".", "-q", "-j", "1")
    assert rows_of(once.stderr)[0].startswith("a 1/1")


def test_lots_are_the_same_in_every_run_and_others_by_the_seed(project: Project) -> None:
    draws = TWICE.replace("[{say: x}]", "[{probability: 0.5, say: x}, {say: y}]")
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": draws})

    def drawn(*options: str) -> list[str]:
        ran = project.run("run", ".", "--trials", "12", "--json", *options)
        return [case["status"] for case in ran.data["cases"]]

    assert drawn() == drawn("--seed", "0")
    assert drawn("--seed", "1") == drawn("--seed", "1") != drawn()


@pytest.mark.indexed
def test_a_run_whose_reader_goes_away_is_in_the_index(project: Project) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": TWICE, "cases/b.yaml": TWICE})
    ran = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m skillup run . 2>&1 | head -1'],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    assert ran.stdout.count(b"\n") == 1
    assert "1 run" in project.run("trends").stdout
