"""Which run is the one before, and whose verdicts stand in where that has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from skillup.errors import UsageError
from skillup.history.baseline import earlier_verdicts, run_before
from skillup.history.database import open_index
from skillup.history.outcomes import CaseKey, RunOutcomes, RunSelection
from skillup.history.queries import add_run
from tests.support.outcomes import a_key, a_run

NIGHT = RunSelection("night", narrowed=False)
CHOSEN = RunSelection("chosen", narrowed=True)


def held(
    run_id: str, cases: Sequence[str | CaseKey], selection: RunSelection | None = None
) -> RunOutcomes:
    """A run that planned these; for what it planned it is all the same how they fared."""
    return replace(a_run(run_id, dict.fromkeys(cases, "e")), selection=selection)


def before(index: str, later: RunOutcomes, *runs: RunOutcomes) -> str:
    """The id of the one of `runs` that is the run before `later`."""
    for run in (*runs, later):
        add_run(index, run)
    return run_before(later, index).run_id


@pytest.mark.parametrize("selection", [CHOSEN, None])
def test_a_run_of_few_cases_is_passed_over(index: str, selection: RunSelection | None) -> None:
    night, day = held("1", "abc"), held("2", "b", selection)
    assert before(index, held("3", "abc"), night, day) == "1"


def test_a_run_of_more_cases_will_do_for_a_run_of_few(index: str) -> None:
    night, day = held("2", "abc", NIGHT), held("1", "b", CHOSEN)
    assert before(index, held("3", "b", CHOSEN), day, night) == "2"


def test_what_was_asked_for_decides_where_a_case_came_or_went(index: str) -> None:
    """`c` was taken out for one night: the one before is that night, and not the last with `c`."""
    with_it, without = held("1", "abc", NIGHT), held("2", "ab", NIGHT)
    assert before(index, held("3", "abc", NIGHT), with_it, without) == "2"


def test_of_runs_that_planned_less_the_one_with_most_of_the_cases(index: str) -> None:
    older, newer, day = held("1", "abc"), held("2", "abc"), held("3", "ab")
    assert before(index, held("4", "abcd"), older, newer, day) == "2"


def test_many_chosen_cases_are_no_night_either(index: str) -> None:
    night, day = held("1", "abc"), held("2", "abc", CHOSEN)
    assert before(index, held("3", "abcd", NIGHT), night, day) == "1"


def test_one_engine_of_two_is_less_than_both(index: str) -> None:
    other = a_key("a", engine="other")
    both = held("1", ["a", other])
    assert before(index, held("3", ["a", other]), both, held("2", ["a"])) == "1"


def test_a_baseline_makes_no_other_night_of_it(index: str) -> None:
    bare = a_key("a", variant="without_skill")
    assert before(index, held("3", ["a", bare]), held("1", ["a", bare]), held("2", "a")) == "2"


def test_where_only_chosen_cases_were_held_there_is_no_night_before(index: str) -> None:
    with pytest.raises(UsageError, match=r"no earlier run .*: only chosen cases of it"):
        before(index, held("2", "ab", NIGHT), held("1", "b", CHOSEN))


def test_runs_of_chosen_cases_are_compared_with_each_other(index: str) -> None:
    """As pytest's are, which names each case that it holds."""
    first = held("1", "ab", CHOSEN)
    assert before(index, held("2", "abc", RunSelection("others", narrowed=True)), first) == "1"


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
    few = replace(a_run("2", {"one": "f"}), selection=RunSelection("few", narrowed=True))
    for run in (a_run("1", {"one": "p", "two": "p"}), few):
        add_run(index, run)
    a, b = a_run("3", {"one": "e", "two": "p"}), a_run("4", {"one": "f", "two": "p"})
    assert found(index, a, b, "one") == {"one": "1"}


def test_what_came_between_the_two_runs_does_not_stand_in(index: str) -> None:
    for name, marks in (("1", "p"), ("3", "f")):
        add_run(index, a_run(name, {"one": marks}))
    assert found(index, a_run("2", {"one": "e"}), a_run("4", {"one": "f"}), "one") == {"one": "1"}


def test_a_run_of_few_cases_stands_in_where_nothing_else_has_a_verdict(index: str) -> None:
    few = replace(a_run("2", {"one": "p"}), selection=RunSelection("few", narrowed=True))
    for run in (a_run("1", {"one": "e", "two": "p"}), few):
        add_run(index, run)
    a, b = a_run("3", {"one": "e", "two": "p"}), a_run("4", {"one": "f", "two": "p"})
    assert found(index, a, b, "one") == {"one": "2"}
