"""How cases fared over runs, and when they began to fail."""

from __future__ import annotations

import pytest

from skillup.history.index import CaseInRun, RunHead
from skillup.history.runs import CaseKey, by_case
from skillup.history.series import (
    CaseHistory,
    SeriesFilter,
    SuiteHistory,
    histories,
    worst_first,
)
from skillup.stats.paired import interval_over_cases
from tests.support.outcomes import Cases, a_key, a_run


def rows_of(*nights: Cases) -> list[CaseInRun]:
    """Runs named `1`, `2`, …, the oldest first."""
    rows = []
    for number, cases in enumerate(nights, start=1):
        run = a_run(str(number), cases)
        head = RunHead(run.run_id, run.started_at)
        rows += [CaseInRun(head, key, own) for key, own in by_case(run.trials).items()]
    return rows


def history_of(*nights: str, last: int = 20) -> CaseHistory:
    """One case over nights, each as the letters of its trials."""
    cases: list[Cases] = [{"case": marks} for marks in nights]
    (suite,) = histories(rows_of(*cases), SeriesFilter(), last)
    return suite.cases[0]


@pytest.mark.parametrize(
    ("nights", "first", "last_pass", "runs", "unknown"),
    [
        (["p", "p", "f", "f"], "3", "2", 2, 0),
        (["p", "e", "f"], "3", "1", 1, 1),
        (["p", "f", "e", "f"], "2", "1", 2, 0),
        (["p", "f", "e"], "2", "1", 1, 0),
        (["e", "f", "f"], "2", None, 2, 0),
        (["f", "p", "s", "n", "f"], "5", "2", 1, 2),
    ],
)
def test_a_failing_case_says_since_when(
    nights: list[str], first: str, last_pass: str | None, runs: int, unknown: int
) -> None:
    failing = history_of(*nights).failing
    assert failing is not None
    assert failing.first.run_id == first
    assert (failing.last_pass.run_id if failing.last_pass else None) == last_pass
    assert (failing.runs, failing.unknown) == (runs, unknown)


@pytest.mark.parametrize("nights", [["p"], ["f", "p"], ["p", "e"], ["f", "p", "e", "s"], ["e"]])
def test_errors_and_skips_are_no_failure(nights: list[str]) -> None:
    assert history_of(*nights).failing is None


NINE, NONE = "p" * 9 + "f", "f" * 10


@pytest.mark.parametrize(
    ("nights", "first", "before", "since", "runs"),
    [
        ([NINE, NINE, NONE], "3", (18, 20), (0, 10), 1),
        ([NINE, NINE, NONE, "ffffffffff", "f" * 27 + "ppp"], "3", (18, 20), (3, 50), 3),
        (["ppp", "fff"], "2", (3, 3), (0, 3), 1),
        ([NINE, NINE, "e", NONE], "4", (18, 20), (0, 10), 1),
        ([NINE, NONE, "e"], "2", (9, 10), (0, 10), 1),
        (["p"] * 20 + ["fff"], "21", (20, 20), (0, 3), 1),
    ],
)
def test_a_case_held_several_times_fell_where_chance_explains_it_worst(
    nights: list[str], first: str, before: object, since: object, runs: int
) -> None:
    history = history_of(*nights)
    assert history.failing is None
    assert history.fell is not None
    assert history.fell.first.run_id == first
    assert (history.fell.before, history.fell.since, history.fell.runs) == (before, since, runs)
    assert history.fell.p <= 0.05 + 1e-9


@pytest.mark.parametrize(
    "nights",
    [
        [NINE] * 5,
        ["ppp", "ppf"],
        ["pp", "ff"],
        [NONE, NONE],
        [NONE, NINE],
        [NINE, NINE, NONE, NINE],
        [NINE, NINE, NONE, NONE, NINE, NINE],
        ["e", NONE],
    ],
)
def test_nothing_is_claimed_that_may_be_chance_or_is_over(nights: list[str]) -> None:
    history = history_of(*nights)
    assert (history.failing, history.fell) == (None, None)


def test_that_a_baseline_fails_is_no_news() -> None:
    bare = a_key("a", variant="without_skill")
    (suite,) = histories(rows_of({bare: "p"}, {bare: "f"}), SeriesFilter(), 20)
    assert suite.cases[0].failing is None
    (suite,) = histories(rows_of({bare: "pppp"}, {bare: "ffff"}), SeriesFilter(), 20)
    assert suite.cases[0].fell is None


def test_means_are_over_trials_and_not_over_runs() -> None:
    runs = a_run("1", {"a": "p" * 9}, cost=0.1), a_run("2", {"a": "f"}, cost=0.2)
    heads = [RunHead(run.run_id, run.started_at) for run in runs]
    rows = [
        CaseInRun(head, key, own)
        for head, run in zip(heads, runs, strict=True)
        for key, own in by_case(run.trials).items()
    ]
    ((case,),) = [suite.cases for suite in histories(rows, SeriesFilter(), 20)]
    assert case.total.score == pytest.approx(0.9)
    assert case.total.cost_usd == pytest.approx(0.11)


def test_when_it_began_is_looked_for_before_the_runs_that_are_shown() -> None:
    history = history_of("p", "f", "f", "f", last=2)
    assert len(history.tallies) == 2
    assert history.failing is not None
    assert history.failing.first.run_id == "2"


