"""Simulated nights: regressions are found, and noise stays quiet at the stated rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from skillup.history.comparison import CaseChange, Comparison, changes, counts_of
from skillup.history.runs import CaseKey, CaseTally, RunOutcomes, by_case
from skillup.stats import side_of, stratified
from tests.support.outcomes import a_key, a_run, trials_of

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
