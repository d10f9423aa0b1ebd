"""`skillup show` and `skillup view`, and how runs are named everywhere."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from skillup.app.runs import shown_trials
from skillup.store import RunDirectory
from tests.support.exported import exported
from tests.support.large_runs import write_large_run
from tests.support.project import Project, wait_until
from tests.support.stored import a_record, change, edit_stored
from tests.support.viewing import PATIENCE, Viewer, viewing

SUITE = {
    "s/eval.yaml": "name: s\n",
    "s/fails.yaml": r"""
        input:
          turns:
            - content: "Write it.\e[2J"
              assertions:
                - contains: done
                - prompt: Are you sure?
                  assertions: [{contains: sure}]
            - Commit it.
        assertions: [{file_contains: {path: a.md, matches: "^x"}}]
        scripted:
          - steps: [{write: {path: a.md, content: "seen\e]0;t\a"}}, {run: "seq 1 30"}]
            say: "Maybe.\e[31m[/red]"
        """,
    "s/crashes.yaml": """
        input: {turns: [hello, again]}
        assertions: [{contains: x}]
        scripted: [{say: hi, misbehave: {exit_code: 3}}]
        """,
    "s/fine.yaml": "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run with a failure, an error and a pass, each twice."""
    project = Project(tmp_path_factory.mktemp("show")).write(SUITE)
    assert project.run("run", "s", "--trials", "2").exit_code == 3
    return project


def test_alone_it_shows_what_failed_in_the_last_run(finished: Project) -> None:
    outcome = finished.run("show")

    assert outcome.exit_code == 0
    assert outcome.stderr == f"last: .skillup/runs/{finished.latest_run().name}\n"
    heads = [x for x in outcome.stdout.splitlines() if x.startswith(("FAIL", "ERROR", "PASS"))]
    assert [head.split("  ")[:2] for head in heads] == [
        ["ERROR", "crashes #1"],
        ["ERROR", "crashes #2"],
        ["FAIL", "fails #1"],
        ["FAIL", "fails #2"],
    ]


def test_a_conversation_is_told_turn_by_turn_with_its_checks(finished: Project) -> None:
    text = finished.run("show", "last", "fails", "--trial", "1").stdout

    places = [
        text.index(piece)
        for piece in (
            "turn 1  user\n    Write it.",
            "turn 1  agent calls write_file",
            "    20\n    … 10 lines more\n",
            "turn 1  agent\n    Maybe.",
            "turn 1  files\n    new: a.md",
            # Its details were at the top: it decided.
            'FAILED   contains "done": not found\n',
            "turn 1  user, follow-up\n    Are you sure?",
            "turn 1  checks of the first follow-up\n    FAILED",
            "turn 2  user\n    Commit it.",
            "checks of the conversation\n    FAILED   file_contains a.md",
        )
    ]
    assert places == sorted(places)
    top, _, rest = text.partition("turn 1  user\n")
    assert top.endswith('"done": not found (and 1 more)\n  there    Maybe.␛[31m[/red]\n\n')
    assert "there    Maybe." not in rest.partition("turn 1  user, follow-up")[0]
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[/red]" in text
    assert "#2" not in text


def test_an_error_says_where_the_raw_streams_are_and_what_was_not_sent(finished: Project) -> None:
    text = finished.run("show", "last", "cr*", "--trial", "2").stdout

    assert text.count("error: crash") == 1
    assert text.count("it ended with exit code 3") == 1
    assert text.count("not evaluated  contains") == 1
    assert "FAILED" not in text
    assert text.count("raw stream: turn-01.stdout.jsonl\n") == 1
    (export,) = [x for x in text.splitlines() if x.startswith("all of it, raw streams too: ")]
    assert finished.run(*export.partition("skillup ")[2].split()).exit_code == 0
    trial = finished.root / "DIR/trials/crashes/scripted/with_skill/2"
    assert (trial / "raw/turn-01.stdout.jsonl").is_file()
    assert "what to do: " in text
    assert "turn 2  not sent\n    turn 1 met an error\n" in text


def test_a_setup_that_failed_says_first_what_the_command_said(project: Project) -> None:
    script = "set -e\nseq 1 30\nno-such-program --with x\necho done"
    project.write(
        {
            "s/eval.yaml": "name: s\n",
            "s/a.yaml": f"""
                context: {{setup: [{json.dumps(script)}]}}
                input: {{prompt: hi}}
                assertions: [{{contains: x}}]
                scripted: [{{say: x}}]
                """,
        }
    )
    assert project.run("run", "s").exit_code == 3
    text = project.run("show").stdout

    said = "sh: 3: no-such-program: not found"
    assert f"\n  setup: {said}; `context.setup`: `set -e …` ended" in text
    assert "… 11 lines before\n    12\n" in text  # the end is what tells
    assert '    not evaluated  contains "x"\n' in text


