"""A baseline that only one of two runs has: nothing to compare with, and no news about any case."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.trends.changes import CaseChange
from skillup.trends.outcomes import WITH_SKILL, CaseKey, RunOutcomes


def is_lone_baseline(key: CaseKey, other: RunOutcomes) -> bool:
    """Whether a run's case is one of a baseline, and the other run was held without any."""
    return key.variant != WITH_SKILL and {t.key.variant for t in other.trials} == {WITH_SKILL}


def without_lone_baseline(
    cases: Sequence[CaseChange], a: RunOutcomes, b: RunOutcomes
) -> tuple[list[CaseChange], list[str]]:
    """`cases` of the comparison of `a` and `b`, and a sentence for people where any were left out.

    Of a run that was held with the skill only, all cases of the other's baseline would be missing.
    """
    kept, notes = list(cases), []
    for name, run, other, change in (("A", a, "B", "only_in_b"), ("B", b, "A", "only_in_a")):
        lone = [c for c in kept if c.change == change and is_lone_baseline(c.key, run)]
        if lone:
            gone = {case.key for case in lone}
            kept = [case for case in kept if case.key not in gone]
            count = f"{len(lone)} case{'s' if len(lone) != 1 else ''}"
            notes.append(
                f"{name} was held without --baseline: {count} that {other} held without the skill "
                f"{'are' if len(lone) != 1 else 'is'} left out"
            )
    return kept, notes
