"""Intervals of simulated runs, by the lots that the scripted agent itself draws.

Everything is seeded: the same trials pass each time. Tolerances are three standard deviations of
the number of runs that are covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb, sqrt
from random import Random
from statistics import fmean

import pytest

from skillup.analysis.uplift import uplift_interval
from skillup.engines.scripted_agent.script import choose_reply
from skillup.stats.exact import PassCounts
from skillup.stats.paired import bootstrap_interval, mean_difference
from skillup.stats.proportions import wilson
from tests.support.graded import seed_of

RUNS = 600


class Agent:
    """The scripted agent of a run, without its process: what it would answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._environment = monkeypatch

    def passes(self, rate: float, job: str, trials: int) -> int:
        """How many of `trials` are answered well, by a script that does so with chance `rate`."""
        replies: list[dict[str, object]] = [{"say": "yes", "probability": rate}, {"say": "no"}]
        return sum(self._says(replies, f"{job}/{n}") == "yes" for n in range(trials))

    def _says(self, replies: list[dict[str, object]], job_id: str) -> object:
        self._environment.setenv("SKILLUP_SCRIPTED_SEED", seed_of(job_id))
        chosen = choose_reply(replies, "well?", 1, ())
        assert chosen is not None
        return chosen[0]["say"]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(monkeypatch)


def chances(rate: float, n: int) -> list[float]:
    """Of 0 to n passes."""
    return [comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]


def tolerance(covered: float, runs: int = RUNS) -> float:
    return 3 * sqrt(covered * (1 - covered) / runs) + 1e-9


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.8, 0.9])
def test_wilsons_interval_covers_the_rate_of_a_case_as_often_as_it_says(
    agent: Agent, rate: float
) -> None:
    trials = 20
    expected = sum(
        chance
        for k, chance in enumerate(chances(rate, trials))
        if wilson(k, trials).low <= rate <= wilson(k, trials).high
    )
    seen = fmean(
        low <= rate <= high
        for run in range(RUNS)
        for low, high in [wilson(agent.passes(rate, f"{run}/case", trials), trials)]
    )

    assert expected == pytest.approx(0.95, abs=0.03)
    assert seen == pytest.approx(expected, abs=tolerance(expected))


@pytest.mark.parametrize("rates", [(0.8, 0.8), (0.6, 0.9), (0.2, 0.7)])
def test_newcombes_interval_covers_the_uplift_of_a_case_as_often_as_it_says(
    agent: Agent, rates: tuple[float, float]
) -> None:
    without, with_skill = rates
    trials, true = 20, with_skill - without
    expected = sum(
        p * q
        for a, p in enumerate(chances(without, trials))
        for b, q in enumerate(chances(with_skill, trials))
        if _holds(mean_difference([PassCounts(a, trials, b, trials)]), true)
    )
    seen = fmean(
        _holds(mean_difference([c]), true) for (c,) in _suites(agent, [rates], trials, RUNS)
    )

    assert expected == pytest.approx(0.95, abs=0.03)
    assert seen == pytest.approx(expected, abs=tolerance(expected))


@pytest.mark.parametrize(
    "rates",
    [
        [(0.5, 0.8)] * 4 + [(0.2, 0.9)] * 3 + [(0.9, 0.9)] * 5,
        [(0.0, 1.0)] * 6,
        [(1.0, 1.0)] * 6 + [(0.7, 0.7)] * 2,
    ],
)
def test_the_interval_of_a_suites_uplift_covers_it_at_least_as_often_as_it_says(
    agent: Agent, rates: list[tuple[float, float]]
) -> None:
    true, runs = fmean(b - a for a, b in rates), 200
    found = [uplift_interval(c, 0.95, draws=1000) for c in _suites(agent, rates, 5, runs)]
    intervals = [interval for interval in found if interval is not None]

    assert len(intervals) == runs
    covered = fmean(_holds(interval, true) for interval in intervals)
    assert covered >= 0.95 - tolerance(0.95, runs)
    # Nor is that because it says nothing.
    assert fmean(high - low for low, high in intervals) < 0.6


def test_the_bootstrap_covers_what_the_skill_adds_in_cases_like_those_held(agent: Agent) -> None:
    kinds = [(0.5, 0.8), (0.2, 0.9), (0.9, 0.9), (0.4, 0.3)]
    true, runs = fmean(b - a for a, b in kinds), 300
    covered = []
    for run in range(runs):
        random = Random(run)
        (counts,) = _suites(agent, random.choices(kinds, k=12), 5, 1, f"{run}/")
        differences = [c.passed_b / c.held_b - c.passed_a / c.held_a for c in counts]
        interval = bootstrap_interval(differences, draws=1000)
        assert interval is not None
        covered.append(_holds(interval, true))

    assert fmean(covered) == pytest.approx(0.95, abs=tolerance(0.95, runs))


def _holds(interval: tuple[float, float], true: float) -> bool:
    return interval[0] - 1e-9 <= true <= interval[1] + 1e-9


def _suites(
    agent: Agent, rates: Sequence[tuple[float, float]], trials: int, runs: int, name: str = ""
) -> Iterator[list[PassCounts]]:
    """The cases of each run, held with these chances without and with the skill."""
    for run in range(runs):
        yield [
            PassCounts(
                agent.passes(without, f"{name}{run}/{case}/without", trials), trials,
                agent.passes(with_skill, f"{name}{run}/{case}/with", trials), trials,
            )
            for case, (without, with_skill) in enumerate(rates)
        ]  # fmt: skip
