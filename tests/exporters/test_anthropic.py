"""A run as a workspace of Anthropic's skill-creator."""

from __future__ import annotations

import json
import re
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
    broken = next(
        home
        for home in exported.glob("eval-*")
        if read(home / "eval_metadata.json")["eval_name"] == "broken"
    )

    assert [path.name for path in broken.iterdir()] == ["eval_metadata.json"]
    notes = read(exported / "benchmark.json")["notes"]
    assert len(notes) == 4
    assert all("(broken)" in note and "was not graded: ERROR" in note for note in notes)


def run_of(exported: Path, name: str) -> Path:
    return next(
        home / "with_skill/run-1"
        for home in exported.glob("eval-*")
        if read(home / "eval_metadata.json")["eval_name"] == name
    )


def test_outputs_are_what_the_agent_made_and_its_last_answer(exported: Path) -> None:
    outputs = run_of(exported, "writes") / "outputs"

    files = {p.relative_to(outputs).as_posix() for p in outputs.rglob("*") if p.is_file()}
    assert files == {"out/new.txt", "answer.md", "answer-2.md", "metrics.json"}
    assert (outputs / "answer.md").read_text() == "mine"
    assert (outputs / "answer-2.md").read_text() == "done again"
    metrics = read(outputs / "metrics.json")
    assert metrics["tool_calls"] == {"shell": 1, "write_file": 2}
    assert metrics["errors_encountered"] == 1
    assert sorted(metrics["files_created"]) == ["answer-2.md", "answer.md", "out/new.txt"]


def test_the_viewer_finds_the_prompt_in_the_transcript(exported: Path) -> None:
    transcript = (run_of(exported, "writes") / "transcript.md").read_text()

    found = re.search(r"## Eval Prompt\n\n([\s\S]*?)(?=\n##|$)", transcript)
    assert found is not None
    assert found[1].strip() == "Write it"
    assert "\n ```\n ## done\n [x](y)\n ```\n" in transcript
    assert [*re.finditer("(?m)^## ", transcript)][1:]  # the second message has its own heading


def test_what_people_and_agents_say_is_no_markup_in_the_transcript(tmp_path: Path) -> None:
    evil = "````\n</pre><img src=x onerror=alert(1)>\n![p](http://evil.example/p.png) @torvalds"
    said = json.dumps(evil)
    project = Project(tmp_path).write({"s/eval.yaml": "name: s\n"})
    project.write(
        {
            "s/cases/evil.yaml": f"""
                input: {{turns: [{said}, "## Two\\nof <b>them"]}}
                scripted: [{{turn: 1, say: {said}}}, {{turn: 2, say: "plain words"}}]
                """
        }
    )
    project.run("run", "s", "--out", "r")
    project.run("export", "r", "--format", "anthropic", "--out", "ws")

    [transcript] = [path.read_text() for path in (project.root / "ws").rglob("transcript.md")]
    fenced = "\n".join(f" {line}" for line in ("`````", *evil.splitlines(), "`````"))
    assert transcript.startswith(f"## Eval Prompt\n\n{fenced}\n\n")
    assert f"### Answer (1)\n\n{fenced}\n\n" in transcript
    assert "## Message 2\n\n ```\n ## Two\n of <b>them\n ```\n" in transcript
    assert transcript.endswith("### Answer (2)\n\nplain words\n")


def test_several_engines_have_a_folder_each(tmp_path: Path) -> None:
    project = Project(tmp_path).write(SUITE)
    project.write({"engines/x.yaml": "engine: scripted\n", "engines/y.yaml": "engine: scripted\n"})
    (project.root / "cases").mkdir()
    held = project.run("run", "s", "-k", "plain", "-e", "x", "-e", "y", "--out", "r")
    assert held.exit_code == 0, held.stderr

    project.run("export", "r", "--format", "anthropic")

    folders = {path.name for path in (project.root / "r/anthropic").iterdir()}
    assert folders == {"s-x", "s-y"}
    assert len(runs_of(project.root / "r/anthropic/s-x")) == 1


def test_a_directory_of_the_agent_does_not_stand_where_our_files_go(project: Project) -> None:
    project.write(
        {
            "s/eval.yaml": "name: s\n",
            "s/c.yaml": """
                input: {prompt: x}
                assertions: [{contains: y}]
                scripted:
                  - steps: [{write: {path: metrics.json/mine.txt, content: "in the way"}}]
                    say: y
                """,
        }
    )
    project.run("run", "s", "--out", "r")

    outcome = project.run("export", "r", "--format", "anthropic", "--out", "ws")

    assert outcome.exit_code == 0, outcome.stderr
    assert read(project.root / "ws/eval-1/with_skill/run-1/outputs/metrics.json")
