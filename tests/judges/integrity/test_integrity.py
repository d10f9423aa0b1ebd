"""No verdict without its ground: a mutated record flips exactly the checks that depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import anyio
import pytest

from skillup.judges import grade
from skillup.judges.evaluate import JudgeRequest, UsageTracker
from skillup.schema.case import Case
from skillup.schema.checks import CHECK_FIELDS
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import Record
from tests.judges.integrity.reference import MUTATIONS, NAMING, PLACES, ROWS, case, reference

CASE = Case.model_validate(case())
Name = str | tuple[str, str]


class NeedleReader:
    """Judges that say yes where the word after ``needle:`` is in what they are asked about."""

    async def answer(self, inquiry: JudgeRequest, usage: UsageTracker) -> Sequence[CheckResult]:
        turn = inquiry.context.turn
        turns = inquiry.context.record.turns if turn is None else [turn]
        text = "\n".join(held.response for held in turns)
        asked = [
            (check.name or "", check.key, check.model_dump_json(exclude_unset=True))
            for check in inquiry.checks
        ]
        if inquiry.judge is not None:
            judge = inquiry.judge.type or "rule_based"
            asked = [(judge, judge, inquiry.judge.model_dump_json())]
        found: list[CheckResult] = []
        for name, kind, words in asked:
            needle = re.search(r"needle: (\w+)", words)
            assert needle is not None
            yes = needle[1] in text
            found.append(
                CheckResult(name=name, kind=kind, passed=yes, score=yes, role=inquiry.role)
            )
        return found


def graded(record: Record) -> Grade:
    recorded = replace(reference(), record=record)
    return anyio.run(
        lambda: grade(record, recorded.read_file, NeedleReader(), case=CASE), backend="asyncio"
    )


def results(grade: Grade) -> Iterator[tuple[Name, bool]]:
    """By its name; what stands in a place of its own: by role and key."""
    for result in [*(c for turn in grade.turns for c in turn.checks), *grade.assertions]:
        if result.role == "assertion":
            yield result.name, result.passed
        else:
            yield (result.role, result.kind), result.passed


PASSING = dict(results(graded(reference().record)))
DEPENDING: dict[Name, frozenset[str]] = {
    **{row.name: row.killed_by for row in [*ROWS, *NAMING]},
    **{place: frozenset(killed_by) for place, killed_by in PLACES.items()},
}


def test_everything_passes_on_the_reference() -> None:
    assert graded(reference().record).status == "PASS"
    assert set(PASSING) == set(DEPENDING)
    assert all(PASSING.values())


def test_every_check_of_the_language_is_here() -> None:
    assert {row.key for row in [*ROWS, *NAMING]} == set(CHECK_FIELDS)


def test_every_check_depends_on_something_and_every_mutation_matters() -> None:
    told = {name for killed_by in DEPENDING.values() for name in killed_by}
    assert told == set(MUTATIONS)
    assert [name for name, killed_by in DEPENDING.items() if not killed_by] == []


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_flips_exactly_the_checks_that_depend_on_it_and_no_mutant_passes(
    mutation: str,
) -> None:
    grade = graded(MUTATIONS[mutation](reference().record))

    flipped = {name for name, passed in results(grade) if not passed}
    expected = {name for name, killed_by in DEPENDING.items() if mutation in killed_by}
    assert flipped == expected, f"survived: {expected - flipped}; too many: {flipped - expected}"
    assert grade.status == ("ERROR" if mutation == "an error in turn 3" else "FAIL")
