"""What a later start of a run finds and refuses; conversations go on with their next turn."""

from __future__ import annotations

import json
import re
import signal
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from skillup.schema.record import Checkpoint
from skillup.store import RunDirectory
from tests.support.differences import differences
from tests.support.exported import exported
from tests.support.moody import set_mood
from tests.support.project import GUARD_SECONDS, Project, wait_until
from tests.support.stored import change

JUDGED = {
    "eval.yaml": "name: s\n",
    "cases/a.yaml": """
        input: {prompt: x}
        assertions: [{contains: done}]
        scripted: [{steps: [{run: "ALTER"}], say: done}]
        """,
    "cases/b.yaml": """
        depends_on: [a]
        input: {prompt: x}
        assertions: [CHECK]
        scripted:  # what a left is on the disk by then
          - {steps: [{run: "test -e 'RESUMED' || { sleep 1; kill -9 $(cat 'PID'); }"}], say: wrong}
        """,
}


def test_a_run_that_is_finished_runs_nothing_again(project: Project, tmp_path: Path) -> None:
    case = JUDGED["cases/a.yaml"].replace("ALTER", f"echo asked >> '{tmp_path}/log.txt'")
    project.write({"eval.yaml": "name: s\n", "a.yaml": case, "b.yaml": case})
    first = project.run_json(".", "--out", "out")
    again = project.run("run", "--resume", "out", "--json")
    assert (again.exit_code, again.data["cases"]) == (0, first["cases"])
    assert (tmp_path / "log.txt").read_text() == "asked\n" * 2

    damage = "UPDATE attempts SET record = substr(record, 1, 9) WHERE job LIKE 'a/%'"
    change(project.root / "out", damage)
    assert project.run("run", "--resume", "out", "--json").exit_code == 0
    assert (tmp_path / "log.txt").read_text() == "asked\n" * 3, "but one whose record is damaged"


GOLDEN = "{golden_file: golden.txt}"


@pytest.mark.parametrize(
    ("file", "content", "check", "alter"),
    [
        ("golden.txt", "right\n", GOLDEN, "echo wrong > 'FILE'"),
        ("golden.txt", "right\n", GOLDEN, "rm 'FILE'"),
        ("judge.sh", "exit 1\n", "{script: {path: judge.sh}}", "echo exit 0 > 'FILE'"),
    ],
)
def test_what_trials_are_judged_by_is_the_same_after_resuming(
    project: Project, file: str, content: str, check: str, alter: str
) -> None:
    """S8: a golden file that an agent edited counted as soon as the run was resumed."""
    judged, pid, resumed = (project.root / name for name in (file, "pid", "resumed"))
    texts = {"ALTER": alter, "CHECK": check, "RESUMED": resumed, "PID": pid, "FILE": judged}
    files = {file: content, **JUDGED}
    for word, text in texts.items():
        files = {name: one.replace(word, str(text)) for name, one in files.items()}
    project.write(files)
    with project.start("run", ".", "--out", "out") as process:
        pid.write_text(str(process.pid))
        process.wait(GUARD_SECONDS)
    assert [event["job"][0] for event in project.journal("trial_finished", run="out")] == ["a"]
    resumed.touch()

    refused = project.run("run", "--resume", "out", "--json")
    assert refused.exit_code == 2, refused.stderr
    assert f"{file}, which b is judged by, is not what it was" in refused.stderr
    assert "skillup judge RUN --cases" in refused.stderr
    assert project.run("judge", "out", "--cases", "cases", "--json").data["summary"]["pass"] == 1

    judged.write_text(content)
    again = project.run("run", "--resume", "out", "--json")
    statuses = {case["case_id"]: case["status"] for case in again.data["cases"]}
    assert statuses == {"a": "PASS", "b": "FAIL"}


