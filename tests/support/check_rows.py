"""Rows of the tables of checks: a check, what it is asked of, and whether it passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skillup.checks.context import Ask
from skillup.checks.evaluate import evaluate
from skillup.checks.registry import describe
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from tests.support.records import Recorded, make_record, make_turn


@dataclass(frozen=True, slots=True)
class Row:
    check: Check
    recorded: Recorded
    turn: int | None
    passes: bool
    ask: Ask | None = None

    def __str__(self) -> str:
        return f"{'passes' if self.passes else 'fails'}: {describe(self.check)}"

    def result(self) -> CheckResult:
        return evaluate(self.check, self.recorded.context(self.turn, self.ask))


def row(
    passes: bool,
    key: str,
    spec: Any,
    recorded: Recorded | str,
    *,
    turn: int | None = 1,
    ask: Ask | None = None,
    **beside: Any,
) -> Row:
    """The check as an author writes it, ``{key: spec, **beside}``; a bare string is the answer."""
    if isinstance(recorded, str):
        recorded = make_record(make_turn(recorded))
    check = Check.model_validate({key: spec, **beside})
    return Row(check, recorded, turn, passes, ask)
