"""Branches, and trials that share their first turns: these run once, then they fork."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.support.project import Outcome, Project, wait_until

SUITE = "name: d\n"
BRANCHED = """
    input:
      turns:
        - make data
        - content: delete the logs
          capture: [{variable: where, pattern: 'in (?P<value>\\S+)$'}]
          branches:
            - name: refuse
              turns: [{content: "no, keep <<where>>", assertions: [{contains: kept}]}]
              assertions: [{files_exist: [a.log]}]
            - name: agree
              turns: [{content: "yes <<where>>", assertions: [{contains: deleted}]}]
              assertions: [{files_not_exist: [a.log]}]
        - {content: what is there?, assertions: [{contains: a.log}]}
    scripted:
      - {when: make, steps: [{write: {path: a.log, content: x}}, {run: "echo 1 >> LOG"}], say: made}
      - {when: delete, steps: [{run: "echo 2 >> LOG; pwd"}], say: "sure? in {{output}}"}
      - {when: "^no", steps: [{run: ls}], say: "kept {{turns.2.answer}}"}
      - {when: "^yes", steps: [{run: "rm a.log; echo gone > b.txt"}], say: "deleted, turn {{turn}}"}
      - {when: what, steps: [{run: ls}], say: "{{output}}"}
    """
JOBS = ("c", "c/refuse", "c/agree")


def branched(tmp_path: Path) -> str:
    return BRANCHED.replace("LOG", str(tmp_path / "log.txt"))


def shared_turns(tmp_path: Path) -> list[str]:
    """What the turns before the fork left outside of every workspace."""
    log = tmp_path / "log.txt"
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def statuses(outcome: Outcome) -> dict[str, str]:
    return {case["case_id"]: case["status"] for case in outcome.data["cases"]}


def run(project: Project, *arguments: str) -> Outcome:
    return project.run("run", ".", "--out", "out", "--json", *arguments)


def record(project: Project, case: str, trial: int = 1) -> Any:
    return project.record(f"{case}/scripted/with_skill/{trial}", run="out")


def without(turn: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in turn.items() if key not in keys}


def test_the_turns_before_a_fork_run_once_and_each_branch_goes_on_from_them(
    project: Project, tmp_path: Path
) -> None:
    project.write({"eval.yaml": SUITE, "c.yaml": branched(tmp_path)})
    outcome = run(project, "-j", "4")
    assert statuses(outcome) == dict.fromkeys(JOBS, "PASS"), outcome.data
    assert shared_turns(tmp_path) == ["1", "2"]
    records = [record(project, case) for case in JOBS]
    shared = [[without(turn, "counted_by") for turn in one["turns"][:2]] for one in records]
    assert shared[0] == shared[1] == shared[2]
    owners = [[turn["counted_by"] for turn in one["turns"]] for one in records]
    job = "c/scripted/with_skill/1"
    assert owners == [[None, None, None], [job, job, None], [job, job, None]]
    assert {one["branch_of"] for one in records} == {"c"}
    assert len({one["session_id"] for one in records}) == 3
    assert all(one["turns"][2]["session_verified"] for one in records)

    # Each has its own copy of the workspace.
    _, refused, agreed = records
    assert refused["turns"][2]["changes"]["deleted"] == []
    assert agreed["turns"][2]["changes"]["deleted"] == ["a.log"]
    assert agreed["turns"][2]["changes"]["added"] == ["b.txt"]
    assert refused["initial_files"] == agreed["initial_files"] == {}

    # A path of the workspace means that copy, and the session knows no other.
    before, after = refused["turns"][1]["captures"]["where"], refused["variables"]["where"]
    assert before != after
    assert refused["turns"][2]["content"] == f"no, keep {after}"
    assert refused["turns"][2]["response"] == f"kept sure? in {after}"
    assert any("<<where>>" in note for note in refused["notes"])

    # What is shared counts once: 2 shared turns and 3.
    assert outcome.data["summary"]["usage"]["input_tokens"] == 500
    grades = outcome.data["cases"]
    assert [grade["usage"]["input_tokens"] for grade in grades] == [300, 100, 100]
    assert all(turn["usage"]["input_tokens"] == 100 for g in grades for turn in g["turns"])


def test_branches_may_branch_again(project: Project, tmp_path: Path) -> None:
    project.write(
        {
            "eval.yaml": SUITE,
            "c.yaml": f"""
                input:
                  turns:
                    - content: one
                      branches:
                        - name: a
                          turns:
                            - content: two
                              branches:
                                - {{name: x, turns: [three x]}}
                                - {{name: y, turns: [three y, four y]}}
                        - {{name: b, turns: [two b]}}
                assertions: [{{contains: ok}}]
                scripted:
                  - when: ^three
                    say: "ok {{{{turns.1.user}}}} {{{{turns.2.user}}}} {{{{user}}}}"
                  - steps: [{{run: "echo {{{{user}}}} >> {tmp_path}/log.txt"}}]
                    say: ok
                """,
        }
    )
    outcome = run(project)
    assert statuses(outcome) == dict.fromkeys(["c/a/x", "c/a/y", "c/b"], "PASS")
    assert sorted(shared_turns(tmp_path)) == sorted(["one", "two", "two", "b", "four", "y"])
    turns = record(project, "c/a/y")["turns"]
    assert [turn["content"] for turn in turns] == ["one", "two", "three y", "four y"]
    assert turns[2]["response"] == "ok one two three y"
    assert outcome.data["summary"]["usage"]["input_tokens"] == 600


def test_an_error_before_the_fork_is_an_error_of_every_branch(
    project: Project, tmp_path: Path
) -> None:
    text = branched(tmp_path).replace("say: made}", "say: made, misbehave: {exit_code: 1}}")
    project.write({"eval.yaml": SUITE, "c.yaml": text})
    outcome = run(project)
    assert outcome.exit_code == 3
    assert statuses(outcome) == dict.fromkeys(JOBS, "ERROR")
    assert shared_turns(tmp_path) == ["1"]
    for case in JOBS:
        turns = record(project, case)["turns"]
        assert [turn["status"] for turn in turns] == ["error", "skipped", "skipped"]
    assert record(project, "c/agree")["turns"][2]["content"] == "yes <<where>>"


RETRY = "    retry_policy: {max_retries: 2, retry_on: [crash]}\n"


def test_a_branch_that_is_tried_again_runs_by_itself(project: Project, tmp_path: Path) -> None:
    text = branched(tmp_path).replace(
        '{{turn}}"}', '{{turn}}", misbehave: {exit_code: 1, times: 1}}'
    )
    project.write({"eval.yaml": SUITE, "c.yaml": RETRY + text})
    outcome = run(project)
    assert statuses(outcome) == dict.fromkeys(JOBS, "PASS")
    assert shared_turns(tmp_path) == ["1", "2", "1", "2"]
    one = record(project, "c/agree")
    assert one["attempt"] == 2
    assert [turn["counted_by"] for turn in one["turns"]] == [None, None, None]
    assert any("ran once more" in note for note in one["notes"])
    # The first attempt's shared turns are counted by one of the others.
    assert outcome.data["summary"]["usage"]["input_tokens"] == 700


def test_shared_turns_that_are_tried_again_are_shared_again(
    project: Project, tmp_path: Path
) -> None:
    text = branched(tmp_path).replace(
        "say: made}", "say: made, misbehave: {exit_code: 1, times: 1}}"
    )
    project.write({"eval.yaml": SUITE, "c.yaml": RETRY + text})
    outcome = run(project)
    assert statuses(outcome) == dict.fromkeys(JOBS, "PASS")
    assert shared_turns(tmp_path) == ["1", "1", "2"]
    assert {record(project, case)["attempt"] for case in JOBS} == {2}
    assert outcome.data["summary"]["usage"]["input_tokens"] == 500


def finished(project: Project) -> set[str]:
    return {event["job"].split("/s")[0] for event in project.journal("trial_finished", run="out")}


def test_an_interrupted_branch_leaves_no_record_and_runs_later(
    project: Project, tmp_path: Path
) -> None:
    flag = tmp_path / "go-on"
    step = f'{{run: "while ! test -e {flag}; do sleep 0.05; done"}}'
    text = branched(tmp_path).replace('{run: "rm a.log', step + ', {run: "rm a.log')
    project.write({"eval.yaml": SUITE, "c.yaml": text})
    with project.start("run", ".", "--out", "out", "-j", "4") as process:
        wait_until((project.root / "out/run.sqlite").exists, process)
        wait_until(lambda: finished(project) == set(JOBS[:2]), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert finished(project) == set(JOBS[:2])
    flag.touch()
    outcome = project.run("run", "--resume", "out", "--json")
    assert statuses(outcome) == dict.fromkeys(JOBS, "PASS")
    # The shared turns ran once more, and it counts them: what ran before is kept as it is.
    assert [turn["counted_by"] for turn in record(project, "c/agree")["turns"]] == [None] * 3
    assert shared_turns(tmp_path) == ["1", "2", "1", "2"]
    assert outcome.data["summary"]["usage"]["input_tokens"] == 700


TWO = """\
input: {turns: [{content: hi, branches: [{name: x, turns: [x]}, {name: y, turns: [y]}]}]}
assertions: [{contains: ok}]
scripted: [{say: ok}]
"""


def test_what_depends_on_a_case_with_branches_waits_for_all_of_them(project: Project) -> None:
    project.write(
        {
            "eval.yaml": SUITE,
            "a.yaml": "depends_on: [c]\n" + TWO,
            "b.yaml": """
                depends_on: [a/x]
                input: {prompt: hi}
                assertions: [{contains: ok}]
                scripted: [{say: ok}]
                """,
            "c.yaml": TWO.replace("[{say", "[{when: x, say: bad}, {say"),
        }
    )
    outcome = run(project)
    assert statuses(outcome) == {
        "c/x": "FAIL", "c/y": "PASS", "a/x": "SKIP", "a/y": "SKIP", "b": "SKIP",
    }  # fmt: skip


COUNTED = """
    input: {{turns: [one, two, three]}}
    assertions: [{{contains: ok}}]
    scripted:
      - steps: [{{run: "echo {{{{user}}}} >> {log}"}}]
        say: ok
    """


def test_trials_share_the_turns_before_the_one_they_begin_with(
    project: Project, tmp_path: Path
) -> None:
    project.write({"eval.yaml": SUITE, "c.yaml": COUNTED.format(log=tmp_path / "log.txt")})
    outcome = run(project, "--trials", "3", "--trials-from-turn", "3")
    assert [case["trial"] for case in outcome.data["cases"]] == [1, 2, 3]
    assert outcome.data["summary"]["pass"] == 3
    assert shared_turns(tmp_path) == ["one", "two", "three", "three", "three"]
    assert outcome.data["summary"]["usage"]["input_tokens"] == 500
    owners = [record(project, "c", n)["turns"][1]["counted_by"] for n in (1, 2, 3)]
    assert owners == [None, "c/scripted/with_skill/1", "c/scripted/with_skill/1"]


def test_trials_of_branches_share_what_both_allow(project: Project, tmp_path: Path) -> None:
    project.write({"eval.yaml": SUITE, "c.yaml": branched(tmp_path)})
    outcome = run(project, "--trials", "2", "--trials-from-turn", "2")
    assert outcome.data["summary"]["pass"] == 6
    # Turn 1 once for all; turn 2 once for each trial, whose branches share it.
    assert shared_turns(tmp_path) == ["1", "2", "2"]
