"""Two runs side by side: what became of each case, and which trials stand for it."""

from __future__ import annotations

import typing
from pathlib import Path
from urllib.parse import unquote

from skillup.history.comparison import Change
from skillup.reports.html.build import html_report
from skillup.reports.html.comparison import _CHANGES, sides_of, trials_of_a
from skillup.reports.html.run_data import RunData
from skillup.reports.result import build_result
from skillup.schema.grade import Grade
from skillup.store import RunDirectory
from tests.support.large_runs import write_large_run
from tests.support.pages import page_of
from tests.support.stored import a_grade, a_record

STATUSES = {"p": "PASS", "f": "FAIL", "e": "ERROR", "s": "SKIP"}


def _run(path: Path, cases: dict[str, str]) -> RunData:
    """A run: ``{"greets": "ppf"}``, a letter for each trial, ``-`` for one that was not held."""
    letters = {
        f"{case}/scripted/with_skill/{n}": letter
        for case, marks in cases.items()
        for n, letter in enumerate(marks, start=1)
    }
    suites = {"suite": {"cases": {case: case for case in cases}}}
    grades: dict[str, Grade] = {}
    with RunDirectory.create(
        path, {"run_id": path.name, "jobs": list(letters), "suites": suites}
    ) as run:
        for job, letter in letters.items():
            if letter != "-":
                case, trial = job.partition("/")[0], int(job[-1])
                update = {"status": STATUSES[letter], "trial": trial, "score": float(letter == "p")}
                grades[job] = a_grade(case).model_copy(update=update)
                run.write_record(job, a_record(case, trial=trial))
                run.write_grade(job, grades[job])
        run.write_result(build_result(path.name, "2026", grades, list(letters), 1))
    return RunData(path)


def test_each_case_says_what_became_of_it_and_whom_to_look_at(tmp_path: Path) -> None:
    a = _run(tmp_path / "a", {"x": "pp", "y": "ff", "z": "pf", "same": "pp", "gone": "p", "e": "p"})
    b = _run(tmp_path / "b", {"x": "fp", "y": "pp", "z": "pp", "same": "pp", "new": "p", "e": "e-"})

    sides = sides_of(a, b, shift=100)

    rows = {row["case_id"]: row for row in sides["rows"]}
    assert {name: row["change"] for name, row in rows.items()} == {
        "x": "changed",
        "y": "newly_passing",
        "z": "changed",
        "same": "same",
        "new": "only_b",
        "e": "not_run",
        "gone": "only_a",
    }
    assert (rows["x"]["a"]["n"], rows["x"]["b"]["n"]) == (101, 1), "the trial that fails now"
    assert (rows["z"]["a"]["n"], rows["z"]["b"]["n"]) == (106, 6), "and the one that failed before"
    assert (rows["z"]["a"]["status"], rows["z"]["a"]["passed"], rows["z"]["a"]["held"]) == (
        *("FAIL", 1),
        2,
    )
    assert (rows["e"]["b"]["status"], rows["e"]["b"]["held"]) == ("ERROR", 0)
    assert rows["gone"]["b"] is None
    assert rows["new"]["a"] is None
    told = {row["n"]: row["case_id"] for row in a.rows}
    assert sorted(told[n] for n in (n - 100 for n in trials_of_a(sides, same=False))) == [
        "e",
        "gone",
        "x",
        "y",
        "z",
    ]


def test_every_change_has_a_word() -> None:
    assert set(_CHANGES) == set(typing.get_args(Change))


def test_what_has_no_verdict_in_both_runs_did_not_change_and_failures_come_first(
    tmp_path: Path,
) -> None:
    a = _run(tmp_path / "a", {"skipped": "s", "broken": "e", "lost": "p", "up": "f", "down": "p"})
    b = _run(tmp_path / "b", {"skipped": "s", "broken": "e", "lost": "e", "up": "p", "down": "f"})

    rows = sides_of(a, b, shift=10)["rows"]

    assert [(row["case_id"], row["change"]) for row in rows] == [
        ("down", "newly_failing"),
        ("up", "newly_passing"),
        ("lost", "not_run"),
        ("skipped", "same"),
        ("broken", "same"),
    ]


def test_conversations_of_what_stayed_the_same_are_there_too_where_there_is_room(
    tmp_path: Path,
) -> None:
    a, b = (write_large_run(tmp_path / name, 2, turns=1) for name in "ab")
    page = page_of(html_report(b, against=a))
    assert {row["change"] for row in page.index["sides"]["rows"]} == {"same"}
    assert sorted(page.details) == [1, 2, 3, 4]


def test_files_of_the_other_run_are_its_own(tmp_path: Path) -> None:
    a, b = (write_large_run(tmp_path / name, 1, turns=1) for name in ("ä #1", "more/b"))
    details = page_of(html_report(b, against=a)).details
    for n, run in ((2, a), (1, b)):
        links = [*details[n]["turns"][0]["raw"], *details[n]["raw"]]
        files = [(b / unquote(link["href"])).resolve() for link in links]
        assert files
        assert all(file.is_file() and run in file.parents for file in files), n


def test_what_it_comes_to_is_said_in_the_words_of_compare(tmp_path: Path) -> None:
    a = _run(tmp_path / "a", {"x": "ppppp", "y": "ff", "z": "pf", "same": "pp"})
    b = _run(tmp_path / "b", {"x": "fffff", "y": "pp", "z": "pp", "same": "pp"})

    sides = sides_of(a, b, shift=100)

    assert sides["summary"][:2] == [
        (
            "1 case got worse surely (x); 1 got better (as observed); "
            "1 passed more often (may be chance)"
        ),
        (
            "pass rate: lower in 1, higher in 2 of 4 cases; all together may be chance, p 0.653 "
            "(McNemar's exact test, for several trials)"
        ),
    ]
    assert sides["summary"][-1] == "a trial took 0.0 s in A, 0.0 s in B (+0%)"
    assert {row["case_id"]: row["how_sure"] for row in sides["rows"]} == {
        "x": "surely (p 0.00397)",
        "y": "2 trials each: too few to be sure",
        "z": "2 trials each: cannot tell",
        "same": "",
    }


def test_of_cases_held_once_it_is_not_said_how_sure_they_are(tmp_path: Path) -> None:
    a = _run(tmp_path / "a", {"x": "p", "y": "p"})
    sides = sides_of(a, _run(tmp_path / "b", {"x": "f", "y": "f"}), shift=2)
    assert sides["summary"][0] == "2 cases got worse as observed, not surely (x, y)"
    assert {row["how_sure"] for row in sides["rows"]} == {""}


def test_runs_without_a_case_in_common_have_nothing_to_compare(tmp_path: Path) -> None:
    sides = sides_of(_run(tmp_path / "a", {"x": "p"}), _run(tmp_path / "b", {"y": "f"}), shift=1)
    assert sides["summary"] == ["no case has a verdict in both runs: there is nothing to compare"]
