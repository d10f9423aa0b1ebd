"""How far two judges say the same: the share of agreement, and Cohen's kappa.

Source: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
Measurement 20 (1960), 37-46. With p_o the observed share of agreement and p_e the share that two
judges with these shares of yes would agree by chance: kappa = (p_o - p_e) / (1 - p_e).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillup.judges.replay.verdicts import Item, Verdict


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two judges said different things of the same."""

    item: Item
    first: Verdict
    second: Verdict


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two judges, over what both were asked and both answered."""

    items: int
    agreed: int
    share: float | None
    """``agreed / items``; None: there is nothing that both answered."""
    kappa: float | None
    """-1..1; None where it is not defined: both always said the same one thing, or no items."""
    disagreements: tuple[Disagreement, ...]
    unanswered: tuple[Disagreement, ...]
    """What one of them, or both, failed to answer."""
    only_one: tuple[Item, ...]
    """What only one of them was asked: the questions depend on earlier verdicts."""


def agreement(first: Mapping[Item, Verdict], second: Mapping[Item, Verdict]) -> Agreement:
    """Compare what two judges said of the same records.

    Of a check that failed as a whole there are no criteria: it stands for those of the other judge.
    """
    first, second = _with_failed(first, second), _with_failed(second, first)
    shared = [item for item in first if item in second]
    pairs = [Disagreement(item, first[item], second[item]) for item in shared]
    answered = [p for p in pairs if p.first.passed is not None and p.second.passed is not None]
    agreed = [pair for pair in answered if pair.first.passed == pair.second.passed]
    one = [item for item in [*first, *second] if (item in first) != (item in second)]
    return Agreement(
        items=len(answered),
        agreed=len(agreed),
        share=len(agreed) / len(answered) if answered else None,
        kappa=kappa_of([(bool(p.first.passed), bool(p.second.passed)) for p in answered]),
        disagreements=tuple(p for p in answered if p.first.passed != p.second.passed),
        unanswered=tuple(p for p in pairs if p not in answered),
        only_one=tuple(one),
    )


def _with_failed(
    verdicts: Mapping[Item, Verdict], other: Mapping[Item, Verdict]
) -> Mapping[Item, Verdict]:
    """`verdicts`, a failed check replaced by the criteria that `other` has of it."""
    found: dict[Item, Verdict] = {}
    for item, verdict in verdicts.items():
        parts: list[Item] = []
        if verdict.passed is None and item not in other:
            parts = [part for part in other if part.is_part_of(item)]
        found.update(dict.fromkeys(parts or [item], verdict))
    return found


def kappa_of(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of two judges; None where it is not defined."""
    if not pairs:
        return None
    count = len(pairs)
    observed = sum(a == b for a, b in pairs) / count
    yes_first = sum(a for a, _ in pairs) / count
    yes_second = sum(b for _, b in pairs) / count
    chance = yes_first * yes_second + (1 - yes_first) * (1 - yes_second)
    if chance == 1:
        return None
    return (observed - chance) / (1 - chance)
