"""Which cases of a long history a person wants to see first."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.trends.history import CaseHistory
from skillup.trends.outcomes import WITH_SKILL

_STEADY = 4


def most_telling(cases: Sequence[CaseHistory], most: int) -> list[CaseHistory]:
    """`most` of the cases, all in their own order if there are no more than that.

    Else the worst come first: those that fail or fell, the latest to begin before the others; then
    what failed in its newest run, had no verdict there, or did not always pass. The rest, and what
    was held without the skill, is as it was.
    """
    if len(cases) <= most:
        return list(cases)
    latest_first = sorted(cases, key=_began, reverse=True)
    return sorted(latest_first, key=_rank)[:most]


def _began(case: CaseHistory) -> str:
    worse = case.failing or case.fell
    return worse.first.started_at if worse else ""


def _rank(case: CaseHistory) -> int:
    if case.key.variant != WITH_SKILL:
        return _STEADY
    if case.failing or case.fell:
        return 0
    newest = next((own.state for own in case.tallies[::-1] if own.state != "absent"), "absent")
    if newest in ("fail", "mixed"):
        return 1
    if newest in ("error", "not_held"):
        return 2
    return 3 if case.total.failed else _STEADY
