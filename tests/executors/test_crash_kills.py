"""kill -9, again and again, at moments that nobody chose: the run comes out as if undisturbed."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.crashes import differences, finished, missing_blobs
from tests.support.killing import killed
from tests.support.project import Project

KILLS = 8
CASES = 8
CASE = """
    id: {name}
    tags: [crash]
    context: {{files: {{"seed.txt": "{name}"}}}}
    input:
      turns:
        - content: count for {name}
          capture: [{{variable: count, pattern: '(\\d+) files'}}]
          assertions: [{{contains: files}}]
        - content: write <<count>>
          post_condition: {{must_contain_any: [wrote]}}
          assertions: [{{tool_called: {{kind: write}}}}]
        - content: finish
          assertions:
            - prompt: say more
              assertions: [{{contains: more}}]
              contains: {follow_up}
    assertions: [{{files_exist: [out.txt]}}, {{contains: done}}]
    scripted:
      - when: say more
        say: there is more
      - turn: 1
        steps: [{{run: "echo {name} 1 >> {log}"}}, {{delay: 0.05}}]
        say: "there are {number} files"
      - turn: 2
        steps: [{{write: {{path: out.txt, content: "{name}"}}}}, {{run: "echo {name} 2 >> {log}"}}]
        say: wrote it
      - turn: 3
        steps: [{{delay: 0.05}}, {{run: "echo {name} 3 >> {log}"}}]
        say: done with {name}
    """
RETRIED = """
    id: {name}
    input: {{turns: [one, two]}}
    assertions: [{{contains: done}}]
    scripted:
      - turn: 1
        say: one
      - turn: 2
        misbehave: {{error: model_error, times: 1}}
        steps: [{{run: "echo {name} 3 >> {log}"}}]
        say: done
    """


def make_suite(project: Project, log: Path) -> None:
    """Conversations with captures, files, gates, follow-ups, retries and dependencies."""
    retries = "cases: {retry_policy: {max_retries: 1, retry_on: [model_error]}}\n"
    files = {"eval.yaml": "name: crashes\n" + retries}
    for number in range(CASES):
        name = f"c{number}"
        says = "done" if number % 2 else "nothing of the kind"
        files[f"{name}.yaml"] = CASE.format(name=name, number=number, log=log, follow_up=says)
    files["again.yaml"] = RETRIED.format(name="again", log=log)
    files["after.yaml"] = (
        "id: after\ndepends_on: [c1]\ninput: {prompt: go}\n"
        "assertions: [{contains: 'no'}]\nscripted: [{say: yes}]\n"
    )
    project.write(files)


@pytest.mark.slow
def test_however_often_it_is_killed_the_run_is_that_of_an_undisturbed_one(
    project: Project, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    log.touch()
    make_suite(project, log)
    calm = project.run("run", ".", "-j", "4", "--out", "calm", "--quiet")
    assert calm.exit_code == 1, calm.stderr
    log.write_text("")

    lots = random.Random(20261121)
    wild = project.root / "wild"
    kept: dict[str, bytes] = {}
    sides: dict[str, Counter[str]] = {}
    kills = 0
    while kills < KILLS:
        arguments = ["--resume", "wild"] if (wild / "run.json").exists() else [".", "--out", "wild"]
        kills += killed(project, wild, ["run", *arguments, "-j", "4", "--quiet"], lots)
        now = finished(wild)
        assert {name: now.get(name) for name in kept} == kept, "a finished trial changed"
        kept = now
        ran = effects(log)
        for name in (Path(record).parts[1] for record in now):
            sides.setdefault(name, ran[name])

    outcome = project.run("run", "--resume", "wild", "-j", "4", "--json")
    assert outcome.exit_code == 1, outcome.stderr
    assert differences(project.root / "calm", wild) == ""
    assert {name: finished(wild)[name] for name in kept} == kept
    ran = effects(log)
    assert {name: ran[name] for name in sides} == sides, "a finished trial ran again"
    assert missing_blobs(wild) == []
    assert not (wild / "scratch").is_symlink()


def effects(log: Path) -> dict[str, Counter[str]]:
    """By case, what its agents did outside of their workspaces: each turn, how often."""
    found: dict[str, Counter[str]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        name, turn = line.split()
        found.setdefault(name, Counter())[turn] += 1
    names = [*(f"c{n}" for n in range(CASES)), "again", "after"]
    return {name: found.get(name, Counter()) for name in names}