def test_what_a_gate_kept_from_being_evaluated_has_not_failed(project: Project) -> None:
    """U4: it was FAILED in red, each time with the reason of the gate."""
    case = """
        input:
          turns:
            - {content: Go, post_condition: {must_contain_any: [sure]}, assertions: [contains: x]}
            - Go on
        assertions: [{contains: y}]
        scripted: [{say: hi}]
        """
    ran = project.write({"s/eval.yaml": "name: s\n", "s/a.yaml": case}).run("run", "s")
    said = 'turn 1: post-condition not met: must_contain_any "sure": not found\n'
    assert f"a: {said}" in ran.stderr
    text = project.run("show").stdout
    assert (text.count("FAILED"), text.count("not evaluated"), text.count(said)) == (1, 2, 1), text


def test_a_case_that_is_named_is_shown_whatever_it_came_to_or_told_with_what_is_there(
    finished: Project,
) -> None:
    assert finished.run("show", "last", "fine").stdout.count("PASS  fine #") == 2
    assert finished.run("show", "last", "*").stdout.count("all of it, ") == 6
    none = finished.run("show", "last", "fine", "--failed")
    assert none.exit_code == 0
    assert "none of the 2 trials that ended failed" in none.stdout
    assert "skillup show last fine\n" in none.stdout
    for arguments, says in (
        (("nothing",), "no trial of nothing has ended in this run\n  hint: there are: cra"),
        (("fine", "--trial", "3"), "no trial 3 of fine has ended in this run\n"),
    ):
        outcome = finished.run("show", "last", *arguments)
        assert (outcome.exit_code, says in outcome.stderr) == (2, True), outcome.stderr


RETRIED = {
    "s/eval.yaml": "name: s\n",
    "s/again.yaml": """
        input: {prompt: hello}
        assertions: [{contains: hello}]
        retry_policy: {max_retries: 1, retry_on: [crash]}
        scripted: [{say: hello, misbehave: {exit_code: 1, times: 1}}]
        """,
    "s/once.yaml": "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n",
}


def test_a_pass_of_a_second_attempt_does_not_look_like_a_clean_one(project: Project) -> None:
    ended = project.write(RETRIED).run("run", "s", "--report", "markdown")

    assert ended.exit_code == 0, ended.stderr
    passed = [line for line in ended.stderr.splitlines() if line.startswith("PASS")]
    assert [("again" in line, "attempt 2" in line) for line in passed if "again" in line] == [
        (True, True),
        (True, True),
    ]
    assert not any("attempt" in line for line in passed if "once" in line)
    told = "1 trial retried: again (attempt 2)"
    assert f"note: {told}\n" in ended.stderr
    (summary,) = (project.root / ".skillup/runs").glob("*/summary.md")
    assert "| ✅ PASS | again attempt 2 |" in summary.read_text("utf-8")
    assert f"- {told}\n" in summary.read_text("utf-8")

    shown = project.run("show", "last", "again").stdout

    head, met, *_ = shown.splitlines()
    assert head.startswith("PASS  again  1 turn, ")
    assert ", attempt 2, " in head
    assert met.startswith("  attempt 1 was retried: crash: ")
    (kept,) = exported(project.latest_run()).rglob("attempt-1.json")
    assert "again" in kept.parts
    assert "attempt" not in project.run("show", "last", "once").stdout


def test_what_is_no_record_or_no_grade_is_said_and_the_rest_is_shown(project: Project) -> None:
    project.write(SUITE).run("run", "s", "--out", "r")

    def edit(grade: dict[str, Any]) -> None:
        grade["turns"][0]["status"] = 7

    edit_stored(project.root / "r", "crashes/scripted/with_skill/1", edit, "grade")
    change(project.root / "r", "UPDATE attempts SET record = x'00' WHERE job LIKE 'fails/%'")

    shown = project.run("show", "r", "*")

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "no grade  crashes" in shown.stdout
    assert "PASS  fine" in shown.stdout
    assert "its grade is damaged; `skillup run --resume` derives it anew" in shown.stdout
    assert "its record is damaged; `skillup run --resume` runs it anew" in shown.stdout


def test_no_name_in_a_run_of_somebody_else_steers_the_terminal(tmp_path: Path) -> None:
    jobs = ["case/plain/with_skill/1", "case/\x1b]0;title\x07red\x1b[31m/with_skill/1"]
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": jobs}) as run:
        for job in jobs:
            run.write_record(job, a_record())
    _, _, shown = shown_trials(tmp_path / "r", "*", None, only_failed=False)
    assert [one.label for one in shown if not isinstance(one, str)] == ["case plain", "case red"]