def test_an_agent_that_writes_into_the_run_ends_it_without_a_verdict(project: Project) -> None:
    """S8: the rest of the run believed any record, and a forged one ended it."""
    out = project.root / "out"
    forge = (
        "import sqlite3; file = sqlite3.connect('run.sqlite'); "
        "sql = 'UPDATE attempts SET record = (SELECT grade FROM attempts)'; "
        "file.execute(sql); file.commit()"
    )
    alter = json.dumps(f'cd {out} && {sys.executable} -c "{forge}"')
    first = JUDGED["cases/a.yaml"].replace("ALTER", ":")
    forger = "depends_on: [z]\n" + textwrap.dedent(JUDGED["cases/a.yaml"]).replace('"ALTER"', alter)
    project.write({"eval.yaml": "name: s\n", "z.yaml": first, "a.yaml": forger})
    outcome = project.run("run", ".", "--out", "out", "--json")
    assert outcome.exit_code == 3, outcome.stderr
    assert "was changed by another program while the run went on" in outcome.stderr
    assert "itself failed" not in outcome.stderr
    assert not (out / "result.json").exists()
    assert "changed by another program" in project.run("run", "--resume", "out").stderr


# A run that ended in the middle of conversations goes on with the next turn of each.

JOB = "a/moody/with_skill/1"
TURNS = """
    input:
      turns:
        - content: one
          capture: [{variable: word, pattern: 'is (\\w+)'}]
        - content: two <<word>>
        - content: three
        - content: four
    assertions: [{tool_called: {kind: write}}, {contains: {all: ["one, two walrus, three"]}}]
    scripted:
      - {turn: 1, say: it is walrus, steps: [{write: {path: a.txt, content: a}}]}
      - {turn: 2, say: ok, steps: [{run: "echo b > b.txt; git init -q ."}]}
      - {turn: 3, say: ok}
      - {turn: 4, say: "{{turns.1.user}}, {{turns.2.user}}, {{turns.3.user}}"}
    """


def conversation(project: Project, case: str = TURNS) -> None:
    project.write({"eval.yaml": "name: d\n", "a.yaml": case})


def scratch_of(run: Path) -> Path:
    (found,) = (run / "scratch").resolve().iterdir()
    return found


@pytest.fixture
def calm(project: Project) -> Path:
    """An undisturbed run."""
    conversation(project)
    set_mood(project)
    result = project.run_json(".", "-e", "moody", "--out", "calm")
    assert result["summary"]["pass"] == 1, result["cases"]
    return project.root / "calm"


def is_at(run: Path, turn: int) -> bool:
    """Whether its agent was asked so, and what came before is on the disk."""
    sessions, asked = "scratch/*/home/scripted-agent/*/*.jsonl", f'"user", "turn": {turn},'
    if not any(asked in path.read_text() for path in run.glob(sessions)):
        return False
    kept = checkpoint(run)
    return kept is not None and len(kept.record.turns) == turn - 1


def killed_in_turn(project: Project, turn: int, number: int = signal.SIGKILL) -> Path:
    """A run that was ended while its agent was at `turn`."""
    conversation(project)
    set_mood(project, turn, hang=True)
    run = project.root / "out"
    with project.start("run", ".", "-e", "moody", "--out", "out") as process:
        wait_until(lambda: is_at(run, turn), process)
        process.send_signal(number)
        process.communicate(timeout=GUARD_SECONDS)
    set_mood(project)
    return run


def streams_of_turns(run: Path, turns: str) -> dict[str, bytes]:
    raw = exported(run) / "trials" / JOB / "raw"
    return {path.name: path.read_bytes() for path in raw.glob(f"turn-0[{turns}].*")}


def checkpoint(run: Path) -> Checkpoint | None:
    with RunDirectory.open(run) as directory:
        return directory.read_checkpoint(JOB)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_turn_3_it_goes_on_with_turn_3(project: Project, calm: Path, number: int) -> None:
    run = killed_in_turn(project, 3, number)
    kept = streams_of_turns(run, "12")
    assert len(kept) == 4
    outcome = project.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert differences(calm, run) == ""
    (found,) = project.journal("trial_continued", run="out")
    assert (found["job"], found["after_turn"]) == (JOB, 2)
    assert streams_of_turns(run, "12") == kept
    record = project.record(JOB, run="out")
    assert record["notes"] == [
        "resumed after turn 2: turns 1–2 were run by an earlier start of the run"
    ]
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True, True]
    assert len({turn["session_id"] for turn in record["turns"]}) == 1
    assert checkpoint(run) is None
    assert not (run / "scratch").exists()


