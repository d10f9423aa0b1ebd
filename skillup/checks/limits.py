"""Checks of what it took: tokens, money, time, the exit code."""

from __future__ import annotations

from collections.abc import Callable

from skillup.checks.context import CheckSubject, Finding, not_assertable
from skillup.schema.record import TurnRecord


def min_tokens(spec: int, subject: CheckSubject) -> Finding:
    """At least so many output tokens, by the engine's own count."""
    total = _total(subject, _output_tokens)
    if total is None:
        return not_assertable("the engine did not tell how many tokens it took")
    return Finding(total >= spec, f"{total:g} output tokens")


def max_tokens(spec: int, subject: CheckSubject) -> Finding:
    """At most so many output tokens, by the engine's own count."""
    total = _total(subject, _output_tokens)
    if total is None:
        return not_assertable("the engine did not tell how many tokens it took")
    return Finding(total <= spec, f"{total:g} output tokens")


def max_cost_usd(spec: float, subject: CheckSubject) -> Finding:
    """At most so many dollars."""
    total = _total(subject, lambda turn: turn.cost_usd)
    if total is None:
        return not_assertable("the engine did not tell what it cost")
    return Finding(total <= spec, f"${total:.6g}")


def max_duration_seconds(spec: float, subject: CheckSubject) -> Finding:
    """At most so many seconds, from the message to the answer."""
    seconds = sum(turn.duration_ms for turn in subject.turns) / 1000
    return Finding(seconds <= spec, f"{seconds:.3f} s")


def exit_code(spec: int, subject: CheckSubject) -> Finding:
    """The agent's process (of the last turn) ended with this code."""
    process = subject.last.process
    if process is None or process.exit_code is None:
        signal = f": it was ended by signal {process.signal}" if process and process.signal else ""
        return not_assertable(f"the agent's process has no exit code{signal}")
    return Finding(process.exit_code == spec, f"exit code {process.exit_code}")


def _output_tokens(turn: TurnRecord) -> int | None:
    return None if turn.usage is None else turn.usage.output_tokens


def _total(subject: CheckSubject, part: Callable[[TurnRecord], float | None]) -> float | None:
    """The sum over the turns; None if one of them did not tell its part."""
    total: float = 0
    for turn in subject.turns:
        value = part(turn)
        if value is None:
            return None
        total += value
    # Sums of cents are not exact in binary: 0.1 + 0.2 must still be within 0.3.
    return round(total, 9)
