"""Runs are indexed as they end; `skillup trends` shows how cases fared over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.history.index import all_runs
from tests.support.project import Project

pytestmark = pytest.mark.indexed

SUITE = {"eval.yaml": "name: demo\ncases: {files: ['cases/*.yaml']}\n"}
CASE = """
    input: {{turns: [one]}}
    assertions: [{{contains: hi}}]
    scripted: [{{say: "{say}", misbehave: {trouble}}}]
    """
SAYS = {"p": ("hi", "{}"), "f": ("no", "{}"), "e": ("", "{error: auth}")}


def nights(project: Project, **cases: str) -> list[str]:
    """A run for each letter; the ids."""
    ids = []
    for letters in zip(*cases.values(), strict=True):
        for name, letter in zip(cases, letters, strict=True):
            say, trouble = SAYS[letter]
            project.write({f"cases/{name}.yaml": CASE.format(say=say, trouble=trouble)})
        ids.append(project.write(SUITE).run_json(".")["run_id"])
    return ids


def test_every_case_is_a_line_of_marks_and_a_failing_one_says_since_when(project: Project) -> None:
    ids = nights(project, steady="pppp", broke="pfef")
    outcome = project.run("trends")
    assert outcome.exit_code == 0, outcome.stderr
    lines = outcome.stdout.splitlines()
    assert lines[0].startswith("demo  4 runs, ")
    assert lines[0].endswith(ids[3])
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["(all)", "✓~E~"],
        ["broke", "✓✗E✗"],
        ["steady", "✓✓✓✓"],
    ]
    assert f"broke: failing since {ids[1]} (" in outcome.stdout
    assert f"2 runs; last passed in {ids[0]} (" in outcome.stdout
    assert "1/3" in lines[3]
    assert lines[2].split()[2:4] == ["5/7", "71%"]
    assert "E error: not run" in lines[-1]
    assert "\x1b" not in outcome.stdout


def test_the_same_as_json(project: Project) -> None:
    ids = nights(project, a="pef")
    (suite,) = project.run("trends", "demo", "--json").data["suites"]
    assert [run["run_id"] for run in suite["runs"]] == ids
    assert (suite["pass_rate"], suite["judged"], suite["errors"]) == (0.5, 2, 1)
    (case,) = suite["cases"]
    assert [run["state"] for run in case["runs"]] == ["pass", "error", "fail"]
    assert (case["pass_rate"], case["judged"]) == (0.5, 2)
    assert case["interval"] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    assert case["failing_since"]["first"]["run_id"] == ids[2]
    assert case["failing_since"]["last_pass"]["run_id"] == ids[0]


def test_runs_and_cases_can_be_chosen(project: Project) -> None:
    ids = nights(project, a="pp", b="pp")
    (suite,) = project.run("trends", "de*", "-k", "b", "--last", "1", "--json").data["suites"]
    assert [run["run_id"] for run in suite["runs"]] == ids[1:]
    assert [case["case_id"] for case in suite["cases"]] == ["b"]
    assert project.run("trends", "--engine", "codex").exit_code == 2
    assert project.run("trends", "--variant", "with_luck").exit_code == 2
    unknown = project.run("trends", "nothing")
    assert unknown.exit_code == 2
    assert "suites in the index: demo" in unknown.stderr


def test_an_index_that_was_lost_is_made_anew_from_the_runs(project: Project) -> None:
    nights(project, a="pf")
    before = project.run("trends", "--json").data
    (project.root / ".skillup/index.sqlite").unlink()
    missing = project.run("trends")
    assert missing.exit_code == 3
    assert "--rebuild" in missing.stderr
    rebuilt = project.run("trends", "--rebuild", "--json")
    assert rebuilt.data == before
    assert "2 runs indexed" in rebuilt.stderr


# Runs are indexed as they end, and nothing of that can change what they come to.

FILES = {
    "eval.yaml": """
        name: demo
        cases: {files: ['cases/*.yaml']}
        gates: {max_new_failures: 0, confidence: 0.9}
        """,
    "cases/a.yaml": "{input: {turns: [one]}, assertions: [{contains: hi}], scripted: [{say: hi}]}",
    "cases/b.yaml": "{input: {turns: [one]}, assertions: [{contains: hi}], scripted: [{say: no}]}",
}


def indexed(path: Path) -> list[tuple[str, str]]:
    """Case and status of every trial in an index."""
    runs = all_runs(str(path))
    return [(trial.key.case_id, trial.status) for run in runs for trial in run.trials]


@pytest.mark.parametrize("by", ["option", "variable"])
def test_another_index_can_be_named(project: Project, by: str) -> None:
    project.write(FILES)
    if by == "option":
        project.run("run", ".", "--index", "nightly.sqlite")
    else:
        project.run("run", ".", env={"SKILLUP_INDEX": "nightly.sqlite"})
    assert len(indexed(project.root / "nightly.sqlite")) == 2
    assert not (project.root / ".skillup/index.sqlite").exists()


@pytest.mark.parametrize(
    "url", ["no/such/folder/index.sqlite", "eval.yaml", "postgresql://me:pw@127.0.0.1:1/x"]
)
def test_an_index_that_cannot_be_written_is_a_line_and_no_more(project: Project, url: str) -> None:
    project.write(FILES)
    outcome = project.run("run", ".", "-k", "a", "--index", url)
    assert outcome.exit_code == 0
    assert "1 passed" in outcome.stderr
    assert "not indexed: " in outcome.stderr
    assert "me:pw" not in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert (project.latest_run() / "result.json").is_file()


def test_a_resumed_run_is_indexed_once_and_whole(project: Project) -> None:
    project.write(FILES).run("run", ".", "--max-fail", "1", "-j", "1", "-k", "b", "--trials", "2")
    index = project.root / ".skillup/index.sqlite"
    assert indexed(index) == [("b", "FAIL"), ("b", "NOT_RUN")]
    project.run("run", "--resume", str(project.latest_run()))
    assert indexed(index) == [("b", "FAIL"), ("b", "FAIL")]
