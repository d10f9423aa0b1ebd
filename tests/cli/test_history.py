"""`skillup baseline` and `skillup runs`: what runs are compared with, and which are kept."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skillup.history.index import add_run, all_runs
from skillup.history.reference import reference_for
from skillup.history.runs import read_run
from skillup.reports.html.build import history_data
from skillup.store import RunDirectory
from skillup.store.places import take_lock
from tests.support.project import Project

pytestmark = pytest.mark.indexed

CASE = "{{input: {{turns: [one]}}, assertions: [{{contains: hi}}], scripted: [{{say: {say}}}]}}\n"


def a_run(project: Project, *options: str, say: str = "hi") -> str:
    """A run of two cases, of which one says `say`; its id."""
    suite = {"eval.yaml": "name: demo\n", "a.yaml": CASE.format(say="hi")}
    project.write({**suite, "b.yaml": CASE.format(say=say)})
    run_id: str = project.run_json(".", *options)["run_id"]
    return run_id


def reference(project: Project, run_id: str) -> tuple[str, list[str], dict[str, str]]:
    folder = project.root / ".skillup/runs"
    found = reference_for(read_run(folder / run_id), str(folder.parent / "index.sqlite"), folder)
    accepted = {key.case_id: since for key, since in found.accepted.items()}
    return found.why, [night.run_id for night in found.nights], accepted


def test_a_run_is_pinned_for_a_branch_or_a_label_and_shown_and_cleared(project: Project) -> None:
    ids = [a_run(project) for _ in range(3)]
    ids.append(a_run(project, "--label", "beta"))
    assert reference(project, ids[2]) == ("the last 2 nights", ids[:2], {})
    done = project.run("baseline", "set", ids[0])
    assert (done.exit_code, done.stderr) == (0, f"pinned: {ids[0]}\n")
    assert project.run("baseline", "set", ids[1], "--label", "beta").exit_code == 0
    assert reference(project, ids[2]) == ("pinned", ids[:2], dict.fromkeys("ab", ids[0]))
    assert reference(project, ids[3]) == (
        *("pinned for label:beta", ids[:3], dict.fromkeys("ab", ids[1])),
    )
    shown = project.run("baseline", "show").stdout
    assert shown == f"(no branch)  {ids[0]}  pinned\nlabel:beta  {ids[1]}  pinned\n"
    assert project.run("baseline", "clear").exit_code == 0
    assert reference(project, ids[2])[1] == ids[:2]
    assert project.run("baseline", "set", "nothing").exit_code == 2


def test_what_got_worse_is_accepted_or_the_cases_that_are_named(project: Project) -> None:
    for _ in range(2):
        a_run(project, "--trials", "9")
    unchanged = project.run("baseline", "accept")
    assert unchanged.exit_code == 2
    assert "got worse" in unchanged.stderr
    bad = a_run(project, "--trials", "9", say="no")
    done = project.run("baseline", "accept")
    assert (done.exit_code, done.stderr) == (0, f"accepted as in {bad}: b\n")
    assert reference(project, a_run(project, say="no"))[2] == {"b": bad}
    assert project.run("baseline", "accept", "a*", "--run", bad).exit_code == 0
    assert reference(project, a_run(project, say="no"))[2] == {"a": bad, "b": bad}
    assert f"{bad}  accepted: demo/b/" in project.run("baseline", "show").stdout
    assert project.run("baseline", "accept", "zzz").exit_code == 2
    elsewhere = a_run(project, "--index", "none", say="no")
    assert project.run("baseline", "accept", "b").exit_code == 0
    assert reference(project, a_run(project, say="no"))[2] == {"a": bad, "b": elsewhere}


def test_runs_are_listed_and_labelled(project: Project) -> None:
    ids = [a_run(project), a_run(project, "--label", "first try", say="no")]
    assert project.run("runs", "label", ids[0], "known good").exit_code == 0
    lines = project.run("runs", "list").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == ids[::-1]
    assert [line.split()[1] for line in lines] == ["1/2", "2/2"]
    assert lines[1].endswith("known good")
    assert project.run("runs", "list", "--label", "known good").stdout == f"{lines[1]}\n"
    assert project.run("runs", "list", "--last", "1").stdout.count("\n") == 1
    # By its label it is found, also from an index that was made anew of the directories.
    before = project.run("trends", "--json").data
    (project.root / ".skillup/index.sqlite").unlink()
    missing = project.run("trends")
    assert (missing.exit_code, "--rebuild" in missing.stderr) == (3, True)
    rebuilt = project.run("trends", "--rebuild", "--json")
    assert (rebuilt.data, "2 runs indexed" in rebuilt.stderr) == (before, True)
    compared = project.run("compare", "known good", "first try", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert ids[0] in compared.stdout


def aged(project: Project, run_id: str, days: int) -> Path:
    """The run, made to have begun so long ago."""
    at = (datetime.now(UTC) - timedelta(days=days)).isoformat().replace("+00:00", "Z")
    path = project.root / ".skillup/runs" / run_id
    with RunDirectory.open(path, writable=True) as run:
        run.write_run_info({**run.run_info(), "started_at": at})
    return path


def test_old_runs_are_removed_but_not_pinned_ones_nor_what_is_in_progress_or_no_run(
    project: Project,
) -> None:
    ids = [a_run(project) for _ in range(5)]
    old, pinned, busy, unindexed, young = (
        aged(project, run_id, days) for run_id, days in zip(ids, (40, 40, 40, 40, 20), strict=True)
    )
    notes = old.parent / "notes"
    notes.mkdir()
    (notes / "keep.txt").write_text("mine")
    project.run("trends", "--rebuild")
    with sqlite3.connect(project.root / ".skillup/index.sqlite") as index:
        index.execute("DELETE FROM skillup_runs_7 WHERE run_id = ?", (ids[3],))
    project.run("baseline", "set", ids[1])
    lock = take_lock(busy / "lock")
    assert "30d is days" in project.run("runs", "prune", "--keep", "30").stderr
    told = project.run("runs", "prune", "--keep", "30d", "--dry-run")
    assert told.exit_code == 0, told.stderr
    assert "2 runs would be removed" in told.stderr
    assert told.stdout.split() == [str(old), str(unindexed)]
    assert old.exists()
    for arguments in (("--format", "files"), ()):
        assert project.run("export", str(old), *arguments).exit_code == 0
    every = ("--report", "junit,markdown,benchmark,html")
    assert project.run("report", str(old), *every).exit_code == 0
    for file in (unindexed / "notes/why.txt", unindexed / "run.txt"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    done = project.run("runs", "prune", "--keep", "30d")
    assert f"kept {ids[1]}: it is pinned" in done.stderr
    assert f"kept {ids[2]}: " in done.stderr
    assert "is being written by process" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("1 run removed, ")
    assert float(last.split()[3]) > 0
    left = {path for path in (old, pinned, busy, unindexed, young, notes) if path.exists()}
    assert left == {pinned, busy, unindexed, young, notes}
    assert RunDirectory.open(unindexed).finished_jobs()
    assert "what is not skillup's: notes, run.txt\n" in done.stderr
    # What later runs are compared with stays in the index, of the newest nights.
    index_file = str(project.root / ".skillup/index.sqlite")
    assert {run.run_id for run in all_runs(index_file)} == {*ids} - {ids[3]}
    again = project.run("runs", "prune", "--keep", "30d")
    assert again.stderr.splitlines()[-1].startswith("0 runs removed")
    for number in range(60):
        row = replace(read_run(young), run_id=f"z{number}", path="/nowhere")
        add_run(index_file, row)
    assert project.run("runs", "prune", "--keep", "30d").exit_code == 0
    assert ids[0] not in {run.run_id for run in all_runs(index_file)}
    assert lock


def test_what_is_said_of_a_run_is_of_the_runs_of_its_branch(project: Project) -> None:
    for arguments in (("init", "-q", "-b", "main"), ("commit", "-q", "--allow-empty", "-m", "one")):
        own = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        project.shell("git", *own, *arguments).check_returncode()
    on_main = [a_run(project) for _ in range(2)]
    project.shell("git", "checkout", "-q", "-b", "next").check_returncode()
    on_next = [a_run(project) for _ in range(2)]

    def shown(*options: str) -> list[str]:
        (suite,) = project.run("trends", "--json", *options).data["suites"]
        return [run["run_id"] for run in suite["runs"]]

    assert (shown(), shown("--branch", "main")) == (on_next, on_main)
    listed = project.run("runs", "list", "--branch", "next").stdout
    assert [line.split()[0] for line in listed.splitlines()] == on_next[::-1]
    for run_id, runs in ((on_main[1], on_main), (on_next[1], on_next)):
        for case in history_data(project.root / ".skillup/runs" / run_id, None) or ():
            assert [mark["run_id"] for mark in case["marks"]] == runs
    assert project.run("compare").stdout.count("the last 3 nights on next and main") == 1
    project.shell("git", "checkout", "-q", "-b", "new").check_returncode()
    assert shown() == [*on_main, *on_next]


def test_in_a_shared_index_last_and_labels_mean_runs_of_this_repository(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = str(tmp_path_factory.mktemp("shared") / "index.sqlite")
    env = {"SKILLUP_INDEX": url}
    other = Project(tmp_path_factory.mktemp("other"), indexed=True)
    for place in (project, other):
        place.write({"eval.yaml": "name: demo\n", "a.yaml": CASE.format(say="hi")})
    run_id = other.run_json(".", "--label", "good", "--out", "night", env=env)["run_id"]
    for name in ("last", "good"):
        assert project.run("baseline", "set", name, env=env).exit_code == 2
        assert other.run("baseline", "set", name, env=env).exit_code == 0
    assert project.run("baseline", "accept", "a", env=env).exit_code == 2
    assert project.run("baseline", "set", run_id, env=env).exit_code == 0