def test_rate_and_interval_are_over_verdicts_of_the_runs_shown() -> None:
    history = history_of("fff", "ppe", "pfs", last=2)
    assert (history.total.passed, history.total.judged) == (3, 4)
    assert history.interval == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_a_case_without_a_verdict_has_no_rate() -> None:
    history = history_of("e", "s")
    total = history.total
    assert (total.judged, total.not_run, history.interval, total.score) == (0, 1, None, None)
    assert [own.state for own in history.tallies] == ["error", "skip"]


def only(suites: list[SuiteHistory]) -> SuiteHistory:
    (suite,) = suites
    return suite


def test_a_case_that_a_run_did_not_hold_has_a_gap_there() -> None:
    suite = only(histories(rows_of({"a": "p"}, {"a": "p", "b": "f"}), SeriesFilter(), 20))
    assert [[own.state for own in case.tallies] for case in suite.cases] == [
        ["pass", "pass"],
        ["absent", "fail"],
    ]


def test_cases_that_went_long_ago_are_left_out() -> None:
    suite = only(histories(rows_of({"old": "p"}, {"new": "p"}, {"new": "p"}), SeriesFilter(), 2))
    assert [case.key.case_id for case in suite.cases] == ["new"]


@pytest.mark.parametrize(
    ("cases", "state"),
    [
        ({"a": "p", "b": "p"}, "pass"),
        ({"a": "p", "b": "f"}, "mixed"),
        ({"a": "f", "b": "f"}, "fail"),
        ({"a": "f", "b": "e"}, "fail_and_not_run"),
        ({"a": "p", "b": "f", "c": "e"}, "fail_and_not_run"),
        ({"a": "p", "b": "pf", "c": "n"}, "fail_and_not_run"),
        ({"a": "pf", "b": "ppe"}, "mixed"),
        ({"a": "p", "b": "e"}, "error"),
        ({"a": "s", "b": "p"}, "pass"),
    ],
)
def test_a_suite_has_a_state_in_each_run(cases: Cases, state: str) -> None:
    assert only(histories(rows_of(cases), SeriesFilter(), 20)).states() == [state]


@pytest.mark.parametrize("last", [20, 1])
def test_a_run_of_some_cases_does_not_pass_as_a_whole(last: int) -> None:
    whole: Cases = {"a": "p", "b": "p"}
    nights: list[Cases] = [{"a": "p"}, whole, {"b": "p"}, {"a": "f"}, {"a": "p"}, {"a": "p"}]
    suite = only(histories(rows_of(*nights[: 6 if last > 1 else 3]), SeriesFilter(), last))
    states = ["pass", "pass", "pass_of_some", "fail", "pass_of_some", "pass_of_some"]
    assert suite.states() == (states if last > 1 else ["pass"])


def test_a_whole_run_is_one_with_the_cases_of_earlier_ones_that_are_not_shown() -> None:
    nights: list[Cases] = [{"a": "p", "b": "p"}, {"b": "p"}, {"a": "p"}]
    suite = only(histories(rows_of(*nights), SeriesFilter(), 2))
    assert suite.states() == ["pass_of_some", "pass_of_some"]


def test_baselines_do_not_count_in_the_state_of_a_suite() -> None:
    bare = a_key("a", variant="without_skill")
    suite = only(histories(rows_of({a_key("a"): "p", bare: "f"}, {"a": "p"}), SeriesFilter(), 20))
    assert suite.states() == ["pass", "pass"]


def test_a_suite_has_numbers_as_its_cases_have() -> None:
    other, bare = a_key("a", engine="other"), a_key("a", variant="without_skill")
    held: list[Cases] = [
        {a_key("a"): "ppf", other: "pp", bare: "fff", a_key("b"): "fe"},
        {a_key("a"): "pnn", a_key("b"): "s"},
    ]
    suite = only(histories(rows_of(*held), SeriesFilter(), 20))
    total = suite.total
    assert (total.passed, total.judged, total.errors, total.not_held) == (5, 7, 1, 2)
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


# Which cases of a long history come first.

BARE = a_key("bare", variant="without_skill")
NIGHTS: dict[str | CaseKey, list[str]] = {
    "steady": ["p", "p", "p"],
    BARE: ["f", "f", "f"],
    "wavered": ["f", "p", "p"],
    "refused": ["p", "p", "e"],
    "unsteady": ["pp", "pp", "pf"],
    "broke-first": ["p", "f", "f"],
    "broke-last": ["p", "p", "f"],
}


def names(most: int) -> list[str]:
    nights = [{name: marks[n] for name, marks in NIGHTS.items()} for n in range(3)]
    suite = only(histories(rows_of(*nights), SeriesFilter(), 20))
    return [case.key.case_id for case in worst_first(suite.cases, most)]


def test_the_worst_come_first_and_the_latest_of_these_before_the_others() -> None:
    worst = ["broke-last", "broke-first", "unsteady", "refused", "wavered", "steady"]
    assert names(6) == worst
    assert names(2) == worst[:2]


def test_where_all_are_shown_they_stay_in_their_order() -> None:
    order = [name if isinstance(name, str) else name.case_id for name in NIGHTS]
    assert names(7) == names(99) == order
