"""`skillup judge` on a run of a case with branches: which records, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project

CASE = """
    id: zoo
    input:
      turns:
        - content: one
          branches:
            - {name: later, turns: [two]}
            - {name: earlier, turns: [two]}
        - three
    assertions: [{contains: said}]
    scripted: [{say: said}]
    """
OTHER = "id: ark\ndepends_on: [zoo]\ninput: {prompt: hi}\nassertions: [{contains: said}]\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of two cases, one of them with branches."""
    project = Project(tmp_path_factory.mktemp("finished"))
    project.write({"s/eval.yaml": "name: s\n", "s/a.yaml": OTHER + "scripted: [{say: said}]\n"})
    project.write({"s/z.yaml": CASE})
    assert project.run("run", "s", "--out", "run").exit_code == 0
    return project


def test_a_session_is_judged_by_the_path_that_is_chosen(finished: Project, tmp_path: Path) -> None:
    from tests.support.session_files import claude_row, text, write_rows

    rows = [
        claude_row("user", "one", "1", None),
        claude_row("assistant", text("said"), "2", "1"),
    ]
    session = str(write_rows(tmp_path / "s.jsonl", rows))
    several = finished.run("judge", session, "--cases", "s/z.yaml")
    assert (several.exit_code, "choose it with -k" in several.stderr) == (2, True)
    one = finished.run("judge", session, "--cases", "s/z.yaml", "-k", "zoo/", "--json")
    assert [case["grade"]["case_id"] for case in one.data["cases"]] == ["zoo"]


def test_branches_are_judged_by_the_edited_paths_of_their_case(finished: Project) -> None:
    edited = CASE.replace(
        "turns: [two]}", "turns: [{content: two, assertions: [{contains: X}]}]}", 1
    )
    finished.write({"edited/eval.yaml": "name: s\n", "edited/z.yaml": edited})

    outcome = finished.run("judge", "run", "--cases", "edited", "--json", "-k", "zoo")

    assert outcome.exit_code == 1, outcome.stderr
    found = {case["grade"]["case_id"]: case["grade"]["status"] for case in outcome.data["cases"]}
    assert found == {"zoo": "PASS", "zoo/later": "FAIL", "zoo/earlier": "PASS"}
    changed = [case["job_id"] for case in outcome.data["cases"] if case["changes"]]
    assert changed == ["zoo/later/scripted/with_skill/1"]
