"""Tallies of several cases or runs as one."""

from __future__ import annotations

from random import Random

import pytest

from skillup.history.tallies import ABSENT, tally, together
from tests.support.outcomes import a_key, trials_of


@pytest.mark.parametrize("seed", range(20))
def test_together_tallies_are_those_of_all_the_trials(seed: int) -> None:
    random = Random(seed)
    groups = [
        trials_of(
            a_key(str(number)),
            "".join(random.choices("pfesn", k=random.randrange(6))),
            cost=random.choice([None, 0.0, 0.25, 1.5]),
        )
        for number in range(4)
    ]
    found = together(tally(group) for group in groups)
    whole = tally(trial for group in groups for trial in group)
    for field in ("passed", "failed", "errors", "skipped", "not_held", "priced"):
        assert getattr(found, field) == getattr(whole, field)
    for mean in (found.score, whole.score), (found.cost_usd, whole.cost_usd):
        assert mean[0] == pytest.approx(mean[1])
    assert found.duration_ms == whole.duration_ms


def test_nothing_together_is_nothing() -> None:
    assert together([]) == together([ABSENT, ABSENT]) == ABSENT
