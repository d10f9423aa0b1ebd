"""Runs with and without a baseline, compared."""

from __future__ import annotations

from skillup.history.comparison import compare_runs
from skillup.history.runs import by_case
from tests.support.outcomes import a_key, a_run

BARE = a_key("one", variant="without_skill")
BARE_TWO = a_key("two", variant="without_skill")


def test_a_baseline_that_only_one_of_them_has_is_left_out_and_a_note_says_so() -> None:
    plain = a_run("a", {"one": "p"})
    both = a_run("b", {"one": "p", BARE: "f", BARE_TWO: "f", "two": "f"})

    forth = compare_runs(plain, both, 0.95)
    back = compare_runs(both, plain, 0.95)

    with_skill = {a_key("one"), a_key("two")}
    assert {case.key for case in forth.cases} == {case.key for case in back.cases} == with_skill
    assert [case.key for case in forth.of("only_in_b")] == [a_key("two")]
    assert forth.notes == (
        "A was run without --baseline: 2 cases that B ran without the skill left out",
    )
    assert back.notes == (
        "B was run without --baseline: 2 cases that A ran without the skill left out",
    )


def test_it_is_left_out_although_an_earlier_run_says_something_of_it() -> None:
    earlier = by_case(a_run("0", {BARE: "p"}).trials)
    standing = {key: ("0", own) for key, own in earlier.items()}
    found = compare_runs(
        a_run("a", {"one": "p"}), a_run("b", {"one": "p", BARE: "f", BARE_TWO: "f"}), 0.95, standing
    )
    assert [case.key for case in found.cases] == [a_key("one")]
    assert found.notes == (
        "A was run without --baseline: 2 cases that B ran without the skill left out",
    )


def test_a_baseline_that_a_did_not_get_to_is_compared_with_an_earlier_one() -> None:
    earlier = by_case(a_run("0", {BARE: "p"}).trials)
    standing = {key: ("0", own) for key, own in earlier.items()}
    found = compare_runs(
        a_run("a", {"one": "p", BARE: "e"}), a_run("b", {"one": "p", BARE: "f"}), 0.95, standing
    )
    assert [case.key for case in found.of("newly_failing")] == [BARE]


def test_a_case_whose_baseline_is_new_is_listed_where_both_have_one() -> None:
    found = compare_runs(
        a_run("a", {"one": "p", BARE: "f"}),
        a_run("b", {"one": "p", BARE: "f", BARE_TWO: "f"}),
        0.95,
    )
    assert [case.key for case in found.of("only_in_b")] == [BARE_TWO]
    assert found.notes == ()
