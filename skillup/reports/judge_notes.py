"""What a reader should know of how judges came to what they said, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

from skillup.reports.text import money, one_line
from skillup.schema.grade import CheckResult, Grade, Judging


def judge_lines(grade: Grade) -> Iterator[str]:
    """Votes that were not all the same, and quotations that are nowhere in what was judged."""
    for turn in grade.turns:
        for check in turn.checks:
            yield from _lines(check, f"turn {turn.turn_number}: ")
        for follow_up in turn.follow_ups:
            for check in follow_up.checks:
                yield from _lines(check, f"turn {turn.turn_number}, {follow_up.label}: ")
    for check in grade.assertions:
        yield from _lines(check, "")


def _lines(check: CheckResult, where: str) -> Iterator[str]:
    label = f"{where}{one_line(check.name, 80)}"
    if check.agreement is not None and check.agreement < 1 and not check.children:
        votes = ", ".join(f"{vote:g}" for vote in check.votes or ())
        yield f"{label}: the judge was of several minds ({votes}; agreement {check.agreement:.2f})"
    for note in check.notes:
        if "quotation" in note:
            yield f"{label}: {one_line(note, 160)}"
    for child in check.children:
        yield from _lines(child, where)


def judging_cost(judging: Judging | None) -> str | None:
    """``judges: 12 calls (3 from the cache), $0.0213``; None if nobody was asked."""
    if judging is None or not judging.calls:
        return None
    cached = f" ({judging.cached_calls} from the cache)" if judging.cached_calls else ""
    calls = "call" if judging.calls == 1 else "calls"
    cost = f", {money(judging.cost_usd)}" if judging.cost_usd is not None else ""
    return f"judges: {judging.calls} {calls}{cached}{cost}"
