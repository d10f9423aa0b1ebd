"""What was not run and why, in words; and what was not needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from skillup.reports.text import listed, shown_id
from skillup.schema.analysis import CaseReliability
from skillup.schema.grade import RunResult

_NAMED = 6


def stop_lines(result: RunResult, go_on: str) -> Iterator[str]:
    """Of a run that did not hold all it was to hold: why, what, and the command that goes on."""
    if not result.not_run:
        return
    why = f"stopped: {result.stopped.message}; " if result.stopped is not None else ""
    missing, planned = len(result.not_run), planned_trials(result)
    of = f"{missing} of {planned} trials {_were(missing)} not run"
    if missing == planned:
        of = "no trial was run"
    yield f"{why}{of}: {not_run_words(result)}"
    yield f"go on with: {go_on}"


def decided_words(cases: Sequence[CaseReliability]) -> str | None:
    """What `--until-decided` came to and saved over `cases`; None if nothing was to be decided."""
    tests = [case.decision for case in cases if case.decision is not None]
    if not tests:
        return None
    counts = sorted(test.trials for test in tests if test.verdict != "undecided")
    parts: list[str] = []
    if counts:
        span = f"{counts[0]} to {counts[-1]}" if counts[0] != counts[-1] else f"{counts[0]}"
        parts.append(f"decided after {span} trial{'s' if counts[-1] != 1 else ''}")
    saved = sum(test.saved for test in tests)
    held = sum(case.rate.held + case.error + case.skip + case.not_run for case in cases)
    if saved:
        parts.append(f"{saved} of {held + saved} trials {_were(saved)} not needed")
    undecided = [
        case for case in cases if case.decision is not None and case.decision.verdict == "undecided"
    ]
    waiting = sum(case.not_run > 0 for case in undecided)
    if waiting:
        parts.append(f"{_many_cases(waiting)} {'is' if waiting == 1 else 'are'} not decided yet")
    if len(undecided) > waiting:
        parts.append(f"{_many_cases(len(undecided) - waiting)} could not be decided")
    return "; ".join(parts)


def _many_cases(count: int) -> str:
    return f"{count} case{'s' if count != 1 else ''}"


def planned_trials(result: RunResult) -> int:
    """All that the plan had."""
    return len(result.cases) + len(result.not_run) + len(result.not_needed)


def not_run_words(result: RunResult) -> str:
    """``case-a ×3, case-b``: with engine and variant where the run has several of them."""
    parts = [job.rsplit("/", maxsplit=3)[:3] for job in result.not_run]
    engines = {engine for _, engine, _ in parts} | {grade.engine for grade in result.cases}
    variants = {variant for *_, variant in parts} | {grade.variant for grade in result.cases}
    counts: Counter[str] = Counter()
    for case, engine, variant in parts:
        label = shown_id(case)
        label += f" {engine}" if len(engines) > 1 else ""
        label += f" {variant.removesuffix('_skill')}" if len(variants) > 1 else ""
        counts[label] += 1
    labels = [label + (f" ×{n}" if n > 1 else "") for label, n in counts.items()]
    return listed(labels[:_NAMED], len(labels))


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
