"""What a grade warns of."""

from __future__ import annotations

from tests.support.project import Project

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n"


def test_a_result_of_shared_isolation_says_so(project: Project) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": CASE})
    project.write({"engines/mine.yaml": "engine: scripted\nisolation: shared\n"})
    outcome = project.run("run", ".", "-e", "mine", "--json")
    assert outcome.data["cases"][0]["warnings"][0].startswith("isolation: shared")
    assert "note: isolation: shared" in project.run("run", ".", "-e", "mine").stderr


def test_a_result_of_clean_isolation_warns_of_nothing(project: Project) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": CASE})
    assert project.run_json(".")["cases"][0]["warnings"] == []
