"""Whether a case's change is more than chance, in words."""

from __future__ import annotations

from skillup.reports.compare_totals import p_value
from skillup.trends.changes import CaseChange, could_be_sure
from skillup.trends.comparison import Comparison


def how_sure(comparison: Comparison, case: CaseChange) -> str:
    """``surely (p 0.0143)``, ``2 trials each: cannot tell``; nothing where nothing was tested."""
    if case.p is None or not case.a.judged or not case.b.judged:
        return ""
    if case.sure:
        return f"surely (p {p_value(case.p)})"
    held = f"{case.a.judged} and {case.b.judged} trials"
    if case.a.judged == case.b.judged:
        held = f"{case.a.judged} trials each"
    until_decided = comparison.until_decided
    if not could_be_sure(case.a, case.b, comparison.confidence, until_decided=until_decided):
        told = "too few to be sure" if case.change != "unsure" else "cannot tell"
        return f"{held}: {told}"
    if case.change != "unsure":
        return f"p {p_value(case.p)}: among so many changes not sure by itself"
    return f"{held}, p {p_value(case.p)}: may be chance"
