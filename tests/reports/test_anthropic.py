"""A run as a workspace of Anthropic's skill-creator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.skill_creator import read, runs_of, summary_of

SUITE = {
    "s/skills/k/SKILL.md": "---\nname: keeper\ndescription: Keeps.\n---\nKeep.\n",
    "s/eval.yaml": "name: s\nskills: [{path: skills/k}]\n",
    "s/cases/writes.yaml": """
        input: {turns: [Write it, Again]}
        context: {files: {"old.txt": old}}
        assertions: [{contains: done}, {files_exist: [out/new.txt]}, {skill_used: keeper}]
        scripted:
          - turn: 1
            steps:
              - run: "cat nowhere"
              - write: {path: out/new.txt, content: "new"}
              - write: {path: answer.md, content: "mine"}
            say: "## done\\n[x](y)"
          - {turn: 2, say: done again}
        """,
    "s/cases/plain.yaml": """
        input: {prompt: Say it}
        assertions: [{contains: it}]
        scripted: [{needs_skill: keeper, say: it}, {say: that}]
        """,
    "s/cases/broken.yaml": """
        input: {prompt: Say it}
        assertions: [{contains: it}]
        scripted: [{say: x, misbehave: {exit_code: 3}}]
        """,
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("exported")).write(SUITE)
    project.run("run", "s", "--baseline", "--trials", "2", "--out", "r")
    outcome = project.run("export", "r", "--format", "anthropic", "--out", "ws")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stderr == "s on scripted: 8 runs, 4 not graded (see the notes) → ws\n"
    return project.root / "ws"


def home_of(exported: Path, name: str) -> Path:
    homes = exported.glob("eval-*")
    return next(h for h in homes if read(h / "eval_metadata.json")["eval_name"] == name)


def test_its_aggregator_comes_to_the_benchmark_that_we_wrote(exported: Path) -> None:
    ours, theirs = read(exported / "benchmark.json"), runs_of(exported)

    assert len(theirs) == 8
    names = [run.pop("eval_name") for run in ours["runs"]]
    assert ours["runs"] == theirs
    assert ours["run_summary"] == summary_of(theirs)
    assert set(names) == {"writes", "plain"}
    assert ours["metadata"]["skill_name"] == "keeper"
    assert ours["metadata"]["runs_per_configuration"] == 2


def test_trials_in_error_are_no_runs_there(exported: Path) -> None:
    broken = home_of(exported, "broken")

    assert [path.name for path in broken.iterdir()] == ["eval_metadata.json"]
    notes = read(exported / "benchmark.json")["notes"]
    assert len(notes) == 4
    assert all("(broken)" in note and "was not graded: ERROR" in note for note in notes)


def test_outputs_are_what_the_agent_made_and_its_last_answer(exported: Path) -> None:
    outputs = home_of(exported, "writes") / "with_skill/run-1/outputs"

    files = {p.relative_to(outputs).as_posix() for p in outputs.rglob("*") if p.is_file()}
    assert files == {"out/new.txt", "answer.md", "answer-2.md"}
    assert (outputs / "answer.md").read_text() == "mine"
    assert (outputs / "answer-2.md").read_text() == "done again"
    metrics = read(outputs.parent / "grading.json")["execution_metrics"]
    assert metrics["tool_calls"] == {"shell": 1, "write_file": 2}
    assert metrics["errors_encountered"] == 1
    prompt = read(outputs.parent / "eval_metadata.json")["prompt"]
    assert prompt == "Turn 1: Write it\n\nTurn 2: Again"


def test_several_engines_have_a_folder_each(tmp_path: Path) -> None:
    project = Project(tmp_path).write(SUITE)
    project.write({"engines/x.yaml": "engine: scripted\n", "engines/y.yaml": "engine: scripted\n"})
    (project.root / "cases").mkdir()
    done = project.run("run", "s", "-k", "plain", "-e", "x", "-e", "y", "--out", "r")
    assert done.exit_code == 0, done.stderr

    project.run("export", "r", "--format", "anthropic")

    folders = {path.name for path in (project.root / "r/anthropic").iterdir()}
    assert folders == {"s-x", "s-y"}
    assert len(runs_of(project.root / "r/anthropic/s-x")) == 1
