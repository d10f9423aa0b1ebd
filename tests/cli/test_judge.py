"""`skillup judge` on real runs of the scripted engine: the same grades again, or flips."""

from __future__ import annotations

import json
import shutil
import signal
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.support.exported import exported
from tests.support.project import Project
from tests.support.session_files import claude_row, text, write_rows
from tests.support.stored import change

CASE = """
    id: notes
    tags: [slow]
    input:
      turns:
        - content: Write a note
          assertions:
            - contains: written
        - content: And now?
          assertions:
            - file_contains: {path: notes.txt, content: hello}
            - golden_file: {path: golden.txt}
    scripted:
      - turn: 1
        steps:
          - write: {path: notes.txt, content: hello}
        say: It is written.
      - turn: 2
        say: All done.
"""
SUITE = """
    name: lab
    engine: scripted
"""
OTHER = """
    id: other
    input:
      prompt: Hi
    assertions:
      - contains: hello
    scripted: [{turn: 1, say: Hello.}]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cases, and a run of them."""
    project = Project(tmp_path_factory.mktemp("finished"))
    project.write({"cases/eval.yaml": SUITE, "cases/notes.yaml": CASE})
    project.write({"cases/other.yaml": OTHER, "cases/golden.txt": "All done.\n"})
    outcome = project.run("run", "--out", "first")
    assert outcome.exit_code == 0, outcome.stderr
    return project.root


@pytest.fixture
def project(finished: Path, project: Project) -> Project:
    """The cases, and the run in another place than it ran in."""
    (project.holding(finished).root / "first").rename(project.root / "run")
    return project


def edit(project: Project, old: str, new: str, name: str = "cases/notes.yaml") -> None:
    path = project.root / name
    before = path.read_text("utf-8")
    assert old in before
    path.write_text(before.replace(old, new), "utf-8")


def grades(run: Path) -> list[Any]:
    return [json.loads(path.read_bytes()) for path in sorted(exported(run).rglob("grading.json"))]


def test_the_same_cases_give_the_same_grades_without_suites_engines_or_path(
    project: Project,
) -> None:
    shutil.rmtree(project.root / "cases")
    before = grades(project.root / "run")
    shown = project.run("judge", "run", env={"PATH": "/nonexistent"})
    assert shown.exit_code == 0, shown.stderr
    assert "2 passed; nothing changed" in shown.stderr
    data = project.run("judge", "run", "--json", env={"PATH": "/nonexistent"}).data
    assert [case["grade"] for case in sorted(data["cases"], key=lambda c: c["job_id"])] == before
    assert grades(project.root / "run") == before
    assert data["summary"]["pass"] == 2
    assert (
        data["analysis"] == json.loads((project.root / "run/result.json").read_text())["analysis"]
    )
    assert data["changes"]["trials"] == 0


def test_an_edited_case_shows_what_flipped_and_why(project: Project) -> None:
    edit(project, "- contains: written", "- {contains: written, name: says so}")
    named = project.run("judge", "run", "--cases", "cases", "--json").data
    assert named["changes"]["trials"] == 0
    edit(project, "{contains: written, name: says so}", "contains: [written, signed]")
    edit(project, "content: hello}\n", "content: bye}\n")
    outcome = project.run("judge", "run", "--cases", "cases")
    assert outcome.exit_code == 1
    lines = [line.strip() for line in outcome.stderr.splitlines()]
    assert any(line.startswith("PASS → FAIL  notes") for line in lines)
    assert any(line.startswith("new: fail") and "signed" in line for line in lines)
    assert any(line.startswith("gone: pass") and "hello" in line for line in lines)
    assert any("It is written." in line for line in lines)
    assert "1 changed, 1 with another verdict" in outcome.stderr


