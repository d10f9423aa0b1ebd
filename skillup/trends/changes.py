"""What became of each case from run A to run B, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from skillup.trends.outcomes import CaseKey
from skillup.trends.statistics.exact import Counts, fisher_lower, least_fisher_lower, swapped
from skillup.trends.statistics.many import holm, worth_testing
from skillup.trends.tallies import ABSENT, Tally

Change = Literal[
    "newly_failing",
    "newly_passing",
    "unsure",
    "still_failing",
    "still_passing",
    "not_run",
    "skipped",
    "only_in_a",
    "only_in_b",
]
"""`unsure`: the pass rates differ, and that may be chance. `not_run`, `skipped`: no verdict in A or
in B, because of an error or the run's end; or by the case's own rules. `still_failing`: in both as
often, and not always passed."""

THREEFOLD = 3
"""What a p of Fisher's test counts for where runs were held `--until-decided`. The test takes the
numbers of trials as given, but there they depend on the outcomes: with up to 150 in each, p <= x
then is up to 2.8 times as likely as x for an unchanged case. That is counted out, not estimated."""


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case in both runs."""

    key: CaseKey
    a: Tally
    b: Tally
    change: Change
    sure: bool = False
    """A newly failing or newly passing case: the difference is more than chance at the stated
    confidence. False there: it counts as it was observed."""
    p: float | None = None
    """Of Fisher's one-sided test in the direction seen, threefold where trials depended on their
    outcomes; None: held once in each run, or equal."""
    p_corrected: float | None = None
    """By Holm for all cases tested; None: no result of its could have been sure."""

    @property
    def counts(self) -> Counts:
        """Its verdicts, for the tests."""
        return Counts(self.a.passed, self.a.judged, self.b.passed, self.b.judged)


def changes(
    before: Mapping[CaseKey, Tally],
    after: Mapping[CaseKey, Tally],
    confidence: float,
    *,
    until_decided: bool = False,
) -> list[CaseChange]:
    """Every case of either run: those of B in its order, then those that only A has.

    A case held once in each run changes as observed. With more trials, it is newly failing if its
    pass rate is surely lower: Fisher's exact test, one-sided, corrected by Holm over the cases that
    could come out at all. A case that passed every time before and fails every time now always
    counts; where so few trials could not make that sure, it counts as observed. `until_decided`:
    how often a case was held, in one of the runs or both, depended on how it did.
    """
    keys = [*after, *(key for key in before if key not in after)]
    pairs = [(key, before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys]
    tested = [pair for pair in pairs if pair[1].judged and pair[2].judged]
    counts = [_counts(a, b) for _, a, b in tested]
    times = THREEFOLD if until_decided else 1
    alpha = _alpha(confidence)
    worse = _corrected(counts, alpha, times)
    better = _corrected([swapped(c) for c in counts], alpha, times)
    corrected = {
        key: (down, up) for (key, _, _), down, up in zip(tested, worse, better, strict=True)
    }
    none = (None, None)
    return [_change(key, a, b, corrected.get(key, none), alpha, times) for key, a, b in pairs]


def _alpha(confidence: float) -> float:
    """The chance of a false alarm; p-values that it equals but for rounding are within it."""
    return 1 - confidence + 1e-9


def _counts(a: Tally, b: Tally) -> Counts:
    return Counts(a.passed, a.judged, b.passed, b.judged)


def _corrected(counts: Sequence[Counts], alpha: float, times: int) -> list[float | None]:
    """Corrected p that each case got worse; None: it was not tested. `times`: what a p counts for.

    Held once in each run, nothing about a single case can be sure.
    """
    several = [i for i, c in enumerate(counts) if c.held_a > 1 or c.held_b > 1]
    kept = worth_testing([times * least_fisher_lower(counts[i]) for i in several], alpha)
    chosen = [i for i, keep in zip(several, kept, strict=True) if keep]
    result: list[float | None] = [None] * len(counts)
    p_values = holm([times * fisher_lower(counts[i]) for i in chosen])
    for i, p in zip(chosen, p_values, strict=True):
        result[i] = p
    return result


def _change(
    key: CaseKey,
    a: Tally,
    b: Tally,
    corrected: tuple[float | None, float | None],
    alpha: float,
    times: int,
) -> CaseChange:
    if a.state == "absent" or b.state == "absent":
        return CaseChange(key, a, b, "only_in_b" if a.state == "absent" else "only_in_a")
    rate_a, rate_b = a.rate, b.rate
    if rate_a is None or rate_b is None:
        skipped = "skip" in (a.state, b.state) and not {"error", "not_held"} & {a.state, b.state}
        return CaseChange(key, a, b, "skipped" if skipped else "not_run")
    if rate_a == rate_b:
        return CaseChange(key, a, b, "still_passing" if rate_a == 1 else "still_failing")
    down = rate_b < rate_a
    change: Change = "newly_failing" if down else "newly_passing"
    if a.judged == b.judged == 1:
        return CaseChange(key, a, b, change)
    counts = _counts(a, b)
    p = min(1.0, times * fisher_lower(counts if down else swapped(counts)))
    p_corrected = corrected[0] if down else corrected[1]
    sure = p_corrected is not None and p_corrected <= alpha
    if sure or {rate_a, rate_b} == {0.0, 1.0}:
        return CaseChange(key, a, b, change, sure, p, p_corrected)
    return CaseChange(key, a, b, "unsure", False, p, p_corrected)


def could_be_sure(a: Tally, b: Tally, confidence: float, *, until_decided: bool = False) -> bool:
    """Whether so many trials could show a difference at all: passed each time, then never."""
    flip = Counts(a.judged, a.judged, 0, b.judged)
    return (THREEFOLD if until_decided else 1) * fisher_lower(flip) <= _alpha(confidence)
