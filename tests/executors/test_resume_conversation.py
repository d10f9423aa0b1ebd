"""A run that ended in the middle of conversations goes on with the next turn of each."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.moody import set_mood
from tests.support.project import GUARD_SECONDS, Project

JOB = "a/moody/with_skill/1"
CASE = """
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


def suite(project: Project, case: str = CASE) -> None:
    project.write({"eval.yaml": "name: d\n", "a.yaml": case})


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


def record_of(run: Path) -> dict[str, Any]:
    found = json.loads((run / "trials" / JOB / "record.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def scratch_of(run: Path) -> Path:
    (found,) = (run / "scratch").resolve().iterdir()
    return found


def without_times(value: Any) -> Any:
    """What must be the same in every run: no ids, no moments, no durations, no word of resuming."""
    if isinstance(value, dict):
        changing = ("run_id", "session_id", "started_at", "duration_ms")
        return {k: without_times(v) for k, v in value.items() if k not in changing}
    return [without_times(v) for v in value] if isinstance(value, list) else value


@pytest.fixture
def calm(project: Project) -> dict[str, Any]:
    """The result of an undisturbed run."""
    suite(project)
    set_mood(project)
    result = project.run_json(".", "-e", "moody", "--out", "calm")
    assert result["summary"]["pass"] == 1, result["cases"]
    assert isinstance(result, dict)
    return result


def wait_until_session_has(run: Path, text: str, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + GUARD_SECONDS / 2
    while not any(
        text in path.read_text() for path in run.glob("scratch/*/home/scripted-agent/*/*.jsonl")
    ):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)


def killed_in_turn(project: Project, turn: int, number: int = signal.SIGKILL) -> Path:
    """A run that was ended while its agent was at `turn`."""
    suite(project)
    set_mood(project, turn, hang=True)
    run = project.root / "out"
    with project.start("run", ".", "-e", "moody", "--out", "out") as process:
        wait_until_session_has(run, f'"user", "turn": {turn},', process)
        process.send_signal(number)
        process.communicate(timeout=GUARD_SECONDS)
    set_mood(project)
    return run


def plain(record: dict[str, Any]) -> Any:
    """Without notes, processes, places, and the digest of a session with its id and path."""
    del record["notes"]
    for turn in record["turns"]:
        turn["process"] = turn["workspace"] = turn["session"]["prefix_sha256"] = None
        turn["session"]["prefix_bytes"] = None
    return without_times(record)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_turn_3_it_goes_on_with_turn_3(
    project: Project, calm: dict[str, Any], number: int
) -> None:
    run = killed_in_turn(project, 3, number)
    kept = {p.name: p.read_bytes() for p in (run / "trials" / JOB / "raw").glob("turn-0[12].*")}
    assert len(kept) == 4
    outcome = project.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert without_times(outcome.data["cases"]) == without_times(calm["cases"])
    found = [e for e in events(run) if e["event"] == "trial_continued"]
    assert [(e["job"], e["after_turn"]) for e in found] == [(JOB, 2)]
    raw = run / "trials" / JOB / "raw"
    assert {p.name: p.read_bytes() for p in raw.glob("turn-0[12].*")} == kept
    record = record_of(run)
    assert record["notes"] == [
        "resumed after turn 2: turns 1–2 were run by an earlier start of the run"
    ]
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True, True]
    assert len({turn["session_id"] for turn in record["turns"]}) == 1
    assert not (run / "trials" / JOB / "checkpoint.json").exists()
    assert not (run / "scratch").exists()
    assert plain(record) == plain(record_of(project.root / "calm"))


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
    path = run / "trials" / JOB / "checkpoint.json"
    path.write_bytes(path.read_bytes()[:-20])


def other_case(run: Path, project: Project) -> None:
    suite(project, CASE.replace("content: three", "content: trois"))


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
    suite(project)
    set_mood(project, 3, error="quota")
    project.run("run", ".", "-e", "moody", "--out", "out")
    set_mood(project)
    run = project.root / "out"
    disturb(run, project)
    project.run("run", "--resume", "out")
    record = record_of(run)
    expected = f"begun anew with turn 1, not resumed after turn 2: {why}"
    notes = [re.sub(r"session \S+", "session ID", note) for note in record["notes"]]
    assert notes == ([expected] if why else [])
    assert [turn["status"] for turn in record["turns"]] == ["completed"] * 4
    assert not [e for e in events(run) if e["event"] == "trial_continued"]
    assert (run / "trials" / JOB / "raw.attempt-1" / "turn-02.stdout.jsonl").exists()


@pytest.mark.slow
def test_a_quota_ends_the_run_and_resuming_goes_on_with_the_next_turn(
    project: Project, calm: dict[str, Any]
) -> None:
    suite(project)
    set_mood(project, 3, error="quota")
    outcome = project.run("run", ".", "-e", "moody", "--out", "out", "--json")
    run = project.root / "out"
    assert outcome.data["cases"] == []
    assert [job["job"] if isinstance(job, dict) else job for job in outcome.data["not_run"]]
    assert outcome.data["stopped"]["kind"] == "quota"
    assert "allowance is used up" in outcome.data["stopped"]["message"]
    assert outcome.exit_code not in (0, 2)
    assert [e["job"] for e in events(run) if e["event"] == "trial_left"] == [JOB]
    assert (scratch_of(run) / "home").is_dir()
    # Still none: it is left again, at the same turn.
    again = project.run("run", "--resume", "out", "--json")
    assert again.data["stopped"]["kind"] == "quota"
    set_mood(project)
    outcome = project.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert without_times(outcome.data["cases"]) == without_times(calm["cases"])
    assert [e["after_turn"] for e in events(run) if e["event"] == "trial_continued"] == [2, 2]
    assert not (run / "scratch").exists()


def test_where_a_variable_holds_a_secret_there_is_no_checkpoint(project: Project) -> None:
    suite(project)
    set_mood(project, 3, error="quota")
    given = ["-e", "moody", "--var", "other=walrus-0123456789", "--out", "out"]
    project.run("run", ".", *given, env={"MY_API_KEY": "walrus-0123456789"})
    assert not (project.root / "out" / "trials" / JOB / "checkpoint.json").exists()
    assert not (project.root / "out" / "scratch").exists()
