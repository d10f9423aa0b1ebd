"""What is said of a night: that something got worse, and how sure that is."""

from __future__ import annotations

from skillup.history.regressions import Assessment, Night, assess, assess_pair
from tests.support.outcomes import a_key, a_run


def assessed(*nights: dict[str, str], confidence: float = 0.99) -> Assessment:
    """By case id, the trials of each night, as letters: p, f, e (error), n (not run), s."""
    # A dict of texts is none of texts and keys to mypy, as it may be added to.
    runs = [a_run(str(n), night) for n, night in enumerate(nights)]  # type: ignore[arg-type]
    return assess([Night.of(run) for run in runs], confidence=confidence)


def test_a_case_that_broke_is_told_with_what_it_is_compared_with() -> None:
    steady = [{"a": "ppp", "b": "ppp"}] * 20
    found = assessed(*steady, {"a": "fff", "b": "ppp"})
    (one,) = found.statements
    assert one.significant
    assert (one.before.count, one.before.trials, one.after.count) == (60, 60, 0)
    assert list(found.red) == [a_key("a")]


def test_with_one_trial_and_one_earlier_night_nothing_is_sure() -> None:
    a, b = (Night.of(a_run(name, {"a": letter})) for name, letter in (("1", "p"), ("2", "f")))
    (one,) = assess_pair(a, b).statements
    assert (one.kind, one.significant, round(one.p, 9)) == ("fewer_passes", False, 0.5)
