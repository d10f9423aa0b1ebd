"""Cases that were held several times: how often each passed, which waver, where they fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.reports.analysis.figures import interval, passed, percent
from skillup.reports.analysis.naming import Names
from skillup.reports.analysis.sheet import MOST_ROWS, NONE, Cell, Sheet, left_out, telling
from skillup.reports.stops import decided_words
from skillup.reports.text import plain
from skillup.schema.analysis import CaseReliability, Decision

_LARGEST_K = 5
_DECIDED = {"above": ("above", "green"), "below": ("below", "red"), "undecided": ("?", "yellow")}
_BIASED = "rates of decided cases lie further from the threshold than the truth, on average"
"""As wherever trials stop at the outcome that was waited for."""
_FLAKY_NAMED = 20
_WIDEST_NAME = 40
"""To which curves are aligned; what is longer sticks out by itself."""


def trials(cases: Sequence[CaseReliability], names: Names, level: str) -> Iterator[Sheet]:
    """A table of the cases that were held, or were to be held, more than once."""
    repeated = [case for case in cases if _planned(case) > 1]
    if not repeated:
        return
    k = _k(repeated)
    # A row of dashes tells nothing, and a run that was stopped early has many.
    tried = [case for case in repeated if not _is_not_held(case)]
    decided = any(case.decision is not None for case in tried)
    lost = any(_lost(case) for case in tried)
    heads = ["case", "passed", "rate", level]
    heads += [f"pass@{k}", f"pass^{k}"] if k is not None else []
    heads += ["surely"] if decided else []
    heads += ["no verdict"] if lost else []
    sheet = Sheet("Trials", heads)
    shown, (steady,) = telling(tried, _is_steady)
    for case in shown:
        row = [Cell(names.row(case)), passed(case.rate), percent(case.rate.rate)]
        row.append(interval(case.rate))
        row += _at_k(case, k) if k is not None else []
        row += [_decision(case.decision)] if decided else []
        row += [Cell(_lost(case), "magenta")] if lost else []
        sheet.rows.append(row)
    sheet.lines += left_out(steady, "case", "that passed every time")
    sheet.lines += left_out(len(repeated) - len(tried), "case", "of which no trial was held")
    sheet.lines += _flaky(repeated, names)
    sheet.lines += _curves(repeated, names)
    sheet.lines += [Cell(line, "dim") for line in deciding(repeated)]
    yield sheet


def deciding(cases: Sequence[CaseReliability]) -> Iterator[str]:
    """What `--until-decided` came to, and how rates are to be read then; else nothing."""
    words = decided_words([case for case in cases if _planned(case) > 1])
    if words is None:
        return
    yield words
    if any(case.decision is not None and case.decision.verdict != "undecided" for case in cases):
        yield _BIASED


def _is_steady(case: CaseReliability) -> bool:
    return 0 < case.rate.passed == case.rate.held and not _lost(case)


def _is_not_held(case: CaseReliability) -> bool:
    return not case.rate.held and not case.error and not case.skip


def _planned(case: CaseReliability) -> int:
    saved = case.decision.saved if case.decision is not None else 0
    return case.rate.held + case.error + case.skip + case.not_run + saved


def _k(cases: Sequence[CaseReliability]) -> int | None:
    """A k that says more than whether all passed: half of the trials, but not less than 2."""
    held = [case.rate.held for case in cases if case.rate.held > 1]
    return min(_LARGEST_K, max(2, min(held) // 2)) if held else None


def _at_k(case: CaseReliability, k: int) -> list[Cell]:
    found = next((item for item in case.at_k if item.k == k), None)
    if found is None:
        return [NONE, NONE]
    return [percent(found.pass_at_k), percent(found.pass_hat_k)]


def _decision(decision: Decision | None) -> Cell:
    if decision is None:
        return NONE
    word, style = _DECIDED[decision.verdict]
    return Cell(f"{word} {percent(decision.threshold).text}", style)


def _lost(case: CaseReliability) -> str:
    errors = "error" if case.error == 1 else "errors"
    counts = ((case.error, errors), (case.skip, "skipped"), (case.not_run, "not run"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _flaky(cases: Sequence[CaseReliability], names: Names) -> Iterator[Cell]:
    flaky = [f"{names.row(case)} ({passed(case.rate).text})" for case in cases if case.flaky]
    if flaky:
        more = len(flaky) - _FLAKY_NAMED
        rest = f" and {more} more" if more > 0 else ""
        yield Cell(f"flaky: {', '.join(flaky[:_FLAKY_NAMED])}{rest}", "yellow")


def _curves(cases: Sequence[CaseReliability], names: Names) -> Iterator[Cell]:
    """Where conversations go wrong first; of those of one turn the table says all."""
    from rich.cells import cell_len

    curves = [
        (f"{names.row(case)}:", " → ".join(_steps(case)))
        for case in cases
        if len(case.turns) > 1
        and case.rate.held > 1
        and any(turn.first_failures for turn in case.turns)
    ]
    if curves:
        yield Cell("trials in which no turn had failed by then:")
    widths = [cell_len(plain(name)) for name, _ in curves]
    column = min(max(widths, default=0), _WIDEST_NAME)
    for (name, steps), width in zip(curves[:MOST_ROWS], widths, strict=False):
        yield Cell(f"  {name}{' ' * (column - width)}  {steps}")
    yield from left_out(len(curves) - MOST_ROWS, "more case", "in which a turn failed")


def _steps(case: CaseReliability) -> Iterator[str]:
    """The turns at which the curve falls, with the first and the last."""
    last = len(case.turns) - 1
    for place, turn in enumerate(case.turns):
        if turn.first_failures or place in (0, last):
            yield f"turn {turn.turn_number} {percent(turn.unfailed).text}"
