"""A run as a workspace of Anthropic's skill-creator, and what its own tools find in it.

Source: skills/skill-creator/scripts/aggregate_benchmark.py and eval-viewer/generate_review.py in
https://github.com/anthropics/skills.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def runs_of(directory: Path) -> list[dict[str, Any]]:
    """The runs as the aggregator sees them, by configuration, in the order of the names."""
    found: dict[str, list[dict[str, Any]]] = {}
    for home in sorted(directory.glob("eval-*")):
        number = read(home / "eval_metadata.json")["eval_id"]
        for configuration in sorted(p for p in home.iterdir() if list(p.glob("run-*"))):
            runs = found.setdefault(configuration.name, [])
            for run in sorted(configuration.glob("run-*")):
                runs.append(_run(run, number, configuration.name))
    return [run for runs in found.values() for run in runs]


def _run(run: Path, number: int, configuration: str) -> dict[str, Any]:
    grading, timing = read(run / "grading.json"), {}
    seconds = grading.get("timing", {}).get("total_duration_seconds", 0.0)
    tokens = 0
    if seconds == 0.0 and (run / "timing.json").is_file():  # only then is this file looked at
        timing = read(run / "timing.json")
        seconds, tokens = timing.get("total_duration_seconds", 0.0), timing.get("total_tokens", 0)
    metrics = grading.get("execution_metrics", {})
    notes = grading["user_notes_summary"]
    summary = grading["summary"]
    return {
        "eval_id": number,
        "configuration": configuration,
        "run_number": int(run.name.split("-")[1]),
        "result": {
            **{name: summary[name] for name in ("pass_rate", "passed", "failed", "total")},
            "time_seconds": seconds,
            "tokens": tokens or metrics.get("output_chars", 0),
            "tool_calls": metrics.get("total_tool_calls", 0),
            "errors": metrics.get("errors_encountered", 0),
        },
        "expectations": grading["expectations"],
        "notes": [
            n for part in ("uncertainties", "needs_review", "workarounds") for n in notes[part]
        ],
    }


def summary_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for name in dict.fromkeys(run["configuration"] for run in runs):
        results = [run["result"] for run in runs if run["configuration"] == name]
        summary[name] = {
            metric: _spread([result[metric] for result in results])
            for metric in ("pass_rate", "time_seconds", "tokens")
        }
    first, *rest = summary.values()
    delta = {
        metric: first[metric]["mean"] - (rest[0][metric]["mean"] if rest else 0) for metric in first
    }
    forms = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
    summary["delta"] = {metric: format(delta[metric], form) for metric, form in forms.items()}
    return summary


def _spread(values: list[float]) -> dict[str, float]:
    mean, spare = sum(values) / len(values), 0.0
    if len(values) > 1:
        spare = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    spread = {"mean": mean, "stddev": spare, "min": min(values), "max": max(values)}
    return {name: round(value, 4) for name, value in spread.items()}


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
    outputs = home_of(exported, "writes") / "with_skill/run-001/outputs"

    files = {p.relative_to(outputs).as_posix() for p in outputs.rglob("*") if p.is_file()}
    assert files == {"out/new.txt", "answer.md", "answer-2.md"}
    assert (outputs / "answer.md").read_text() == "mine"
    assert (outputs / "answer-2.md").read_text() == "done again"
    metrics = read(outputs.parent / "grading.json")["execution_metrics"]
    assert metrics["tool_calls"] == {"shell": 1, "write_file": 2}
    assert metrics["errors_encountered"] == 1
    prompt = read(outputs.parent / "eval_metadata.json")["prompt"]
    assert prompt == "Turn 1: Write it\n\nTurn 2: Again"


def test_several_engines_have_a_folder_each(project: Project) -> None:
    project.write({**SUITE, **{f"engines/{one}.yaml": "engine: scripted\n" for one in "xy"}})
    (project.root / "cases").mkdir()
    done = project.run("run", "s", "-k", "plain", "-e", "x", "-e", "y", "--out", "r")
    assert done.exit_code == 0, done.stderr

    project.run("export", "r", "--format", "anthropic")

    folders = {path.name for path in (project.root / "r/anthropic").iterdir()}
    assert folders == {"s-x", "s-y"}
    assert len(runs_of(project.root / "r/anthropic/s-x")) == 1
