"""What became of each case, and how sure that is."""

from __future__ import annotations

import pytest

from skillup.history.comparison import CaseChange, changes
from skillup.history.runs import by_case
from tests.support.outcomes import a_key, a_run


def changed(
    before: dict[str, str], after: dict[str, str], confidence: float = 0.95
) -> dict[str, CaseChange]:
    """By case id."""
    # A dict of texts is none of texts and keys to mypy, as it may be added to.
    a = by_case(a_run("a", before).trials)  # type: ignore[arg-type]
    b = by_case(a_run("b", after).trials)  # type: ignore[arg-type]
    return {change.key.case_id: change for change in changes(a, b, confidence)}


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        ("p", "f", "newly_failing"),
        ("f", "p", "newly_passing"),
        ("p", "p", "still_passing"),
        ("f", "f", "still_failing"),
        ("p", "e", "not_run"),
        ("e", "f", "not_run"),
        ("p", "n", "not_run"),
        ("p", "s", "skipped"),
        ("s", "e", "not_run"),
        ("", "p", "only_in_b"),
        ("p", "", "only_in_a"),
        ("ppp", "pfp", "unsure"),
        ("pfp", "fpp", "still_failing"),
        ("ppe", "epp", "still_passing"),
    ],
)
def test_a_case_has_one_change(a: str, b: str, change: str) -> None:
    before = {"case": a} if a else {"other": "p"}
    after = {"case": b} if b else {"other": "p"}
    assert changed(before, after)["case"].change == change


def test_held_once_each_a_change_counts_as_observed() -> None:
    case = changed({"case": "p"}, {"case": "f"})["case"]
    assert (case.change, case.sure, case.p) == ("newly_failing", False, None)


def test_three_trials_each_are_just_enough_for_one_case_that_broke() -> None:
    case = changed({"case": "ppp", "steady": "ppp"}, {"case": "fff", "steady": "ppp"})["case"]
    assert case.sure
    assert case.p == pytest.approx(1 / 20)


def test_steady_cases_do_not_hide_one_that_broke() -> None:
    steady = {f"steady-{n}": "ppppp" for n in range(200)}
    case = changed({**steady, "case": "ppppp"}, {**steady, "case": "fffff"})["case"]
    assert case.sure
    assert case.p_corrected == pytest.approx(1 / 252)


def test_many_cases_that_waver_make_it_harder_to_be_sure() -> None:
    wavering = {f"wavering-{n}": "ppppfpfpfp" for n in range(30)}
    before, after = {"case": "pppppppppp"}, {"case": "ppppffffff"}
    assert changed(before, after)["case"].sure
    assert changed({**wavering, **before}, {**wavering, **after})["case"].change == "unsure"


def test_passed_always_and_now_never_counts_even_where_it_cannot_be_sure() -> None:
    """Two cases that broke, three trials each: neither is sure by itself after the correction."""
    found = changed({"one": "ppp", "two": "ppp"}, {"one": "fff", "two": "fff"})
    assert {case.change for case in found.values()} == {"newly_failing"}
    assert not any(case.sure for case in found.values())


def test_unequal_numbers_of_trials_are_compared_too() -> None:
    assert changed({"case": "p"}, {"case": "fff"})["case"].change == "newly_failing"
    assert changed({"case": "p"}, {"case": "fpf"})["case"].change == "unsure"
    assert changed({"case": "ppppp"}, {"case": "ff"})["case"].sure
    assert changed({"case": "pppp"}, {"case": "f"})["case"].p == pytest.approx(1 / 5)


def test_trials_without_a_verdict_are_not_counted_as_failures() -> None:
    case = changed({"case": "ppp"}, {"case": "peeee"})["case"]
    assert case.change == "still_passing"
    assert (case.b.judged, case.b.not_run) == (1, 4)


def test_it_takes_as_much_to_be_sure_of_a_mend_as_of_a_break() -> None:
    assert changed({"case": "ffff"}, {"case": "pppp"})["case"].sure
    assert changed({"case": "fffp"}, {"case": "pppp"})["case"].change == "unsure"


@pytest.mark.parametrize(("confidence", "sure"), [(0.9, True), (0.95, True), (0.96, False)])
def test_the_confidence_decides(confidence: float, sure: bool) -> None:
    assert changed({"case": "ppp"}, {"case": "fff"}, confidence)["case"].sure is sure


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_the_ends_of_confidence_are_no_errors(confidence: float) -> None:
    case = changed({"case": "pppp"}, {"case": "pppf"}, confidence)["case"]
    assert case.change == ("newly_failing" if confidence == 0 else "unsure")


def test_engines_and_variants_are_told_apart() -> None:
    other, bare = a_key("case", engine="other"), a_key("case", variant="without_skill")
    a = by_case(a_run("a", {"case": "p", other: "p", bare: "f"}).trials)
    b = by_case(a_run("b", {"case": "p", other: "f", bare: "f"}).trials)
    found = {change.key: change.change for change in changes(a, b, 0.95)}
    assert found == {
        a_key("case"): "still_passing",
        other: "newly_failing",
        bare: "still_failing",
    }
