"""Which models a case needs, known before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skillup.judges.reading.dispatch import READ_BY_MODEL
from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckKeys
from skillup.schema.conversation import Turn


def first_read(case: Case) -> CheckKeys | None:
    """The first check of `case` that the judge's model reads; None: there is none."""
    return next((check for check in checks_of(case) if _is_read(check)), None)


def embedding_models(case: Case) -> list[str]:
    """The models that `similar` takes its vectors from, each once."""
    found = (check.similar.embedding_model for check in checks_of(case) if check.similar)
    return list(dict.fromkeys(model for model in found if model is not None))


def checks_of(case: Case) -> Iterator[CheckKeys]:
    """Every check of `case`, wherever it stands; checks within checks too."""
    if case.expect is not None:
        yield from _all([case.expect])
    yield from _all(case.checks())
    for judge in case.all_judges():
        yield from _all([*judge.success, *judge.failure])
    yield from _in_turns(case.input.all_turns())


def _in_turns(turns: Iterable[Turn]) -> Iterator[CheckKeys]:
    for turn in turns:
        if turn.post_condition is not None:
            yield from _all([turn.post_condition])
        yield from _all(turn.checks())
        for branch in turn.branches:
            yield from _in_turns(branch.turns)
            yield from _all(branch.assertions)


def _all(checks: Iterable[CheckKeys]) -> Iterator[CheckKeys]:
    for check in checks:
        yield check
        for children in (check.any_of, check.all_of, check.none_of):
            yield from _all(children or [])
        if isinstance(check, Check):
            yield from _all(check.assertions or [])


def _is_read(check: CheckKeys) -> bool:
    if check.similar is not None and check.similar.embedding_model is not None:
        return False
    return any(key in READ_BY_MODEL for key, _ in check.given())
