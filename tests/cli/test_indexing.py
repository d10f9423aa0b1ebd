"""Runs are indexed as they end, and nothing of that can change what they come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.history.index import all_runs, open_index
from tests.support.project import Project

pytestmark = pytest.mark.indexed

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
    with open_index(str(path), write=False) as reading:
        runs = all_runs(reading)
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
