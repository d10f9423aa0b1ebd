"""Whether skills are used when they should be, and only then: what checks say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from skillup.schema.grade import CheckResult, Grade
from skillup.schema.result import Triggering


class SkillUse(NamedTuple):
    """One observation: of one trial, one skill, and what was expected of it there."""

    skill: str
    expected: bool  # Whether it should be used
    used: bool  # Whether it was, everywhere that was expected; or anywhere that it was not


def triggering(trials: Iterable[Grade], suites: Mapping[str, Any]) -> list[Triggering]:
    """Each suite, engine and skill, from `trials` with the skill that have a verdict.

    `suites` is that of `run.json`.
    """
    uses: dict[tuple[str, str, str], list[SkillUse]] = {}
    for trial in trials:
        for use in skill_uses(trial):
            uses.setdefault((trial.suite, trial.engine, use.skill.casefold()), []).append(use)
    found = []
    for (suite, engine, name), observed in uses.items():
        counts = Counter((use.expected, use.used) for use in observed)
        hits, misses = counts[True, True], counts[True, False]
        false, rest = counts[False, True], counts[False, False]
        about = suites.get(suite) or {}
        installed = [str(n) for key in ("skills", "distractors") for n in about.get(key) or ()]
        found.append(
            Triggering(
                suite=suite,
                engine=engine,
                skill=observed[0].skill,
                used_rightly=hits,
                not_used_wrongly=misses,
                used_wrongly=false,
                not_used_rightly=rest,
                precision=hits / (hits + false) if hits + false else None,
                recall=hits / (hits + misses) if hits + misses else None,
                # 2PR/(P+R), written so that it is 0 where nothing was right.
                f1=2 * hits / (2 * hits + misses + false) if hits + misses else None,
                distractors=[one for one in installed if one.casefold() != name],
            )
        )
    return found


def skill_uses(grade: Grade) -> Iterator[SkillUse]:
    """What a trial's checks say: should a skill have been used, and was it?

    A trial is one observation for each skill and expectation, however many checks there are. Turns
    that several trials share are evidence once: in the trial that counts them.
    """
    seen: dict[tuple[str, bool], list[SkillUse]] = {}
    for use in _all_of(grade):
        seen.setdefault((use.skill.casefold(), use.expected), []).append(use)
    for (_, expected), uses in seen.items():
        used = [use.used for use in uses]
        yield uses[0]._replace(used=all(used) if expected else any(used))


def _all_of(grade: Grade) -> Iterator[SkillUse]:
    for turn in grade.turns:
        if turn.counted_by is None:
            # Not only what decided: a follow-up that heals a turn is not what the user asked first.
            for checks in (turn.checks, *(follow_up.checks for follow_up in turn.follow_ups)):
                yield from _expectations(checks, required=True)
    for check in grade.assertions:
        if check.role == "failure":
            # Reports turn a failure rule's result round: it passes where its pattern is absent.
            as_found = check.model_copy(update={"passed": not check.passed})
            yield from _expectations([as_found], required=False)
        else:
            yield from _expectations([check], required=True)


def _expectations(checks: Iterable[CheckResult], *, required: bool) -> Iterator[SkillUse]:
    """`required`: each of `checks` has to pass; else none of them may."""
    for check in checks:
        if check.kind in ("skill_used", "skill_not_used"):
            if check.skill and check.assertable and check.error is None:
                of_use = check.kind == "skill_used"
                yield SkillUse(check.skill, of_use == required, of_use == check.passed)
        elif check.kind == "none_of":
            if required or len(check.children) == 1:
                yield from _expectations(check.children, required=not required)
        elif check.kind in ("all_of", "any_of") and (
            # One of several alternatives is not expected by itself.
            required == (check.kind == "all_of") or len(check.children) == 1
        ):
            yield from _expectations(check.children, required=required)