# A run is called the same wherever one is taken.

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two runs."""
    found = Project(tmp_path_factory.mktemp("named"))
    found.write({"s/eval.yaml": "name: s\n", "s/a.yaml": CASE})
    for _ in range(2):
        assert found.run("run", "s").exit_code == 0
    return found


@pytest.mark.slow
@pytest.mark.parametrize("verb", [("judge",), ("run", "--resume"), ("show",)])
def test_last_ids_and_their_beginnings_are_runs_everywhere(
    two_runs: Project, verb: tuple[str, ...]
) -> None:
    newest = two_runs.latest_run()
    name = newest.name
    for called in ("last", name, name[:-1], f".skillup/runs/{name}", str(newest / "run.sqlite")):
        outcome = two_runs.run(*verb, called)
        assert outcome.exit_code == 0, (called, outcome.stderr)
    none = two_runs.run(*verb, "zz")
    assert (none.exit_code, "hint: give a run" in none.stderr) == (2, True)
    assert name in none.stderr
    several = two_runs.run(*verb, name[:2])
    assert several.exit_code == 2
    assert f" runs begin with {name[:2]}\n  hint: say more of it: {name[:2]}" in several.stderr


# `skillup view`: what is served, while a run goes on, and how it ends.

SLOW = {
    "s/eval.yaml": "name: s\n",
    "s/c.yaml": """
        input: {turns: [One., Two., Three.]}
        assertions: [{contains: y}]
        scripted:
          - {when: One, say: y}
          - {when: Two, steps: [{run: "until [ -e $GO ]; do sleep 0.1; done"}], say: y}
          - {say: y}
    """,
}


@pytest.fixture
def served(project: Project) -> Project:
    """A workspace with one run."""
    write_large_run(project.root / ".skillup/runs/a", 2, turns=1)
    return project


def _until(viewer: Viewer, run: str, status: str) -> dict[str, object]:
    """The first row of the run, once it has that status."""
    for _ in range(PATIENCE * 10):
        row: dict[str, object] = viewer.get(f"api/runs/{run}/index.json").data["rows"][0]
        if row["status"] == status == "PASS":
            return row
        if row["status"] == status and row["reason"] == "turn 2 is running":
            return row
        time.sleep(0.1)
    raise AssertionError(f"it is not {status}: {row}")


@pytest.mark.slow
def test_a_run_is_shown_while_it_goes_on(tmp_path: Path) -> None:
    served = Project(tmp_path).write(SLOW)
    go = tmp_path / "go"
    served.write({"engines/slow.yaml": f"engine: scripted\nenv: {{GO: {go}}}\n"})
    with served.start("run", "s", "-e", "slow", "--out", "runs/r") as running:
        wait_until((served.root / "runs/r/scratch").exists, running)
        with viewing(served, "runs/r") as viewer:
            row = _until(viewer, "r", "RUNNING")
            assert row["turns"] == [{"status": "completed", "ok": None, "unjudged": True}]
            index = viewer.get("api/runs/r/index.json").data
            assert index["run"]["running"] is True
            assert index["run"]["finished"] is False
            assert viewer.get("api/runs").data["runs"][0]["status"] == "running"
            so_far = viewer.get("api/runs/r/trials/1.json").data
            assert [turn["status"] for turn in so_far["turns"]][:1] == ["completed"]
            before = viewer.get("api/runs/r/stamp").data
            go.touch()
            assert _until(viewer, "r", "PASS")["score"] == 1.0
            assert viewer.get("api/runs/r/stamp").data != before
            running.wait(PATIENCE)
            index = viewer.get("api/runs/r/index.json").data
            assert index["run"]["running"] is False
            assert index["run"]["finished"] is True
            assert len(viewer.get("api/runs/r/trials/1.json").data["turns"]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no run nowhere"),
        (["--port", "99999"], "65535"),
        (["empty"], "holds no runs"),
        (["file.txt"], "holds no runs"),
    ],
)
def test_wrong_uses_are_refused(served: Project, arguments: list[str], said: str) -> None:
    served.write({"empty/x": "", "file.txt": ""})
    outcome = served.run("view", "--no-open", *arguments)
    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert outcome.stdout == ""


def test_ctrl_c_ends_it_at_once_and_without_a_word(served: Project) -> None:
    with viewing(served) as viewer, socket.create_connection(("127.0.0.1", viewer.port)):
        assert viewer.get("api/runs/a/stamp").status == 200
        viewer.process.send_signal(signal.SIGINT)
        out, err = viewer.process.communicate(timeout=PATIENCE)
    assert viewer.process.returncode == 0
    assert out == ""
    assert "Traceback" not in err
