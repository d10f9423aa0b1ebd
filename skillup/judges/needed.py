"""Which models a case needs, known before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator

from skillup.judges.reading.dispatch import READ_BY_MODEL
from skillup.load.every_check import all_checks
from skillup.schema.case import Case
from skillup.schema.checks import CheckKeys


def first_read(case: Case) -> CheckKeys | None:
    """The first check of `case` that the judge's model reads; None: there is none."""
    return next((check for check in checks_of(case) if _is_read(check)), None)


def embedding_models(case: Case) -> list[str]:
    """The models that `similar` takes its vectors from, each once."""
    found = (check.similar.embedding_model for check in checks_of(case) if check.similar)
    return list(dict.fromkeys(model for model in found if model is not None))


def checks_of(case: Case) -> Iterator[CheckKeys]:
    """Every check of `case`, wherever it stands; checks within checks and expected outputs too."""
    yield from (check for _, check, _ in all_checks(case))
    yield from case.checks()[len(case.assertions) :]
    for turn in case.input.all_turns():
        yield from turn.checks()[len(turn.assertions) :]


def _is_read(check: CheckKeys) -> bool:
    if check.similar is not None and check.similar.embedding_model is not None:
        return False
    return any(key in READ_BY_MODEL for key, _ in check.given())