def changed_workspace(run: Path, project: Project) -> None:
    (scratch_of(run) / "workspace" / "a.txt").write_text("someone else's", encoding="utf-8")


def changed_git(run: Path, project: Project) -> None:
    (scratch_of(run) / "workspace" / ".git" / "HEAD").write_text("ref: x\n", encoding="utf-8")


def lost_scratch(run: Path, project: Project) -> None:
    scratch = scratch_of(run)
    scratch.rename(scratch.with_name("elsewhere"))


def other_session(run: Path, project: Project) -> None:
    for file in (scratch_of(run) / "home").rglob("*.jsonl"):
        file.write_bytes(file.read_bytes().replace(b'"', b"'", 1))


def torn_checkpoint(run: Path, project: Project) -> None:
    change(run, "UPDATE attempts SET checkpoint = substr(checkpoint, 1, length(checkpoint) - 20)")


def other_case(run: Path, project: Project) -> None:
    conversation(project, TURNS.replace("content: three", "content: trois"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disturb", "why"),
    [
        (changed_workspace, "the workspace was changed meanwhile"),
        (changed_git, "the workspace was changed meanwhile"),
        (lost_scratch, "its scratch directory is gone"),
        (other_session, "the file of session ID does not hold exactly its turns"),
        (other_case, "the case, its variables or the engine were changed since"),
        (torn_checkpoint, None),
    ],
)
def test_if_anything_is_not_as_it_was_it_begins_anew_and_says_why(
    project: Project, disturb: Any, why: str | None
) -> None:
    conversation(project)
    set_mood(project, 3, error="quota")
    project.run("run", ".", "-e", "moody", "--out", "out")
    set_mood(project)
    run = project.root / "out"
    disturb(run, project)
    project.run("run", "--resume", "out")
    record = project.record(JOB, run="out")
    expected = f"begun anew with turn 1, not resumed after turn 2: {why}"
    notes = [re.sub(r"session \S+", "session ID", note) for note in record["notes"]]
    assert notes == ([expected] if why else [])
    assert [turn["status"] for turn in record["turns"]] == ["completed"] * 4
    assert not project.journal("trial_continued", run="out")
    trial = exported(run) / "trials" / JOB
    assert (trial / "raw.attempt-1" / "turn-02.stdout.jsonl").read_bytes()
    assert (trial / "attempt-1.json").exists() == (why is not None)


@pytest.mark.slow
def test_a_quota_ends_the_run_and_resuming_goes_on_with_the_next_turn(
    project: Project, calm: Path
) -> None:
    conversation(project)
    set_mood(project, 3, error="quota")
    outcome = project.run("run", ".", "-e", "moody", "--out", "out", "--json")
    run = project.root / "out"
    assert outcome.data["cases"] == []
    assert [job["job"] if isinstance(job, dict) else job for job in outcome.data["not_run"]]
    assert outcome.data["stopped"]["kind"] == "quota"
    assert "asked for quota" in outcome.data["stopped"]["message"]
    assert outcome.exit_code not in (0, 2)
    assert [e["job"] for e in project.journal("trial_left", run="out")] == [JOB]
    assert (scratch_of(run) / "home").is_dir()
    # Still none: it is left again, at the same turn.
    again = project.run("run", "--resume", "out", "--json")
    assert again.data["stopped"]["kind"] == "quota"
    set_mood(project)
    outcome = project.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert differences(calm, run) == ""
    assert [e["after_turn"] for e in project.journal("trial_continued", run="out")] == [2, 2]
    assert not (run / "scratch").exists()


def test_where_a_variable_holds_a_secret_there_is_no_checkpoint(project: Project) -> None:
    conversation(project)
    set_mood(project, 3, error="quota")
    given = ["-e", "moody", "--var", "other=walrus-0123456789", "--out", "out"]
    project.run("run", ".", *given, env={"MY_API_KEY": "walrus-0123456789"})
    assert checkpoint(project.root / "out") is None
    assert not (project.root / "out" / "scratch").exists()
