"""How often nights are called worse without reason, and how soon with one, by simulation:
`python -m tests.benchmarks.simulate_nights` prints the table of docs/statistics.md.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from random import Random

from skillup.history.counts import GoodTrials
from skillup.history.regressions import Levels
from skillup.history.runs import CaseKey

CONFIDENCE = 0.99
SCORED = 20
"""Nights after each history in which alarms are counted."""
PLANTED = 6
"""Cases that fall after each history, each by itself."""


def keys(cases: int) -> list[CaseKey]:
    return [CaseKey("suite", str(number), "engine", "with_skill") for number in range(cases)]


def pass_rates(random: Random, cases: int) -> list[float]:
    """Three of five always pass, one nearly so, the rest fail more often."""
    ends = {0.6: (1.0, 1.0), 0.8: (0.95, 1.0), 0.95: (0.7, 0.95), 1.0: (0.2, 0.7)}
    drawn = [random.random() for _ in range(cases)]
    return [random.uniform(*next(ends[end] for end in ends if one <= end)) for one in drawn]


def a_night(random: Random, rates: Sequence[float], trials: int) -> dict[CaseKey, tuple[int, int]]:
    return {
        key: (sum(random.random() < rate for _ in range(trials)), trials)
        for key, rate in zip(keys(len(rates)), rates, strict=True)
    }


def after(random: Random, rates: Sequence[float], trials: int, history: int) -> GoodTrials:
    level = 1 - CONFIDENCE
    counts = GoodTrials((0.55 * level, 0.2 * level), 1)
    for _ in range(history):
        counts.take(a_night(random, rates, trials), last=False)
    return counts


def quiet(cases: int, trials: int, history: int, nights: int, seed: int) -> int:
    """In how many of `nights` in which nothing changed something new is said to be worse."""
    random, alarms = Random(seed), 0
    for _ in range(nights // SCORED):
        rates = pass_rates(random, cases)
        counts = after(random, rates, trials, history)
        for night in range(history, history + SCORED):
            counts.take(a_night(random, rates, trials), last=False)
            said = [own.said for own in counts.suites.values()]
            said += [case.fell.said for case in counts.cases.values() if case.fell]
            alarms += night in said
    return alarms


def planted(
    cases: int, trials: int, history: int, times: int, seed: int, left: float = 0.4
) -> tuple[int, int]:
    """How many of `times` a case that always passed, and passes with the rate `left` from then on,
    is called worse in the first night, and by the second.
    """
    random, first, second = Random(seed), 0, 0
    for _ in range(times // PLANTED):
        rates = pass_rates(random, cases)
        steady = pickle.dumps(after(random, rates, trials, history))
        perfect = [number for number, rate in enumerate(rates) if rate == 1]
        for number in random.sample(perfect, PLANTED):
            fallen = [left if place == number else rate for place, rate in enumerate(rates)]
            counts: GoodTrials = pickle.loads(steady)
            counts.take(a_night(random, fallen, trials), last=False)
            first += counts.cases[keys(cases)[number]].fell is not None
            counts.take(a_night(random, fallen, trials), last=False)
            second += counts.cases[keys(cases)[number]].fell is not None
    return first, second


def quiet_times(cases: int, trials: int, history: int, nights: int, seed: int) -> int:
    """As :func:`quiet`, of what trials take: with slow nights and slow trials."""
    random, alarms = Random(seed), 0

    def times() -> Mapping[CaseKey, Sequence[float]]:
        slow = random.lognormvariate(0, 0.15)
        found = {}
        for key in keys(cases):
            own = slow * random.lognormvariate(0, 0.1)  # The case's own, in this night
            found[key] = [
                own * random.lognormvariate(0, 0.3) * (5 if random.random() < 0.03 else 1)
                for _ in range(trials)
            ]
        return found

    for _ in range(nights // SCORED):
        levels = Levels((0.00045, 0.0003), 0)
        for night in range(history + SCORED):
            levels.take(times())
            alarms += night >= history and any(own.said == night for _, own in levels.worse())
    return alarms


def main(scale: int) -> None:
    print("| cases | trials | history | alarms | caught at once | within two nights |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for cases in (30, 200):
        for trials in (1, 3, 5, 10):
            for history in (15, 30):
                nights = scale * (2000 if cases == 30 else 400)
                times = scale * (120 if cases == 30 else 60)
                alarms = quiet(cases, trials, history, nights, seed=trials)
                within = planted(cases, trials, history, times, seed=trials)
                shares = f"{within[0] / times:.0%} | {within[1] / times:.0%}"
                row = f"| {cases} | {trials} | {history} | {alarms / nights:.2%} | {shares} |"
                print(row, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5)
