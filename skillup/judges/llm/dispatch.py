"""Everything that is asked about one subject, as few questions as will do, all at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

import anyio

from skillup.judges.evaluate import Judgement
from skillup.judges.llm.asking import Asking
from skillup.judges.llm.quality import read_quality
from skillup.judges.llm.relevance import read_relevance
from skillup.judges.llm.rubric import read_criteria
from skillup.judges.llm.similar import read_similar
from skillup.judges.llm.subject import ReadSubject, subject_of
from skillup.judges.models.question import AskModel
from skillup.judges.usage import UsageTracker
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

_ReadOne = Callable[[Check, ReadSubject, CheckRole, Asking], Awaitable[CheckResult]]

_ALONE: dict[str, _ReadOne] = {
    "answer_quality": read_quality,
    "similar": read_similar,
    "relevance": read_relevance,
}
"""Checks with a question (or several) of their own."""
READ_BY_MODEL = frozenset({"rubric", "expected_output", *_ALONE})
"""The keys of the checks that can be asked here."""


async def read_checks(
    inquiry: Judgement, asker: AskModel, ledger: UsageTracker
) -> list[CheckResult]:
    """A result for each of the inquiry's checks, in order; all their keys are `READ_BY_MODEL`.

    Rubrics and comparisons with an expected output are one question together. What goes wrong is
    in the results (`error`), never raised; what it took is in `ledger`.
    """
    subject = subject_of(inquiry)
    asking = Asking(asker, ledger, subject.case.judge_model)
    results: dict[int, CheckResult] = {}

    async def read(places: Sequence[int]) -> None:
        checks = [inquiry.checks[place] for place in places]
        alone = _ALONE.get(checks[0].key)
        if alone is not None:
            found = [await alone(checks[0], subject, inquiry.role, asking)]
        else:
            found = await read_criteria(checks, subject, inquiry.role, asking)
        results.update(zip(places, found, strict=True))

    async with anyio.create_task_group() as group:
        for places in _questions(inquiry.checks):
            group.start_soon(read, places)
    return [results[place] for place in range(len(inquiry.checks))]


def _questions(checks: Sequence[Check]) -> Iterator[list[int]]:
    """The places of the checks that are asked together."""
    together: list[int] = []
    for place, check in enumerate(checks):
        if check.key in _ALONE or (check.rubric is not None and check.rubric.prompt is not None):
            yield [place]
        else:
            together.append(place)
    if together:
        yield together
