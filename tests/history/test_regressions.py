"""What is said of a night: that something got worse, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import pytest

from skillup.history.regressions import Assessment, Levels, Night, assess, detects_a_half
from skillup.history.runs import RunOutcomes
from tests.benchmarks.simulate_nights import planted, quiet, quiet_times
from tests.support.outcomes import a_key, a_run


def a_night(run_id: str, cases: Mapping[str, str]) -> Night:
    """By case id, its trials as letters: p, f, e (error), n (not run), s (skipped)."""
    # A mapping of texts is none of texts and keys to mypy, as it may be added to.
    return Night.of(a_run(run_id, cases))  # type: ignore[arg-type]


def assessed(*nights: Mapping[str, str], accepted: str = "") -> Assessment:
    """In the night `accepted` (0, 1, …) somebody accepts the case a."""
    marks = {a_key("a"): accepted} if accepted else {}
    return assess([a_night(str(n), night) for n, night in enumerate(nights)], marks)


def said(found: Assessment) -> list[tuple[str, str | None]]:
    """Kind and case id of what is sure."""
    return sorted((one.kind, one.key.case_id if one.key else "") for one in found.regressed)


STEADY = [{"a": "ppp", "b": "ppp", "c": "ppf"}] * 20
BROKEN = {"a": "fff", "b": "ppp", "c": "fpp"}


def test_a_case_that_broke_is_told_with_what_it_is_compared_with() -> None:
    found = assessed(*STEADY, BROKEN)
    one = found.red[a_key("a")]
    assert one.p < 0.001
    assert (one.before.count, one.before.trials, one.after.count, one.after.trials) == (
        60,
        60,
        0,
        3,
    )
    assert (one.since, one.run_id) == (None, "20")
    assert found.reference(a_key("a")).judged == 60
    assert list(found.red) == [a_key("a")]


@pytest.mark.parametrize(("trials", "cases"), [(1, 1), (2, 95), (2, 96), (3, 1000)])
def test_what_is_said_of_too_few_trials_is_so(trials: int, cases: int) -> None:
    steady = {f"c{number}": "p" * trials for number in range(cases)}
    few = trials // 2
    halved = [{**steady, "c0": "p" * n + "f" * (trials - n)} for n in (few, trials - few)]
    found = assessed(*[steady] * 20, *halved)
    assert (a_key("c0") in found.red) is detects_a_half(trials, cases)


def test_a_fixed_reference_is_one_night_and_later_ones_are_tested_together() -> None:
    good, bad = {"a": "ppp", "b": "ppp", "c": "ppp"}, {"a": "fff", "b": "ppp", "c": "ppp"}
    flaky = [good, {**good, "a": "ppf"}] * 10

    def fixed(*cases: Mapping[str, str], accepted: str = "0") -> Assessment:
        nights = [a_night(str(n), night) for n, night in enumerate(cases)]
        return assess(nights, {a_key("a"): accepted}, fixed=[a_key(case) for case in "abc"])

    found = fixed(good, *flaky, bad, bad)
    assert (found.red[a_key("a")].before.trials, found.reference(a_key("a")).judged) == (3, 3)
    assert found.red[a_key("a")].since == "21"
    assert fixed(good, *flaky, *[bad] * 30, good).recovered == {a_key("a"): "21"}
    assert not fixed(good, *flaky, bad, bad, accepted="21").statements
    assert not fixed(good, *flaky, good, *flaky, good).statements


def test_a_case_that_was_accepted_and_then_never_passes_again_becomes_red() -> None:
    mild, worse = {"a": "ppf", "b": "ppp", "c": "ppf"}, {"a": "fff", "b": "ppp", "c": "ppf"}
    found = assessed(*STEADY, mild, *[worse] * 16, accepted="20").red[a_key("a")]
    assert (found.since, found.before.count, found.after.trials) == ("21", 2, 48)
    assert not assessed(*STEADY, mild, *[mild] * 30, accepted="20").red


def test_red_stays_red_until_it_recovers_or_somebody_accepts_it() -> None:
    later = [BROKEN] * 25
    found = assessed(*STEADY, *later)
    one = found.red[a_key("a")]
    assert (one.since, one.run_id) == ("20", "20")
    assert (one.before.count, one.after.count, one.after.trials) == (60, 0, 75)
    assert found.reference(a_key("a")).passed == 60
    assert not assessed(*STEADY, *later, accepted="21").red
    assert a_key("a") in assessed(*STEADY, *later, {"a": "e", "b": "ppp", "c": "ppp"}).red
    healthy = assessed(*STEADY, *later, *STEADY[:2])
    assert not healthy.red
    assert assessed(*STEADY, *later, STEADY[0]).recovered == {a_key("a"): "20"}
    # It may break again, against what it was before and is again.
    assert list(assessed(*STEADY, *later, *STEADY, BROKEN).red) == [a_key("a")]


def test_a_case_that_got_better_is_compared_with_what_it_is_now() -> None:
    bad, good = {"a": "ffp", "b": "ppp"}, {"a": "ppp", "b": "ppp"}
    found = assessed(*[bad] * 20, *[good] * 8, bad)
    assert found.reference(a_key("a")).rate == 1
    assert list(found.red) == [a_key("a")]
    assert not assessed(*[bad] * 20, bad).red


def test_one_trial_and_one_earlier_night_say_nothing_for_sure_but_many_trials_do() -> None:
    (one,) = assess([a_night("1", {"a": "p"}), a_night("2", {"a": "f"})]).statements
    assert (one.kind, one.significant) == ("fewer_passes", False)
    assert one.p > 0.2
    cases = {"a": "p" * 10, "b": "pppppfpppp", "c": "pfpfpfpfpf"}
    a, b = a_night("1", cases), a_night("2", {**cases, "a": "pfffffffff"})
    assert said(assess([a, b])) == [("fewer_passes", "a")]
    assert not assess([a, a]).statements


def test_very_many_trials_and_cases_are_no_trouble() -> None:
    before, after = {"a": "p" * 2000, "b": "pf" * 1000}, {"a": "f" * 2000, "b": "pf" * 1000}
    assert said(assess([a_night("1", before), a_night("2", after)])) == [("fewer_passes", "a")]
    before = {str(n): "ppppf" for n in range(800)}
    after = {str(n): "pppff" for n in range(800)}
    assert said(assess([a_night("1", before), a_night("2", after)])) == [("fewer_passes", "")]
    assert not assess([a_night("1", {})]).statements


def test_many_cases_that_each_fall_a_little_are_told_together() -> None:
    before = {str(n): "p" for n in range(30)}
    after = {str(n): "f" if n % 3 == 0 else "p" for n in range(30)}
    (one,) = assess([a_night("1", before), a_night("2", after)]).regressed
    assert (one.key, one.before.count, one.after.count, one.after.trials) == (None, 30, 20, 30)


def test_errors_are_told_apart_from_failures() -> None:
    assert said(assessed(*STEADY, {"a": "eee", "b": "ppp", "c": "ppf"})) == [("more_errors", "a")]
    outage = said(assessed(*STEADY, {"a": "eee", "b": "eee", "c": "eee"}))
    assert outage == [("more_errors", name) for name in ("", "a", "b", "c")]


# What trials take


def timed(run: RunOutcomes, random: Random, factor: Callable[[str], float]) -> RunOutcomes:
    """Trials of about 30 s, and 0.1 USD, `factor` times as long for each case id."""
    trials = []
    for trial in run.trials:
        took = factor(trial.key.case_id) * random.lognormvariate(0, 0.2)
        trials.append(trial._replace(duration_ms=round(30_000 * took), cost_usd=0.1))
    return replace(run, trials=tuple(trials))


def times(factors: list[Callable[[str], float]], cases: int = 10, trials: int = 3) -> Assessment:
    random = Random(3)
    nights = []
    for n, factor in enumerate(factors):
        slow = random.lognormvariate(0, 0.1)  # A slow night for all
        run = a_run(str(n), {str(case): "p" * trials for case in range(cases)})
        nights.append(Night.of(timed(run, random, lambda case, f=factor, s=slow: s * f(case))))  # type: ignore[misc]
    return assess(nights)


def steady(_: str) -> float:
    return 1


def all_slow(_: str) -> float:
    return 3


def one_slow(case: str) -> float:
    return 3 if case == "3" else 1


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ([steady] * 21, []),
        ([*[steady] * 20, one_slow, one_slow], [("slower", "3")]),
        ([*[steady] * 20, *[one_slow] * 15], [("slower", "3")]),
        ([*[steady] * 20, *[one_slow] * 5, *[steady] * 2], []),
        ([*[steady] * 20, all_slow], [("slower", "")]),
        ([*[steady] * 20, *[all_slow] * 15], [("slower", "")]),
        ([*[steady] * 20, *[all_slow] * 5, *[steady] * 2], []),
        ([steady, all_slow], []),
    ],
)
def test_what_takes_longer_is_told_until_it_does_not(
    factors: list[Callable[[str], float]], expected: list[tuple[str, str]]
) -> None:
    assert said(times(factors)) == expected


def test_two_runs_alone_tell_a_slow_case_by_many_trials_and_a_slow_suite_by_many_cases() -> None:
    assert said(times([steady, one_slow], trials=10)) == [("slower", "3")]
    assert said(times([steady, all_slow], cases=20)) == [("slower", "")]
    (one,) = times([steady, one_slow], trials=300, cases=4).regressed
    assert (one.before.trials, one.after.trials) == (300, 300)


def test_slower_and_dearer_say_by_how_much() -> None:
    (one,) = times([*[steady] * 20, all_slow]).regressed
    assert one.before.value == pytest.approx(30_000, rel=0.2)
    assert one.increase == pytest.approx(2, rel=0.3)


# Simulated nights: how often a quiet one is called worse, and how soon a case that fell is.


@pytest.mark.parametrize(
    ("cases", "trials", "nights"), [(30, 1, 1500), (30, 3, 1500), (200, 3, 200)]
)
def test_in_quiet_nights_alarms_are_as_rare_as_promised(
    cases: int, trials: int, nights: int
) -> None:
    """Of 1 %, single cases have 55 % and suites a fifth; 3 standard deviations of chance."""
    expected = 0.0075 * nights
    assert quiet(cases, trials, 15, nights, seed=5) <= expected + 3 * expected**0.5


def test_times_and_costs_raise_as_few_alarms() -> None:
    expected = 0.00075 * 600
    assert quiet_times(30, 3, 15, 600, seed=5) <= expected + 3 * expected**0.5


def test_tied_costs_are_no_news() -> None:
    random, alarms, levels = Random(1), 0, Levels((0.00045, 0.0003), 0)
    for night in range(1200):
        if night % 60 == 0:
            levels = Levels((0.00045, 0.0003), 0)
        levels.take({a_key(str(case)): [random.choice([1, 1, 2])] for case in range(5)})
        alarms += any(own.said == night % 60 for _, own in levels.worse())
    assert alarms <= 6


@pytest.mark.parametrize(("cases", "times"), [(30, 120), (200, 60)])
def test_a_fall_to_40_percent_is_caught_within_two_nights(cases: int, times: int) -> None:
    within = planted(cases, 3, 30, times, seed=5)
    assert within[1] >= 0.8 * times
