"""Verdicts of earlier runs, for cases on which the run that is compared with has none."""

from __future__ import annotations

from dataclasses import replace

from skillup.trends.index.database import open_index
from skillup.trends.index.standing_in import earlier_verdicts
from skillup.trends.index.writing import add_run
from skillup.trends.outcomes import CaseKey, RunOutcomes
from skillup.trends.selection import Selection
from tests.support.outcomes import a_key, a_run


def found(index: str, a: RunOutcomes, b: RunOutcomes, *names: str) -> dict[str, str]:
    """By case, the run whose verdict stands in."""
    with open_index(index, write=False) as connection:
        rows = earlier_verdicts(connection, a, b, {a_key(name) for name in names})
    return {key.case_id: row.run.run_id for key, row in rows.items()}


def test_the_newest_verdict_before_both_runs_is_found(index: str) -> None:
    runs = {
        name: a_run(name, {"one": marks, "two": "e"})
        for name, marks in (("1", "f"), ("2", "p"), ("3", "s"), ("4", "e"), ("5", "f"))
    }
    for run in runs.values():
        add_run(index, run)
    assert found(index, runs["4"], runs["5"], "one", "two") == {"one": "2"}
    assert found(index, runs["5"], runs["4"], "one") == {"one": "2"}
    assert found(index, runs["4"], runs["5"]) == {}


def test_verdicts_are_found_of_as_many_cases_as_are_asked_for(index: str) -> None:
    cases: dict[str | CaseKey, str] = {f"case-{n}": "p" for n in range(600)}
    add_run(index, a_run("1", cases))
    a, b = a_run("2", {"x": "e"}), a_run("3", {"x": "f"})
    for count in (2, 600):
        names = [f"case-{n}" for n in range(count)]
        assert set(found(index, a, b, *names)) == set(names)


def test_a_night_stands_in_and_not_a_run_of_few_cases_that_came_later(index: str) -> None:
    few = replace(a_run("2", {"one": "f"}), selection=Selection("few", narrowed=True))
    for run in (a_run("1", {"one": "p", "two": "p"}), few):
        add_run(index, run)
    a, b = a_run("3", {"one": "e", "two": "p"}), a_run("4", {"one": "f", "two": "p"})
    assert found(index, a, b, "one") == {"one": "1"}


def test_what_came_between_the_two_runs_does_not_stand_in(index: str) -> None:
    for name, marks in (("1", "p"), ("3", "f")):
        add_run(index, a_run(name, {"one": marks}))
    assert found(index, a_run("2", {"one": "e"}), a_run("4", {"one": "f"}), "one") == {"one": "1"}


def test_a_run_of_few_cases_stands_in_where_nothing_else_has_a_verdict(index: str) -> None:
    few = replace(a_run("2", {"one": "p"}), selection=Selection("few", narrowed=True))
    for run in (a_run("1", {"one": "e", "two": "p"}), few):
        add_run(index, run)
    a, b = a_run("3", {"one": "e", "two": "p"}), a_run("4", {"one": "f", "two": "p"})
    assert found(index, a, b, "one") == {"one": "2"}
