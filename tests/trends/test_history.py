"""How cases fared over runs, and when they began to fail."""

from __future__ import annotations

import pytest

from skillup.trends.history import CaseHistory, SuiteHistory, Wanted, histories
from skillup.trends.index.reading import CaseInRun, RunHead
from skillup.trends.outcomes import CaseKey
from skillup.trends.tallies import by_case
from tests.support.outcomes import a_key, a_run


def rows_of(*nights: dict[str, str] | dict[CaseKey, str]) -> list[CaseInRun]:
    """Runs named `1`, `2`, …, the oldest first."""
    rows = []
    for number, cases in enumerate(nights, start=1):
        run = a_run(str(number), cases)  # type: ignore[arg-type]
        head = RunHead(run.run_id, run.started_at)
        rows += [CaseInRun(head, key, own) for key, own in by_case(run.trials).items()]
    return rows


def history_of(*nights: str, last: int = 20) -> CaseHistory:
    """One case over nights, each as the letters of its trials."""
    (suite,) = histories(rows_of(*({"case": marks} for marks in nights)), Wanted(), last)
    return suite.cases[0]


@pytest.mark.parametrize(
    ("nights", "first", "last_pass", "runs", "unknown"),
    [
        (["p", "p", "f", "f"], "3", "2", 2, 0),
        (["p", "e", "f"], "3", "1", 1, 1),
        (["p", "f", "e", "f"], "2", "1", 2, 0),
        (["p", "f", "e"], "2", "1", 1, 0),
        (["e", "f", "f"], "2", None, 2, 0),
        (["ppp", "ppf"], "2", "1", 1, 0),
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
    assert failing.in_part == ("p" in nights[-1])


@pytest.mark.parametrize("nights", [["p"], ["f", "p"], ["p", "e"], ["f", "p", "e", "s"], ["e"]])
def test_errors_and_skips_are_no_failure(nights: list[str]) -> None:
    assert history_of(*nights).failing is None


def test_when_it_began_is_looked_for_before_the_runs_that_are_shown() -> None:
    history = history_of("p", "f", "f", "f", last=2)
    assert len(history.tallies) == 2
    assert history.failing is not None
    assert history.failing.first.run_id == "2"


def test_rate_and_interval_are_over_verdicts_of_the_runs_shown() -> None:
    history = history_of("fff", "ppe", "pfs", last=2)
    assert (history.passed, history.judged) == (3, 4)
    assert history.interval == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_a_case_without_a_verdict_has_no_rate() -> None:
    history = history_of("e", "s")
    assert (history.judged, history.interval, history.mean("score")) == (0, None, None)
    assert [own.state for own in history.tallies] == ["error", "skip"]


def only(suites: list[SuiteHistory]) -> SuiteHistory:
    (suite,) = suites
    return suite


def test_a_case_that_a_run_did_not_hold_has_a_gap_there() -> None:
    suite = only(histories(rows_of({"a": "p"}, {"a": "p", "b": "f"}), Wanted(), 20))
    assert [[own.state for own in case.tallies] for case in suite.cases] == [
        ["pass", "pass"],
        ["absent", "fail"],
    ]


def test_cases_that_went_long_ago_are_left_out() -> None:
    suite = only(histories(rows_of({"old": "p"}, {"new": "p"}, {"new": "p"}), Wanted(), 2))
    assert [case.key.case_id for case in suite.cases] == ["new"]


@pytest.mark.parametrize(
    ("cases", "state"),
    [
        ({"a": "p", "b": "p"}, "pass"),
        ({"a": "p", "b": "f"}, "mixed"),
        ({"a": "f", "b": "e"}, "fail"),
        ({"a": "p", "b": "e"}, "error"),
        ({"a": "s", "b": "p"}, "pass"),
    ],
)
def test_a_suite_has_a_state_in_each_run(cases: dict[str, str], state: str) -> None:
    assert only(histories(rows_of(cases), Wanted(), 20)).states() == [state]


def test_suites_cases_engines_and_variants_can_be_chosen() -> None:
    keys = {
        a_key("a"): "p",
        a_key("b"): "p",
        a_key("a", engine="other"): "p",
        a_key("a", variant="without_skill"): "p",
        a_key("a", suite="second"): "p",
    }

    def chosen(wanted: Wanted) -> list[CaseKey]:
        found = histories(rows_of(keys), wanted, 20)
        return [case.key for suite in found for case in suite.cases]

    assert len(chosen(Wanted())) == 5
    assert chosen(Wanted(suites=("sec*",))) == [a_key("a", suite="second")]
    assert chosen(Wanted(cases=("b",))) == [a_key("b")]
    assert chosen(Wanted(engines=("oth*",))) == [a_key("a", engine="other")]
    assert chosen(Wanted(variant="without_skill")) == [a_key("a", variant="without_skill")]
