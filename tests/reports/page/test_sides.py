"""Two runs side by side: what became of each case, which trials stand for it, what was edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.build import html_report, sides_of
from skillup.reports.html.run_data import RunData
from skillup.reports.result import build_result
from skillup.schema.grade import Grade
from skillup.store import RunDirectory
from skillup.store.files import pack
from tests.support.graded import STATUSES
from tests.support.large_runs import write_large_run
from tests.support.pages import page_of
from tests.support.stored import a_grade, a_record, change


def _run(path: Path, cases: dict[str, str], **case_data: Any) -> RunData:
    """A run: ``{"greets": "ppf"}``, a letter for each trial, ``-`` for one that did not run."""
    letters = {
        f"{case}/scripted/with_skill/{n}": letter
        for case, marks in cases.items()
        for n, letter in enumerate(marks, start=1)
    }
    suites = {"suite": {"cases": {case: case for case in cases}}}
    grades: dict[str, Grade] = {}
    info = {"run_id": path.name, "jobs": list(letters), "suites": suites}
    with RunDirectory.create(path, info) as run:
        for job, letter in letters.items():
            if letter != "-":
                case, trial = job.partition("/")[0], int(job[-1])
                update = {"status": STATUSES[letter], "trial": trial, "score": float(letter == "p")}
                grades[job] = a_grade(case).model_copy(update=update)
                record = a_record(case, trial=trial)
                of_case = {"case": {"id": case, **case_data}}
                run.write_record(job, record.model_copy(update=of_case if case_data else {}))
                run.write_grade(job, grades[job])
        run.write_result(build_result(path.name, "2026", list(grades.values()), [], 1))
    return RunData(path)


def test_each_case_says_what_became_of_it_and_whom_to_look_at(tmp_path: Path) -> None:
    a = _run(tmp_path / "a", {"x": "pp", "y": "ff", "z": "pf", "same": "pp", "gone": "p", "e": "p"})
    b = _run(tmp_path / "b", {"x": "fp", "y": "pp", "z": "pp", "same": "pp", "new": "p", "e": "e-"})

    sides = sides_of(a, b, shift=100)

    rows: dict[str, Any] = {row["case_id"]: row for row in sides["rows"]}
    assert {name: row["change"] for name, row in rows.items()} == {
        "x": "fewer_passes",
        "y": "more_passes",
        "z": "more_passes",
        "same": "same",
        "new": "only_in_b",
        "e": "not_run",
        "gone": "only_in_a",
    }
    assert (rows["x"]["a"]["n"], rows["x"]["b"]["n"]) == (101, 1), "the trial that fails now"
    assert (rows["z"]["a"]["n"], rows["z"]["b"]["n"]) == (106, 5), "and the one that failed before"
    z = rows["z"]["a"]
    assert (z["status"], z["passed"], z["judged"]) == ("FAIL", 1, 2)
    assert (rows["e"]["b"]["status"], rows["e"]["b"]["judged"]) == ("ERROR", 0)
    assert (rows["gone"]["b"], rows["new"]["a"]) == (None, None)


def test_what_has_no_verdict_in_both_runs_did_not_change_and_failures_come_first(
    tmp_path: Path,
) -> None:
    a = _run(tmp_path / "a", {"skipped": "s", "broken": "e", "lost": "p", "up": "f", "down": "p"})
    b = _run(tmp_path / "b", {"skipped": "s", "broken": "e", "lost": "e", "up": "p", "down": "f"})
    sides = sides_of(a, b, shift=10)
    assert [(row["case_id"], row["change"]) for row in sides["rows"]] == [
        ("down", "fewer_passes"),
        ("lost", "not_run"),
        ("up", "more_passes"),
        ("skipped", "same"),
        ("broken", "same"),
    ]
    assert sides["rows"][0]["how_sure"].startswith("not significant, p ")
    assert not any(row["how_sure"] for row in sides["rows"][1:])


def test_conversations_of_what_stayed_the_same_are_there_too_where_there_is_room(
    tmp_path: Path,
) -> None:
    a, b = (write_large_run(tmp_path / name, 2, turns=1) for name in ("ä #1", "more/b"))
    page = page_of(html_report(b, against=a))
    assert {row["change"] for row in page.index["sides"]["rows"]} == {"same"}
    assert sorted(page.details) == [1, 2, 3, 4]


def test_it_is_said_in_the_words_of_compare(tmp_path: Path) -> None:
    a = _run(tmp_path / "a", {"x": "ppppppp", "y": "ff", "z": "pf", "same": "pp"})
    b = _run(tmp_path / "b", {"x": "fffffff", "y": "pp", "z": "pp", "same": "pp"})

    sides = sides_of(a, b, shift=100)

    assert sides["changed"] == ["nothing that skillup records"]
    (summary,) = sides["summary"]
    assert summary.startswith("1 case regressed (x); ")
    assert [(row["case_id"], row["how_sure"][:2]) for row in sides["rows"]] == [
        ("x", "p "),
        ("y", ""),
        ("z", ""),
        ("same", ""),
    ]


@pytest.mark.parametrize(("digest", "changed"), [("1", False), ("2", True), (None, False)])
def test_that_a_case_was_changed_is_said(tmp_path: Path, digest: str | None, changed: bool) -> None:
    a, b = (_run(tmp_path / name, {"case": "p"}) for name in "ab")
    for run, own in ((a, "1"), (b, digest)):
        info = {**run.info, "case_digests": {"case": own} if own else {}}
        about = pack(json.dumps(info).encode())
        change(run.path, "UPDATE run SET json = ? WHERE name = 'info'", about)
    sides = sides_of(RunData(a.path), RunData(b.path), shift=1)
    assert sides["rows"][0]["case_changed"] is changed
    line = "1 case changed: suite/case"
    assert sides["changed"] == [line if changed else "nothing that skillup records"]
