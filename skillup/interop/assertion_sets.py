"""Groups of assertions that pass from a share of their weight."""

from __future__ import annotations

from itertools import combinations

from skillup.interop.assertion import Assertion, Check, Parts, joined, one, with_weight

_MOST_MEMBERS = 6
_NEARLY = 1e-9


def grouped(assertion: Assertion, members: Parts) -> Parts:
    """``assert-set``: `members` are its converted assertions with their weights."""
    threshold = assertion.number("threshold")
    aggregator = assertion.node.get("aggregator")
    if aggregator is not None and (own := aggregator.get("threshold")) is not None:
        threshold = own.number()
    if not members:
        return assertion.drop("nothing of the group came over", "left out")
    if threshold is not None and threshold <= 0:
        assertion.node.changed("a group that always passes", "it is shown, with the weight 0")
        return [({**_all(members), "weight": 0}, 1.0)]
    if threshold is not None and threshold < 1 and assertion.counts_by_score:
        assertion.node.changed(
            f"a group that passes from a score of {threshold}",
            "its score counts as before; it is shown as failed unless all of it passes",
        )
        return one(_all(members))
    if threshold is None or threshold >= 1:
        return one(_all([member for member in members if member[1]] or members))
    return _from_share(assertion, members, threshold)


def _all(members: Parts) -> Check:
    return {"all_of": [with_weight(check, share) for check, share in members]}


def _from_share(assertion: Assertion, members: Parts, threshold: float) -> Parts:
    """The smallest selections that reach the threshold: one of them has to pass as a whole."""
    if len(members) > _MOST_MEMBERS:
        assertion.node.changed(
            f"a group of {len(members)} that passes from a score of {threshold}",
            "here all of them must pass",
        )
        return one(_all(members))
    needed = threshold * sum(weight for _, weight in members) - _NEARLY
    smallest: list[frozenset[int]] = []
    for size in range(1, len(members) + 1):
        for chosen in map(frozenset, combinations(range(len(members)), size)):
            enough = sum(members[index][1] for index in chosen) >= needed
            if enough and not any(less <= chosen for less in smallest):
                smallest.append(chosen)
    said = f"a group that passes from a score of {threshold}"
    idle = [check for i, (check, _) in enumerate(members) if not any(i in s for s in smallest)]
    if idle:
        names = ", ".join(f"`{check.get('name') or next(iter(check))}`" for check in idle)
        assertion.node.changed(said, f"left out, because they cannot decide: {names}")
    else:
        assertion.node.changed(said, "the same selections pass; the score is 1 or 0, not a mean")
    options = [joined([(members[i][0], 1.0) for i in sorted(chosen)]) for chosen in smallest]
    return one(options[0] if len(options) == 1 else {"any_of": options})
