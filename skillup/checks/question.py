"""What is asked, made ready once: what a check looks for does not change from record to record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skillup.checks.describe import expected, key_and_spec, title, wanted
from skillup.checks.registry import COMBINING, NAMES_ITS_TURN
from skillup.schema import templates
from skillup.schema.checks import CHECK_FIELDS, Check, CheckSet

_MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Question:
    """One key of a check or of a set of checks, and all that follows from the case alone."""

    key: str
    spec: Any
    check: Check | None
    """None: it stands in a set, where nothing can stand beside a key."""
    name: str
    expected: str
    weight: float
    required: bool
    turn: int | Literal["last"] | None
    """The turn that it names itself."""
    case_sensitive: bool | None
    """None: it does not say; as what it is part of."""
    owner: Check | CheckSet
    """Where it stands."""
    templated: bool
    """Some text of it is a template: it cannot be asked before it is :meth:`filled`."""

    def filled(self, variables: Mapping[str, str]) -> Question:
        """The question with its templates filled in; raises UnresolvedNameError."""
        spec = templates.fill(self.key, self.spec, variables)
        if self.check is None:
            assert isinstance(self.owner, CheckSet)
            return _of_set(self.owner, self.key, spec)
        return _of_check(self.check.model_copy(update={CHECK_FIELDS[self.key]: spec}))


def question_of(check: Check) -> Question:
    """What `check` asks."""
    known = _questions.get(id(check))
    if known is None:
        known = _keep(check, (_of_check(check),))
    return known[1][0]


def questions_of(checks: CheckSet) -> tuple[Question, ...]:
    """One for each key that is given, in the order of the schema."""
    known = _questions.get(id(checks))
    if known is None:
        known = _keep(checks, tuple(_of_set(checks, key, spec) for key, spec in checks.given()))
    return known[1]


_Kept = tuple[Check | CheckSet, tuple[Question, ...]]
# By identity, since to compare checks costs more than to describe them. The check is kept with its
# questions, so that no other object can get its id.
_questions: dict[int, _Kept] = {}


def _keep(asked: Check | CheckSet, questions: tuple[Question, ...]) -> _Kept:
    if len(_questions) >= _MOST_KEPT:
        _questions.clear()
    kept = _questions[id(asked)] = (asked, questions)
    return kept


def _of_check(check: Check) -> Question:
    key, spec = key_and_spec(check)
    return Question(
        key=key,
        spec=spec,
        check=check,
        name=title(key, expected(key, spec), check) if check.name is None else check.name,
        expected=wanted(key, spec),
        weight=check.weight,
        required=check.required,
        turn=spec.turn if key in NAMES_ITS_TURN else check.turn,
        case_sensitive=check.case_sensitive if "case_sensitive" in check.model_fields_set else None,
        owner=check,
        templated=_templated(check, key, spec),
    )


def _of_set(checks: CheckSet, key: str, spec: Any) -> Question:
    return Question(
        key=key,
        spec=spec,
        check=None,
        name=f"{key} {expected(key, spec)}",
        expected=wanted(key, spec),
        weight=1.0,
        required=False,
        turn=spec.turn if key in NAMES_ITS_TURN else None,
        case_sensitive=checks.case_sensitive,
        owner=checks,
        templated=_templated(checks, key, spec),
    )


def _templated(owner: Check | CheckSet, key: str, spec: Any) -> bool:
    # What stands in a compound check is filled in by itself: it may be asked of another turn.
    return (
        not owner.literal
        and key not in COMBINING
        and any(
            templates.has_templates(text, braces=braces)
            for text, braces in templates.texts_of_check(key, spec)
        )
    )
