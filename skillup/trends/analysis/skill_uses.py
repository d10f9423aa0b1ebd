"""What a trial's checks say of skills: should it have been used, and was it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from skillup.checks.describe import skill_asked
from skillup.schema.grade import CheckResult, Grade

_USED, _NOT_USED = "skill_used", "skill_not_used"


class SkillUse(NamedTuple):
    """One observation: of one trial, one skill, and what was expected of it there."""

    skill: str
    expected: bool
    """Whether it should be used."""
    used: bool
    """Whether it was, everywhere that was expected; or anywhere that it was not."""


def skill_uses(grade: Grade) -> Iterator[SkillUse]:
    """A trial is one observation for each skill and expectation, however many checks there are.

    Turns that several trials share are evidence once: in the trial that counts them.
    """
    seen: dict[tuple[str, bool], bool] = {}
    spelled: dict[str, str] = {}
    for skill, expected, used in _all_of(grade):
        name = skill.casefold()
        spelled.setdefault(name, skill)
        so_far = seen.get((name, expected))
        if so_far is None:
            seen[name, expected] = used
        else:
            seen[name, expected] = so_far and used if expected else so_far or used
    for (name, expected), used in seen.items():
        yield SkillUse(spelled[name], expected, used)


def _all_of(grade: Grade) -> Iterator[SkillUse]:
    for turn in grade.turns:
        if turn.held_by is None:
            # Not only what decided: a follow-up that heals a turn is not what the user asked first.
            asked = [turn.checks, *(follow_up.checks for follow_up in turn.follow_ups)]
            yield from _expectations(chain.from_iterable(asked), wanted=True)
    for check in grade.assertions:
        if check.role == "failure":
            # Reports turn a failure rule's result round: it passes where its pattern is absent.
            as_found = check.model_copy(update={"passed": not check.passed})
            yield from _expectations([as_found], wanted=False)
        else:
            yield from _expectations([check], wanted=True)


def _expectations(checks: Iterable[CheckResult], *, wanted: bool) -> Iterator[SkillUse]:
    """`wanted`: each of `checks` is to hold; else none of them is."""
    for check in checks:
        if check.kind in (_USED, _NOT_USED):
            if check.assertable and check.error is None:
                about_use = check.kind == _USED
                yield SkillUse(
                    skill_asked(check.kind, check.expected),
                    about_use == wanted,
                    about_use == check.passed,
                )
        elif check.kind == "none_of":
            if wanted or len(check.children) == 1:
                yield from _expectations(check.children, wanted=not wanted)
        elif check.kind in ("all_of", "any_of"):
            # One of several alternatives is not expected by itself.
            each_is_told = wanted == (check.kind == "all_of")
            if each_is_told or len(check.children) == 1:
                yield from _expectations(check.children, wanted=wanted)
