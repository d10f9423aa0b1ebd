"""Templates in checks: they are not filled in there, which a check does not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from skillup.load.every_check import Loc, all_checks
from skillup.schema import templates
from skillup.schema.case import Case

_COMPOUND = ("any_of", "all_of", "none_of")
"""Their children are checks of their own."""


def templates_in_checks(
    case: Case, text: str, variables: frozenset[str]
) -> Iterator[tuple[Loc, str]]:
    r"""Where a check has ``<<name>>`` of a variable of its case, and the name.

    Such a check looks for the signs themselves. That is meant where ``\<<name>>`` in the `text` of
    the file has an agent say them.
    """
    if "<<" not in text:
        return
    known = _names(case, variables)
    for loc, keys, _ in all_checks(case):
        for key, spec in keys.given():
            if key not in _COMPOUND:
                for name in dict.fromkeys(_names_within(spec)):
                    if name in known and f"\\<<{name}>>" not in text:
                        yield (*loc, key), name


def _names(case: Case, variables: frozenset[str]) -> set[str]:
    turns = case.input.turns or ()
    rules = [rule for message in (*case.input.history, *turns) for rule in message.capture]
    rebuilt = [name for rule in case.input.reconstruct for name in rule.variables()]
    return {*case.vars, *variables, *(rule.variable for rule in rules), *rebuilt}


def _names_within(spec: Any) -> Iterator[str]:
    if isinstance(spec, str):
        yield from templates.names_in(spec)
    elif isinstance(spec, BaseModel):
        for name in spec.model_fields_set:
            yield from _names_within(getattr(spec, name))
    elif isinstance(spec, dict):
        for value in spec.values():
            yield from _names_within(value)
    elif isinstance(spec, list | tuple):
        for value in spec:
            yield from _names_within(value)
