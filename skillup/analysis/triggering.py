"""Whether skills are used when they should be, and only then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from skillup.analysis.observation import Observation
from skillup.history.runs import WITH_SKILL
from skillup.schema.analysis import Triggering


def triggering(trials: Iterable[Observation], suites: Mapping[str, Any]) -> list[Triggering]:
    """Each suite, engine and skill, from trials with the skill that have a verdict."""
    seen: dict[tuple[str, str, str], Counter[tuple[bool, bool]]] = {}
    spelled: dict[str, str] = {}
    for trial in trials:
        if trial.key.variant != WITH_SKILL:
            continue
        for skill, expected, used in trial.skills:
            spelled.setdefault(skill.casefold(), skill)
            place = (trial.key.suite, trial.key.engine, skill.casefold())
            seen.setdefault(place, Counter())[expected, used] += 1
    return [
        _triggering(suite, engine, spelled[name], counts, suites)
        for (suite, engine, name), counts in seen.items()
    ]


def _triggering(
    suite: str,
    engine: str,
    skill: str,
    counts: Counter[tuple[bool, bool]],
    suites: Mapping[str, Any],
) -> Triggering:
    hits, misses = counts[True, True], counts[True, False]
    false, rest = counts[False, True], counts[False, False]
    about = suites.get(suite) or {}
    installed = [str(n) for key in ("skills", "distractors") for n in about.get(key) or ()]
    beside = [name for name in installed if name.casefold() != skill.casefold()]
    return Triggering(
        suite=suite,
        engine=engine,
        skill=skill,
        used_rightly=hits,
        not_used_wrongly=misses,
        used_wrongly=false,
        not_used_rightly=rest,
        precision=hits / (hits + false) if hits + false else None,
        recall=hits / (hits + misses) if hits + misses else None,
        # 2PR/(P+R), written so that it is 0 where nothing was right.
        f1=2 * hits / (2 * hits + misses + false) if hits + misses else None,
        distractors=beside,
    )