def test_an_exported_run_and_a_trial_of_it_but_none_taken_out_of_it(project: Project) -> None:
    assert project.run("export", "run", "--format", "files", "--out", "files").exit_code == 0
    trial = "files/trials/notes/scripted/with_skill/1"
    files = (
        "run/result.json",
        "run/run.sqlite",
        "files",
        "files/result.json",
        trial,
        f"{trial}/record.json",
    )
    for target in files:
        inside = project.run("judge", target)
        assert (inside.exit_code, "nothing changed" in inside.stderr) == (0, True), inside.stderr
    of_one_case = project.run("judge", "files", "--cases", "cases/notes.yaml", "--json").data
    assert (len(of_one_case["cases"]), of_one_case["left_out"]) == (1, 1)
    (project.root / "files/trials/other/scripted/with_skill/1/record.json").unlink()
    missing = project.run("judge", "files")
    assert (missing.exit_code, "1 not run" in missing.stderr) == (3, True)
    shutil.copytree(project.root / trial, project.root / "alone")
    outside = project.run("judge", "alone")
    assert (outside.exit_code, "not in the folder of an exported run" in outside.stderr) == (
        2,
        True,
    )


def test_selections_and_that_trials_without_a_record_are_no_pass(project: Project) -> None:
    assert project.run("judge", "run", "-k", "o*", "--json").data["summary"]["total"] == 1
    tagged = project.run("judge", "run", "--tag", "slow", "--json").data
    assert [case["grade"]["case_id"] for case in tagged["cases"]] == ["notes"]
    nothing = project.run("judge", "run", "-k", "none")
    assert (nothing.exit_code, "or none that is chosen" in nothing.stderr) == (2, True)
    run = project.root / "run"
    change(run, "DELETE FROM attempts WHERE job = 'other/scripted/with_skill/1'")
    missing = project.run("judge", "run")
    assert (missing.exit_code, "1 not run" in missing.stderr) == (3, True)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere", "no session begins with"),
        ("cases", "neither a run nor a trial"),
        ("other.json", "not in the folder of an exported run"),
    ],
)
def test_what_cannot_be_judged_is_a_usage_error(project: Project, target: str, says: str) -> None:
    (project.root / "other.json").write_text("{}", "utf-8")
    outcome = project.run("judge", target)
    assert outcome.exit_code == 2
    assert says in outcome.stderr
    assert "hint" in outcome.stderr


def test_watching_judges_after_each_change_and_outlives_broken_files(project: Project) -> None:
    """J4: compared with the save before, not with the run. F13: golden files count, too."""

    def shown() -> str:
        assert process.stderr is not None
        until = iter(process.stderr.readline, "watching the files of --cases; Ctrl-C ends\n")
        return "".join(takewhile(bool, until))

    def save(text: str) -> str:
        path.write_text(text, "utf-8")
        return shown()

    path = project.root / "cases/notes.yaml"
    whole = path.read_text("utf-8")
    with project.start("judge", "run", "--cases", "cases/notes.yaml", "--watch") as process:
        assert "nothing changed" in shown()
        assert "notes.yaml:" in save(whole.replace("contains: written", "contains: ["))
        assert "PASS → FAIL" in save(whole.replace("contains: written", "contains: erased"))
        assert "nothing changed" in save(path.read_text("utf-8") + "# x\n")
        assert "FAIL → PASS" in save(whole)
        (project.root / "cases/golden.txt").write_text("Something else.\n", "utf-8")
        assert "PASS → FAIL" in shown()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in told) == (130, False)


SESSION = [
    claude_row("user", "Write a note", "1", None),
    claude_row("assistant", text("It is written."), "2", "1"),
    claude_row("user", "And now?", "3", "2"),
    claude_row("assistant", text("All done."), "4", "3"),
]


def test_a_session_is_judged_by_one_case(project: Project) -> None:
    write_rows(project.root / "session.jsonl", SESSION)
    case = "input:\n  turns: [a, b]\nassertions: [{contains: done}]\n"
    project.write({"lone/eval.yaml": "name: lone\n", "lone/case.yaml": case})
    outcome = project.run("judge", "session.jsonl", "--cases", "lone/case.yaml")
    assert outcome.exit_code == 0, outcome.stderr
    without = project.run("judge", "session.jsonl")
    assert (without.exit_code, "--cases" in without.stderr) == (2, True)
    several = project.run("judge", "session.jsonl", "--cases", "cases")
    assert (several.exit_code, "one conversation" in several.stderr) == (2, True)
    chosen = project.run("judge", "session.jsonl", "--cases", "cases", "-k", "notes")
    assert chosen.exit_code == 1
    assert "the workspace was not looked at" in chosen.stderr


