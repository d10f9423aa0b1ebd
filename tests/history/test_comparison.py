"""Two runs: what became of each case, the numbers over all of them, gates; simulated nights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.history.comparison import (
    CaseChange,
    Comparison,
    cases_without_verdict,
    changes,
    check_gates,
    counts_of,
    gates_by_suite,
    given_gates,
)
from skillup.history.index import compare_with_index
from skillup.history.runs import CaseKey, CaseTally, RunOutcomes, by_case
from skillup.stats import side_of, stratified
from tests.support.outcomes import a_key, a_run, trials_of

# What became of each case, and how sure that is.


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


def test_verdicts_of_single_trials_are_tested_by_mcnemar() -> None:
    a = a_run("a", {"one": "p", "two": "p", "three": "f", "four": "e"})
    b = a_run("b", {"one": "f", "two": "p", "three": "p", "four": "f"})
    verdicts = Comparison(a, b, 0.95).verdicts
    assert (verdicts.cases, verdicts.worse, verdicts.better) == (3, 1, 1)
    assert verdicts.p == 1


def test_scores_are_paired_by_case_and_errors_have_none() -> None:
    a = a_run("a", {"one": "pp", "two": "pp", "three": "e"})
    b = a_run("b", {"one": "pf", "two": "pp", "three": "f"})
    scores = Comparison(a, b, 0.95).scores
    assert scores is not None
    assert (scores.cases, scores.a, scores.b) == (2, 1.0, 0.75)
    assert scores.interval is not None
    assert scores.interval.low <= -0.25 <= scores.interval.high


def test_one_case_on_two_engines_is_one_pair_of_scores() -> None:
    other = a_key("one", engine="other")
    comparison = Comparison(
        a_run("a", {"one": "p", other: "p"}), a_run("b", {"one": "p", other: "f"}), 0.95
    )
    assert comparison.scores is not None
    assert (comparison.scores.cases, comparison.scores.b) == (1, 0.5)
    assert comparison.verdicts.cases == 2


def test_cost_is_that_of_a_trial_over_cases_that_tell_it_in_both() -> None:
    a = a_run("a", {"one": "p", "two": "p"}, cost=0.10)
    b = a_run("b", {"one": "ppp", "two": "e"}, cost=0.15)
    cost = Comparison(a, b, 0.95).cost
    assert cost is not None
    assert cost.cases == 1
    assert (cost.a, cost.b) == pytest.approx((0.10, 0.15))
    assert cost.increase == pytest.approx(0.5)


def test_a_baseline_is_listed_and_not_counted() -> None:
    bare = a_key("one", variant="without_skill")
    comparison = Comparison(
        a_run("a", {"one": "p", bare: "p"}), a_run("b", {"one": "p", bare: "f"}), 0.95
    )
    assert [case.key for case in comparison.of("newly_failing")] == [bare]
    assert comparison.verdicts.worse == 0
    assert comparison.scores is not None
    assert comparison.scores.a == comparison.scores.b


@pytest.mark.parametrize("between", ["eeeee", "sssss"])
def test_an_earlier_run_stands_in_for_an_error_and_for_a_skip(between: str) -> None:
    """Passed on Monday, an error on Tuesday, failed on Wednesday: it is newly failing. So, too, if
    what it depends on met the error.
    """
    monday, tuesday = a_run("monday", {"one": "ppppp"}), a_run("tuesday", {"one": between})
    wednesday = a_run("wednesday", {"one": "fffff"})
    assert cases_without_verdict(tuesday, wednesday) == {a_key("one")}
    earlier = {key: (monday, own) for key, own in by_case(monday.trials).items()}
    comparison = Comparison(tuesday, wednesday, 0.95, earlier)
    assert [(case.change, case.sure) for case in comparison.cases] == [("newly_failing", True)]
    assert comparison.earlier == {a_key("one"): "monday"}


def test_a_run_of_a_few_cases_in_between_hides_nothing() -> None:
    night, between = a_run("1", {"one": "p" * 9 + "f", "two": "p"}), a_run("2", {"two": "p"})
    after = a_run("3", {"one": "f" * 10, "two": "p", "new": "f"})
    assert cases_without_verdict(between, after) == {a_key("one"), a_key("new")}
    earlier = {key: (night, own) for key, own in by_case(night.trials).items()}
    del earlier[a_key("two")]
    comparison = Comparison(between, after, 0.95, earlier)
    assert {case.key.case_id: case.change for case in comparison.cases} == {
        "one": "newly_failing",
        "two": "still_passing",
        "new": "only_in_b",
    }
    assert comparison.notes == ["1 case without a verdict in A compared with 1"]


# Gates: what they count, what they cannot tell, and who says what they are.


def met(a: RunOutcomes, b: RunOutcomes, **given: Any) -> dict[str, bool]:
    """Which gates are met, by name."""
    gates = gates_by_suite(b, given)
    results = check_gates(compare_with_index(a, b, gates, ""), gates)
    return {result.gate: result.passed for result in results}


@pytest.mark.parametrize(("limit", "expected"), [(0, False), (1, False), (2, True)])
def test_new_failures_are_counted_by_case(limit: int, expected: bool) -> None:
    a, b = a_run("a", {"x": "p", "y": "p", "z": "f"}), a_run("b", {"x": "f", "y": "f", "z": "f"})
    assert met(a, b, max_new_failures=limit) == {"max_new_failures": expected}


def test_a_failure_that_may_be_chance_is_no_new_failure() -> None:
    a, b = a_run("a", {"x": "ppppp"}), a_run("b", {"x": "pppff"})
    assert met(a, b, max_new_failures=0) == {"max_new_failures": True}
    assert met(a, b, max_new_failures=0, confidence=0.7) == {"max_new_failures": False}


def test_an_error_is_no_new_failure_and_has_a_gate_of_its_own() -> None:
    a, b = a_run("a", {"x": "ppp", "y": "p"}), a_run("b", {"x": "eee", "y": "n"})
    assert met(a, b, max_new_failures=0, max_not_run=1) == {
        "max_new_failures": True,
        "max_not_run": False,
    }
    assert met(a, b, max_not_run=2) == {"max_not_run": True}


def test_the_pass_rate_is_over_verdicts_of_b() -> None:
    a, b = a_run("a", {"x": "p"}), a_run("b", {"x": "pppppppppf", "y": "eee", "z": "s"})
    assert met(a, b, min_pass_rate=0.9) == {"min_pass_rate": True}
    assert met(a, b, min_pass_rate=0.91) == {"min_pass_rate": False}


def test_each_case_counts_the_same_in_the_pass_rate_however_often_it_was_held() -> None:
    a, b = a_run("a", {"x": "p"}), a_run("b", {"x": "p" * 30, "y": "fff"})
    (result,) = check_gates(Comparison(a, b, 0.95), gates_by_suite(b, {"min_pass_rate": 0.6}))
    assert (result.found, result.passed) == (0.5, False)
    assert result.finding == "50.0% passed, the mean of 2 cases"


def test_a_gate_that_is_not_met_never_says_that_its_limit_was_reached() -> None:
    """V22: with as many digits as it takes."""
    for marks, limit, said in [
        ("p" * 2999 + "f", 1.0, "> 99.9% passed"),
        ("p" * 299 + "f", 1.0, "99.7% passed"),
        ("p" * 8999 + "f" * 1001, 0.9, "89.99% passed"),
    ]:
        b = a_run("b", {"x": marks})
        gates = gates_by_suite(b, {"min_pass_rate": limit})
        (result,) = check_gates(Comparison(a_run("a", {"x": "p"}), b, 0.95), gates)
        assert (result.passed, result.finding) == (False, said)


@pytest.mark.parametrize(("cost", "expected"), [(0.12, True), (0.121, False), (None, False)])
def test_a_cost_that_is_not_told_does_not_meet_its_gate(cost: float | None, expected: bool) -> None:
    a, b = a_run("a", {"x": "p"}, cost=0.1), a_run("b", {"x": "p"}, cost=cost)
    assert met(a, b, max_cost_increase=0.2) == {"max_cost_increase": expected}


def test_gates_are_those_that_b_recorded_and_the_command_line_outranks_them() -> None:
    a = a_run("a", {"x": "p"}, gates={"max_new_failures": 5, "min_pass_rate": 0.9})
    b = a_run("b", {"x": "f"}, gates={"max_new_failures": 1})
    assert met(a, b) == {"max_new_failures": True}
    assert met(a, b, max_new_failures=0) == {"max_new_failures": False}


def test_a_baseline_that_fails_is_no_regression() -> None:
    bare = a_key("x", variant="without_skill")
    a, b = a_run("a", {"x": "p", bare: "p"}), a_run("b", {"x": "p", bare: "f"})
    assert met(a, b, max_new_failures=0, min_pass_rate=1) == {
        "max_new_failures": True,
        "min_pass_rate": True,
    }


def test_rules_of_the_command_line_are_read_as_in_the_suite() -> None:
    assert given_gates(["max_new_failures=0", "min_pass_rate=0.9", "max_cost_increase=1e-1"]) == {
        "max_new_failures": 0,
        "min_pass_rate": 0.9,
        "max_cost_increase": 0.1,
    }


@pytest.mark.parametrize(
    "rule", ["max_new_failures", "nothing=1", "min_pass_rate=2", "max_not_run=0.5", "confidence=x"]
)
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(UsageError, match="--gate"):
        given_gates([rule])


@pytest.mark.parametrize("confidence", ["0.9999999999999999", "1", "1.0", "-0.1"])
def test_a_confidence_that_nothing_can_have_is_refused_with_what_can_be(confidence: str) -> None:
    with pytest.raises(UsageError, match=r"confidence=.*equal to 0(\.999999999)?$"):
        given_gates([f"confidence={confidence}"])
    assert given_gates(["confidence=0.999999999"]) == {"confidence": 0.999999999}


# Simulated nights: a regression is found, and noise stays quiet at the stated rate.


NIGHTS = 400
# Most cases of a suite that is looked after pass; some waver.
RATES = {f"case-{n:02}": rate for n, rate in enumerate([1.0] * 12 + [0.9] * 8 + [0.7] * 4)}


def a_night(random: Random, rates: Mapping[str, float], trials: int) -> dict[CaseKey, CaseTally]:
    """A run whose cases pass with these chances."""
    held = []
    for case, rate in rates.items():
        marks = "".join("p" if random.random() < rate else "f" for _ in range(trials))
        held += trials_of(a_key(case), marks)
    return by_case(held)


def two_nights(random: Random, trials: int, later: Mapping[str, float] = RATES) -> list[CaseChange]:
    """The second is as good as `later` says."""
    return changes(a_night(random, RATES, trials), a_night(random, later, trials), 0.95)


def newly_failing(cases: list[CaseChange]) -> list[str]:
    """Their ids."""
    return [case.key.case_id for case in cases if case.change == "newly_failing"]


@pytest.mark.parametrize(("trials", "seed"), [(3, 1), (5, 2), (10, 3)])
def test_where_nothing_changed_a_case_is_called_newly_failing_no_more_than_one_night_in_20(
    trials: int, seed: int
) -> None:
    random = Random(seed)
    alarms = sum(bool(newly_failing(two_nights(random, trials))) for _ in range(NIGHTS))
    assert alarms / NIGHTS <= 0.05 + 2 * (0.05 * 0.95 / NIGHTS) ** 0.5


@pytest.mark.parametrize(("trials", "seed"), [(1, 4), (5, 5)])
def test_where_nothing_changed_the_test_over_all_cases_keeps_its_rate(
    trials: int, seed: int
) -> None:
    random = Random(seed)
    p_values = [
        stratified(counts_of(case.a, case.b) for case in two_nights(random, trials))
        for _ in range(NIGHTS)
    ]
    assert sum(p <= 0.05 for p in p_values) / NIGHTS <= 0.05 + 2 * (0.05 * 0.95 / NIGHTS) ** 0.5


@pytest.mark.parametrize("trials", [3, 5])
def test_a_case_that_broke_is_found_every_night(trials: int) -> None:
    random = Random(6)
    for _ in range(100):
        assert "case-00" in newly_failing(two_nights(random, trials, {**RATES, "case-00": 0.0}))


def _documented_power() -> list[list[int]]:
    """The rows of the table in `docs/comparing.md`: trials, then percents."""
    page = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text("utf-8")
    table = page.split("| trials in each run |")[1].split("\n\n")[0].splitlines()[2:]
    return [[int(cell.strip(" %")) for cell in row.strip("|").split("|")] for row in table]


@pytest.mark.slow
@pytest.mark.parametrize("row", _documented_power(), ids=lambda row: row[0])
def test_the_documented_chances_of_finding_a_worse_case_are_right(row: list[int]) -> None:
    trials, *shares, alarms = row
    random, nights = Random(9), 120

    def near(share: int) -> object:
        chance = share / 100
        return pytest.approx(chance, abs=0.01 + 3 * (chance * (1 - chance) / nights) ** 0.5)

    for rate, share in zip((0.7, 0.5, 0.3, 0.0), shares, strict=True):
        later = {**RATES, "case-00": rate}
        found = [
            "case-00" in newly_failing(two_nights(random, trials, later)) for _ in range(nights)
        ]
        assert sum(found) / nights == near(share)
    quiet = [bool(newly_failing(two_nights(random, trials))) for _ in range(nights)]
    assert sum(quiet) / nights == near(alarms)


# Comparing runs in which how often a case was held depended on how it did.

MOST = 60
side = cache(side_of)


def one_change(a: str, b: str, *, until_decided: bool) -> CaseChange:
    before, after = by_case(a_run("a", {"c": a}).trials), by_case(a_run("b", {"c": b}).trials)
    (change,) = changes(before, after, 0.95, until_decided=until_decided)
    return change


def test_the_p_of_a_case_counts_threefold() -> None:
    a, b = "p" * 16, "pf" * 7
    plain, sequential = (one_change(a, b, until_decided=flag) for flag in (False, True))
    assert plain.p is not None
    assert sequential.p == pytest.approx(3 * plain.p)
    assert sequential.p_corrected == pytest.approx(3 * plain.p)
    assert sequential.sure
    assert one_change("f" * 5, "p" * 3 + "f", until_decided=True).p == pytest.approx(3 * 4 / 84)


def test_what_is_just_sure_otherwise_is_not() -> None:
    assert one_change("pppp", "pfff", until_decided=False).change == "unsure"
    assert one_change("ppp", "fff", until_decided=False).sure
    broke = one_change("ppp", "fff", until_decided=True)
    assert (broke.change, broke.sure, broke.p_corrected) == ("newly_failing", False, None)
    assert one_change("p" * 16, "fff", until_decided=True).sure


DECIDED_RATES = {f"case-{n:02}": rate for n, rate in enumerate([1.0] * 6 + [0.9] * 8 + [0.7] * 8)}


def decided_night(random: Random, name: str) -> RunOutcomes:
    """A run whose cases are held until they are decided at 0.8."""
    cases: dict[str | CaseKey, str] = {}
    for case, rate in DECIDED_RATES.items():
        marks = ""
        while len(marks) < MOST and side(marks.count("p"), marks.count("f"), 0.8) == "undecided":
            marks += "p" if random.random() < rate else "f"
        cases[case] = marks
    return replace(a_run(name, cases), until_decided=True)


def test_where_nothing_changed_nights_stay_quiet_and_nothing_is_tested_over_all_cases() -> None:
    random = Random(11)
    nights, alarms = 40, 0
    for _ in range(nights):
        comparison = Comparison(decided_night(random, "a"), decided_night(random, "b"), 0.95)
        alarms += any(case.change == "newly_failing" for case in comparison.cases)
    assert alarms / nights <= 0.05 + 2 * (0.05 * 0.95 / nights) ** 0.5
    assert comparison.verdicts.p is None


def test_a_run_that_stands_in_counts_as_it_was_held() -> None:
    """On Tuesday `one` met an error; Monday was held until it was decided, the other nights not."""
    tuesday, wednesday = a_run("2", {"one": "e", "two": "pp"}), a_run("3", {"one": "fff"})
    monday = a_run("1", {"one": "ppp"})
    tally = by_case(monday.trials)[a_key("one")]
    decided = replace(monday, until_decided=True)
    plain = Comparison(tuesday, wednesday, 0.95, {a_key("one"): (monday, tally)})
    found = Comparison(tuesday, wednesday, 0.95, {a_key("one"): (decided, tally)})
    assert [case.sure for case in plain.of("newly_failing")] == [True]
    assert [case.sure for case in found.of("newly_failing")] == [False]
    assert found.notes[1].startswith("run --until-decided: 1.")
