"""What was not run and why, in words; and what was not needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from skillup.reports.text import listed, money, one_line, shown_id
from skillup.schema.analysis import CaseReliability
from skillup.schema.grade import CheckResult, Grade, Judging, RunResult

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


# Trials that were held more than once: nobody should take such a pass for a clean one.


def attempt_words(attempt: int) -> str:
    """``attempt 2``; nothing of a trial that was held once."""
    return f"attempt {attempt}" if attempt > 1 else ""


def tried_again(trials: Iterable[tuple[str, int]]) -> str | None:
    """``1 trial was held more than once: asks (attempt 2)``; None: there is none.

    `trials` are what each is called, and which attempt its verdict is of.
    """
    again = [f"{name} ({attempt_words(attempt)})" for name, attempt in trials if attempt > 1]
    if not again:
        return None
    were = "1 trial was" if len(again) == 1 else f"{len(again)} trials were"
    return f"{were} held more than once: {listed(again[:_NAMED], len(again))}"


# What a reader of the table should know of turns that several trials share.


def shared_note(grades: Sequence[Grade]) -> str | None:
    """One line on the turns that were held once for several trials; None if there are none."""
    sharing = sum(any(turn.held_by is not None for turn in grade.turns) for grade in grades)
    if not sharing:
        return None
    share = f"{sharing} trials share" if sharing != 1 else "1 trial shares"
    return f"{share} turns with another trial: they were held once, and tokens and cost count once"


# What a reader should know of how judges came to what they said, and what they cost.


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