def test_a_folder_of_sessions_is_judged_at_once_each_by_its_own_id(project: Project) -> None:
    """J13: a folder was refused, and every session was called the same."""
    for name, answer in (("one", "All done."), ("two", "Not yet.")):
        said = claude_row("user", "Write", "1", None)
        rows = [said, claude_row("assistant", text(answer), "2", "1")]
        file = project.root / f"sessions/{name}/{name}.jsonl"
        write_rows(file, [{**row, "sessionId": f"id-{name}"} for row in rows])
    case = "input: {prompt: a}\nassertions: [{contains: done}]\n"
    project.write({"lone/eval.yaml": "name: lone\n", "lone/case.yaml": case})
    project.write({"sessions/history.jsonl": '{"display": "hi"}\n'})
    outcome = project.run("judge", "sessions", "--cases", "lone/case.yaml", "--json")
    assert outcome.exit_code == 1, outcome.stderr
    found = {case["job_id"]: case["grade"]["status"] for case in outcome.data["cases"]}
    assert {job.rsplit("/", 1)[1]: status for job, status in found.items()} == {
        "id-one": "PASS",
        "id-two": "FAIL",
    }
    shown = project.run("judge", "sessions", "--cases", "lone/case.yaml").stderr
    assert "FAIL  case id-two" in shown
    assert "2 judged: 1 passed, 1 failed" in shown
    (project.root / "empty").mkdir()
    assert project.run("judge", "empty", "--cases", "lone/case.yaml").exit_code == 2


# A case with branches: which records, and in which order.

BRANCHES = """
    id: zoo
    input:
      turns:
        - content: one
          branches:
            - {name: later, turns: [two]}
            - {name: earlier, turns: [two]}
        - three
    assertions: [{contains: said}]
    scripted: [{say: said}]
    """
AFTER_ALL = "id: ark\ndepends_on: [zoo]\ninput: {prompt: hi}\nassertions: [{contains: said}]\n"


@pytest.fixture(scope="module")
def branched(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of two cases, one of them with branches."""
    project = Project(tmp_path_factory.mktemp("finished"))
    project.write({"s/eval.yaml": "name: s\n", "s/a.yaml": AFTER_ALL + "scripted: [{say: said}]\n"})
    project.write({"s/z.yaml": BRANCHES})
    assert project.run("run", "s", "--out", "run").exit_code == 0
    return project


def test_a_session_is_judged_by_the_path_that_is_chosen(branched: Project, tmp_path: Path) -> None:
    rows = [claude_row("user", "one", "1", None), claude_row("assistant", text("said"), "2", "1")]
    session = str(write_rows(tmp_path / "s.jsonl", rows))
    several = branched.run("judge", session, "--cases", "s/z.yaml")
    assert (several.exit_code, "choose it with -k" in several.stderr) == (2, True)
    one = branched.run("judge", session, "--cases", "s/z.yaml", "-k", "zoo/", "--json")
    assert [case["grade"]["case_id"] for case in one.data["cases"]] == ["zoo"]


def test_branches_are_judged_by_the_edited_paths_of_their_case(branched: Project) -> None:
    edited = BRANCHES.replace(
        "turns: [two]}", "turns: [{content: two, assertions: [{contains: X}]}]}", 1
    )
    branched.write({"edited/eval.yaml": "name: s\n", "edited/z.yaml": edited})

    outcome = branched.run("judge", "run", "--cases", "edited", "--json", "-k", "zoo")

    assert outcome.exit_code == 1, outcome.stderr
    found = {case["grade"]["case_id"]: case["grade"]["status"] for case in outcome.data["cases"]}
    assert found == {"zoo": "PASS", "zoo/later": "FAIL", "zoo/earlier": "PASS"}
    changed = [case["job_id"] for case in outcome.data["cases"] if case["changes"]]
    assert changed == ["zoo/later/scripted/with_skill/1"]
