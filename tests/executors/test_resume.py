"""What a later start of a run finds, and what it refuses."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project

CASES = 4
LIMIT = 60

CASE = """
    input:
      turns: [one, two]
    assertions: [{{contains: done}}]
    scripted:
      - turn: 1
        say: first
      - turn: 2
        steps: [{{run: "echo {name} >> {log}"}}, {{write: {{path: out.txt, content: {name}}}}}]
        say: done {name}
    """


def suite(project: Project, log: Path) -> None:
    """Cases that tell a file outside their workspace when they are about to finish."""
    cases = {f"c{n}.yaml": CASE.format(name=f"c{n}", log=log) for n in range(CASES)}
    project.write({"eval.yaml": "name: d\n", **cases})


def without_times(value: Any) -> Any:
    """What must be the same in every run: no ids, no moments, no durations."""
    if isinstance(value, dict):
        changing = ("run_id", "session_id", "started_at", "duration_ms")
        return {k: without_times(v) for k, v in value.items() if k not in changing}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def log_of(log: Path) -> list[str]:
    """The cases that have said so, each as often as it has."""
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def finished(run: Path) -> set[str]:
    return {
        path.parent.parent.parent.parent.name for path in run.glob("trials/*/*/*/*/record.json")
    }


def test_a_run_that_is_finished_runs_nothing_again(project: Project, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    suite(project, log)
    first = project.run_json(".", "--out", "out")
    again = project.run("run", "--resume", "out", "--json")
    assert again.exit_code == 0
    assert without_times(again.data) == without_times(first)
    assert sorted(log_of(log)) == sorted(f"c{n}" for n in range(CASES))


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
        scripted: [{steps: [{run: "test -e 'RESUMED' || kill -9 $(cat 'PID')"}], say: wrong}]
        """,
}
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
        process.wait(LIMIT)
    assert finished(project.root / "out") == {"a"}
    resumed.touch()

    refused = project.run("run", "--resume", "out", "--json")
    assert refused.exit_code == 2, refused.stderr
    assert f"{file}, which b is judged by, is not what it was" in refused.stderr
    assert "skillup judge RUN --cases" in refused.stderr
    assert project.run("judge", "out", "--cases", "cases", "--json").data["summary"]["pass"] == 1

    # As the message says: what the run began with is kept.
    (blob,) = re.findall(r"copy\s+(\S+)\s+there", refused.stderr)
    judged.write_bytes(Path(blob).read_bytes())
    again = project.run("run", "--resume", "out", "--json")
    statuses = {case["case_id"]: case["status"] for case in again.data["cases"]}
    assert statuses == {"a": "PASS", "b": "FAIL"}


def test_a_run_without_its_journal_is_shown_and_not_gone_on_with(project: Project) -> None:
    """S8: without it nobody knows which records are the run's own."""
    project.write(
        {"eval.yaml": "name: s\n", "a.yaml": JUDGED["cases/a.yaml"].replace("ALTER", ":")}
    )
    assert project.run("run", ".", "--out", "out").exit_code == 0
    (project.root / "out/events.jsonl").unlink()
    before = {path: path.read_bytes() for path in (project.root / "out").rglob("*.json")}
    for more in ((), ("--retry-errors",)):
        refused = project.run("run", "--resume", "out", *more)
        assert refused.exit_code == 2
        assert "out/events.jsonl is missing" in refused.stderr
    assert {path: path.read_bytes() for path in (project.root / "out").rglob("*.json")} == before
    assert not (project.root / "out/events.jsonl").exists()
    for verb in (("judge",), ("report",), ("show",)):
        assert project.run(*verb, "out").exit_code == 0


def test_an_agent_that_removes_the_journal_changes_nothing_in_the_run(project: Project) -> None:
    """S8: the rest of the run believed any record, and a forged one ended it."""
    out = project.root / "out"
    trials = out / "trials"
    forge = (
        f"rm '{out}/events.jsonl'; mkdir -p '{trials}/b/scripted/with_skill/1'; "
        f"cp '{trials}/z/scripted/with_skill/1/record.json' '{trials}/b/scripted/with_skill/1'"
    )
    first = JUDGED["cases/a.yaml"].replace("ALTER", ":")
    last = "depends_on: [a]\n" + textwrap.dedent(first).replace("say: done", "say: no")
    forger = "depends_on: [z]\n" + textwrap.dedent(JUDGED["cases/a.yaml"]).replace(
        '"ALTER"', json.dumps(forge)
    )
    project.write({"eval.yaml": "name: s\n", "z.yaml": first, "a.yaml": forger, "b.yaml": last})
    outcome = project.run("run", ".", "--out", "out", "--json")
    statuses = {case["case_id"]: case["status"] for case in outcome.data["cases"]}
    assert statuses == {"z": "PASS", "a": "PASS", "b": "FAIL"}, outcome.stderr
    assert "was set aside" in outcome.stderr
