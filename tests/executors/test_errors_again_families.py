"""`--retry-errors` where trials share turns, and where they are repeated until it is decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.moody import set_mood
from tests.support.project import Outcome, Project

FAMILY = """
    input:
      turns:
        - begin
        - content: go on
          branches:
            - name: deep
              turns:
                - content: deeper
                  branches: [{name: x, turns: [x]}, {name: y, turns: [y]}]
            - {name: flat, turns: [flat]}
        - last
    assertions: [{contains: fine}]
    scripted:
      - {when: ^begin, steps: [{run: "echo begin >> LOG"}], say: fine}
      - {when: ^go, steps: [{run: "echo go >> LOG"}], say: fine}
      - {when: ^deeper, steps: [{run: "echo deeper >> LOG"}], say: fine}
      - {when: ^x, say: fine}
      - {when: ^y, say: fine}
      - {when: ^flat, say: fine}
      - {when: ^last, say: fine}
    """
FIRST = "c/moody/with_skill/1"
TURNS = {"begin": 1, "go": 2, "deeper": 3, "x": 4, "y": 4, "flat": 3, "last": 3}
"""By the messages, which turn of their path they are."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where turns that are shared say that they ran."""
    return tmp_path / "log.txt"


def failing(project: Project, log: Path, message: str) -> None:
    """The moods of the agent are at `message` from now on; there is a run `calm` without any."""
    text = FAMILY.replace("LOG", str(log))
    text = text.replace(f"when: ^{message},", f"when: ^{message}, turn: {TURNS[message]},")
    project.write({"eval.yaml": "name: d\n", "c.yaml": text})
    set_mood(project)
    assert project.run("run", ".", "-e", "moody", "--out", "calm", "--quiet").exit_code == 0
    log.unlink()


def resume(project: Project, *arguments: str) -> Outcome:
    outcome = project.run("run", "--resume", "out", "--json", *arguments)
    assert outcome.exit_code == 0, outcome.stderr
    return outcome


@pytest.mark.slow
def test_where_shared_turns_met_an_error_every_trial_has_their_streams(
    project: Project, log: Path
) -> None:
    failing(project, log, "go")
    set_mood(project, 2, error="auth")
    project.run_json(".", "-e", "moody", "--out", "out")
    trials = project.root / "out" / "trials"
    first = {path.name: path.read_bytes() for path in (trials / FIRST / "raw").iterdir()}
    assert {"turn-01.stdout.jsonl", "turn-02.stdout.jsonl"} <= first.keys()
    for case in ("c/deep/x", "c/deep/y", "c/flat"):
        raw = trials / case / "moody/with_skill/1/raw"
        assert {path.name: path.read_bytes() for path in raw.iterdir()} == first


REPEATED = """
    input: {prompt: hi}
    assertions: [{contains: fine}]
    scripted: [{turn: 1, probability: 0.2, say: fine}, {say: fine}]
    """
MANY = ("-e", "moody", "--trials", "8", "--until-decided", "--pass-rate", "0.5")


def repeated(project: Project, case: str) -> Outcome:
    """Eight trials at once of a case that five passes decide; lots say which of them fail."""
    project.write({"eval.yaml": "name: d\n", f"{case}.yaml": REPEATED})
    set_mood(project, 1, error="auth")
    outcome = project.run("run", ".", *MANY, "-j", "8", "--out", "out", "--json")
    set_mood(project)
    return outcome


def failed_trials(outcome: Outcome) -> list[int]:
    return [case["trial"] for case in outcome.data["cases"] if case["status"] == "ERROR"]


def decision(outcome: Outcome) -> tuple[str, int]:
    (case,) = outcome.data["analysis"]["cases"]
    return case["decision"]["verdict"], case["decision"]["trials"]


def test_what_a_case_was_decided_without_is_taken_back_and_does_not_run_again(
    project: Project,
) -> None:
    first = repeated(project, "e4")
    assert failed_trials(first) == [7, 8]
    assert decision(first) == ("above", 5)
    again = resume(project, "--retry-errors")
    text = "run again: 2 trials that met an error (auth ×2)"
    assert text in again.stderr
    assert again.data["not_needed"] == [f"e4/moody/with_skill/{n}" for n in (7, 8)]
    assert (again.data["summary"]["pass"], decision(again)) == (6, ("above", 5))
    assert len(list((project.root / "out/trials/e4").glob("*/*/*/attempt-1.json"))) == 2


def test_a_trial_that_may_decide_runs_again_and_counts_in_its_place(project: Project) -> None:
    first = repeated(project, "late")
    assert failed_trials(first) == [4, 5]
    assert decision(first) == ("above", 5)
    again = resume(project, "--retry-errors")
    assert again.data["not_needed"] == []
    assert again.data["summary"]["pass"] == 8
    lines = (project.root / "out/events.jsonl").read_text(encoding="utf-8").splitlines()
    decided = [e for e in map(json.loads, lines) if e["event"] == "case_decided"]
    assert [(e["verdict"], e["trials"]) for e in decided] == [("above", 5), ("above", 5)]
