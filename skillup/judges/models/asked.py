"""A question as its answer is kept: all that must be the same for the answer to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillup.judges.models.access import address_of, embedding_model
from skillup.judges.models.failures import CannotAskError
from skillup.judges.models.question import ModelQuestion
from skillup.judges.models.stored import Asked, form_of
from skillup.schema.judge import JudgeModel

Clean = Callable[[Any], Any]
"""Data as it will be read back from a file."""


def is_scripted(model: str) -> bool:
    """Whether it is a written-down judge."""
    return model.strip().startswith("scripted:")


def asked_of(
    question: ModelQuestion, suite: str, environment: Mapping[str, str], clean: Clean
) -> Asked:
    """`question` as its answer is kept.

    A written-down judge is another one in each suite. Which suite it is, its root tells as the
    record has it: neither the run nor the script need be there any more, or where they were.
    """
    model = question.model
    asked: dict[str, Any] = {
        "model": model.model,
        "base_url": model.base_url,
        "system": question.system,
        "prompt": question.prompt,
        "answer": form_of(question.answer),
        "sample": question.sample,
    }
    if is_scripted(model.model):
        # Scripts are edited while suites are written, and asking them costs nothing.
        return Asked(clean(asked | {"suite_root": suite}), None)
    return _shared(asked, model, environment, clean)


def embeddings_asked_of(
    model: str,
    texts: Sequence[str],
    like: JudgeModel,
    environment: Mapping[str, str],
    clean: Clean,
) -> Asked:
    """The same of the vectors of `texts`."""
    asked = {"embeddings_by": model, "base_url": like.base_url, "texts": list(texts)}
    try:
        return _shared(asked, embedding_model(model, like), environment, clean)
    except CannotAskError:  # nobody will be asked
        return Asked(clean(asked), None)


def _shared(
    asked: dict[str, Any], model: JudgeModel, environment: Mapping[str, str], clean: Clean
) -> Asked:
    try:
        address = address_of(model, environment)
    except CannotAskError:  # nobody will be asked
        return Asked(clean(asked), None)
    return Asked(clean(asked), clean(asked | {"base_url": _without_login(address)}))


def _without_login(address: str | None) -> str | None:
    """An address of the environment may have a password in it, which stands in no file."""
    if address is None or "@" not in address:
        return address
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
