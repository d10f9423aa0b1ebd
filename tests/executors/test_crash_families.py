"""Families, killed at moments that nobody chose: what they share is whose it always was."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support.crashes import differences, finished, missing_blobs
from tests.support.killing import killed
from tests.support.project import Project

KILLS = 5
FILES = {
    "eval.yaml": "name: families\ncases: {retry_policy: {max_retries: 1, retry_on: [crash]}}\n",
    # The path that comes first in the plan ends last, and the last one first.
    "deep.yaml": """
        context: {files: {a.log: x}}
        input:
          turns:
            - content: where?
              capture: [{variable: here, pattern: 'in (?P<value>\\S+)$'}]
              branches:
                - name: long
                  turns:
                    - content: slowly
                      branches:
                        - {name: one, turns: [slowly <<here>>]}
                        - {name: two, turns: [slowly, crash]}
                - {name: short, turns: [quickly]}
            - slowly
        assertions: [{contains: fine}, {files_exist: [a.log]}]
        scripted:
          - {when: ^where, steps: [{run: pwd}], say: "in {{output}}"}
          - {when: ^slowly, steps: [{delay: 0.4}], say: fine}
          - {when: ^crash, misbehave: {exit_code: 1, times: 1}, say: fine}
          - {say: fine}
        """,
    "shaky.yaml": """
        input:
          turns:
            - content: crash
              branches: [{name: a, turns: [slowly]}, {name: b, turns: [quickly]}]
        assertions: [{contains: fine}]
        scripted:
          - {when: ^crash, misbehave: {exit_code: 1, times: 1}, say: fine}
          - {when: ^slowly, steps: [{delay: 0.5}], say: fine}
          - {say: fine}
        """,
}


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--trials", "2", "--trials-from-turn", "2"]])
def test_however_often_it_is_killed_what_is_shared_has_the_same_owner(
    project: Project, more: list[str]
) -> None:
    project.write(FILES)
    begin = ["run", ".", *more, "-j", "4", "--quiet", "--out"]
    calm = project.run(*begin, "calm")
    assert calm.exit_code == 0, calm.stderr
    lots = random.Random(20261121)
    wild = project.root / "wild"
    for _ in range(KILLS):
        again = ["run", "--resume", "wild", "-j", "4", "--quiet"]
        arguments = again if (wild / "run.json").exists() else [*begin, "wild"]
        killed(project, wild, arguments, lots, longest=1.2)
    outcome = project.run("run", "--resume", "wild", "-j", "4", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    found = differences(project.root / "calm", wild)
    assert not found, found
    assert missing_blobs(wild) == []


def forks(run: Path) -> dict[str, tuple[str, int]]:
    """By job, what it went on from, as the journal said last."""
    events = map(json.loads, (run / "events.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        event["job"]: (event["parent"], event["after_turn"])
        for event in events
        if event["event"] == "trial_forked"
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "lost",
    [
        ("deep", "shaky/b"),
        ("deep/long/two", "deep/short"),
    ],
)
def test_whichever_trials_are_lost_the_result_is_the_same(
    project: Project, lost: tuple[str, ...]
) -> None:
    project.write(FILES)
    for out in ("calm", "wild"):
        project.run("run", ".", "--out", out, "-j", "4", "--quiet")
    assert len(finished(project.root / "wild")) == 6
    for case in lost:
        trial = project.root / "wild/trials" / case / "scripted/with_skill/1"
        for file in ("record.json", "grading.json"):
            (trial / file).unlink()
        for attempt in trial.glob("attempt-*.json"):
            attempt.unlink()
    outcome = project.run("run", "--resume", "wild", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert forks(project.root / "wild") == forks(project.root / "calm")
    found = differences(project.root / "calm", project.root / "wild")
    assert not found, found
