"""How cases fared over runs, and when they began to fail."""

from __future__ import annotations

import pytest

from skillup.history.runs import CaseKey, RunOutcomes
from skillup.history.series import (
    CaseHistory,
    SeriesFilter,
    SuiteHistory,
    histories,
)
from skillup.stats import interval_over_cases
from tests.support.outcomes import Cases, a_key, a_run


def rows_of(*nights: Cases) -> list[RunOutcomes]:
    """Runs named `1`, `2`, …, the oldest first."""
    return [a_run(str(number), cases) for number, cases in enumerate(nights, start=1)]


def history_of(*nights: str, last: int = 20) -> CaseHistory:
    """One case over nights, each as the letters of its trials."""
    cases: list[Cases] = [{"case": marks} for marks in nights]
    (suite,) = histories(rows_of(*cases), SeriesFilter(), last)
    return suite.cases[0]


@pytest.mark.parametrize(
    ("nights", "first", "last_pass", "runs"),
    [
        (["p", "p", "f", "f"], "3", "2", 2),
        (["p", "e", "f"], "3", "1", 1),
        (["p", "f", "e", "f"], "2", "1", 2),
        (["p", "f", "e"], "2", "1", 1),
        (["e", "f", "f"], "2", None, 2),
        (["f", "p", "s", "n", "f"], "5", "2", 1),
    ],
)
def test_a_failing_case_says_since_when(
    nights: list[str], first: str, last_pass: str | None, runs: int
) -> None:
    failing = history_of(*nights).failing
    assert failing is not None
    assert failing.first.run_id == first
    assert (failing.last_pass.run_id if failing.last_pass else None) == last_pass
    assert failing.runs == runs


@pytest.mark.parametrize("nights", [["p"], ["f", "p"], ["p", "e"], ["f", "p", "e", "s"], ["e"]])
def test_errors_and_skips_are_no_failure(nights: list[str]) -> None:
    assert history_of(*nights).failing is None


@pytest.mark.parametrize(
    ("nights", "first", "word"),
    [
        (["ppp", "ppp", "fff"], "3", "failing"),
        (["ppp", "ppf", "e", "fff", "pff"], "2", "not always passing"),
    ],
)
def test_a_case_of_several_trials_fails_since_it_last_passed_each_time(
    nights: list[str], first: str, word: str
) -> None:
    failing = history_of(*nights).failing
    assert failing is not None
    assert (failing.first.run_id, failing.word) == (first, word)


@pytest.mark.parametrize(
    ("nights", "first"),
    [
        (["ppp", "ppp", "e", "fff", "fff"], "4"),
        (["ppp", "fff"], "2"),
        (["ppp", "ppf", "ppp"], None),  # may be chance
        (["ppp", "ppp", "fff", "fff", "ppp", "ppp"], None),  # it surely rose
        (["p"] * 9 + ["f"] * 9, None),  # one trial: failing or not
    ],
)
def test_a_case_of_several_trials_fell_where_that_is_more_than_chance(
    nights: list[str], first: str | None
) -> None:
    fell = history_of(*nights).fell
    assert (fell.first.run_id if fell else None) == first


def test_that_a_baseline_fails_is_no_news() -> None:
    bare = a_key("a", variant="without_skill")
    (suite,) = histories(rows_of({bare: "p"}, {bare: "f"}), SeriesFilter(), 20)
    assert suite.cases[0].failing is None


def test_when_it_began_is_looked_for_before_the_runs_that_are_shown() -> None:
    history = history_of("p", "f", "f", "f", last=2)
    assert len(history.tallies) == 2
    assert history.failing is not None
    assert history.failing.first.run_id == "2"


def only(suites: list[SuiteHistory]) -> SuiteHistory:
    (suite,) = suites
    return suite


@pytest.mark.parametrize(
    ("cases", "state"),
    [
        ({"a": "p", "b": "p"}, "pass"),
        ({"a": "p", "b": "f"}, "mixed"),
        ({"a": "f", "b": "f"}, "fail"),
        ({"a": "f", "b": "e"}, "fail"),
        ({"a": "pf", "b": "ppe"}, "mixed"),
        ({"a": "p", "b": "e"}, "error"),
        ({"a": "s", "b": "p"}, "pass"),
    ],
)
def test_a_suite_has_a_state_in_each_run(cases: Cases, state: str) -> None:
    assert only(histories(rows_of(cases), SeriesFilter(), 20)).states() == [state]


def test_a_suite_has_numbers_as_its_cases_have() -> None:
    other, bare = a_key("a", engine="other"), a_key("a", variant="without_skill")
    held: list[Cases] = [
        {a_key("a"): "ppf", other: "pp", bare: "fff", a_key("b"): "fe"},
        {a_key("a"): "pnn", a_key("b"): "s"},
    ]
    suite = only(histories(rows_of(*held), SeriesFilter(), 20))
    total = suite.total
    assert (total.passed, total.judged, total.errors, total.not_started) == (5, 7, 1, 2)
    assert total.rate == 5 / 7
    assert total.score == pytest.approx(5 / 7)
    assert suite.interval == interval_over_cases([(5, 6), (0, 1)])
    assert only(histories(rows_of({bare: "pf"}), SeriesFilter(), 20)).total.rate == 0.5
    assert only(histories(rows_of({"a": "e"}), SeriesFilter(), 20)).interval is None


def test_suites_cases_engines_and_variants_can_be_chosen() -> None:
    keys: Cases = {
        a_key("a"): "p",
        a_key("b"): "p",
        a_key("a", engine="other"): "p",
        a_key("a", variant="without_skill"): "p",
        a_key("a", suite="second"): "p",
    }

    def chosen(wanted: SeriesFilter) -> list[CaseKey]:
        found = histories(rows_of(keys), wanted, 20)
        return [case.key for suite in found for case in suite.cases]

    assert len(chosen(SeriesFilter())) == 5
    assert chosen(SeriesFilter(suites=("sec*",))) == [a_key("a", suite="second")]
    assert chosen(SeriesFilter(cases=("b",))) == [a_key("b")]
    assert chosen(SeriesFilter(engines=("oth*",))) == [a_key("a", engine="other")]
    assert chosen(SeriesFilter(variant="without_skill")) == [a_key("a", variant="without_skill")]
