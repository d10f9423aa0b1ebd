"""The plan: cases × profiles × variants × trials → jobs. Pure: it reads and starts nothing."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skillup.load.model import LoadedCase, LoadedSuite
from skillup.schema.profile import Profile

Variant = Literal["with_skill", "without_skill"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases, and how often."""

    case_globs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    trials: int | None = None
    """Outranks what the cases say."""
    variants: tuple[Variant, ...] = ("with_skill",)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One trial to hold."""

    id: str
    """``CASE/PROFILE/VARIANT/N``: unique in the run, and its directory there."""
    suite: LoadedSuite
    loaded: LoadedCase
    profile: Profile
    variant: Variant
    trial: int
    depends_on: tuple[str, ...]
    """Ids of jobs that must have passed before."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All jobs, each after those it depends on."""

    jobs: tuple[Job, ...]
    left_out: tuple[str, ...] = ()
    """Cases that the selection did not take."""


def make_plan(
    suites: Sequence[LoadedSuite],
    profiles: Mapping[str, Sequence[Profile]],
    selection: Selection,
) -> Plan:
    """The jobs for `suites`; `profiles` says, by suite file, which engines hold its cases.

    A case that others depend on comes first; the dependency is on the same profile, variant and
    trial, and only on what is selected, too. Ids that several suites use are told apart by the
    suite's name, and suites of the same name by a number.
    """
    labels = _labels(suites)
    jobs: list[Job] = []
    left_out: list[str] = []
    for suite, label_of in zip(suites, labels, strict=True):
        chosen = [c for c in _ordered(suite.cases) if is_selected(c, selection)]
        ids = {c.case.id for c in chosen}
        left_out.extend(c.case.id for c in suite.cases if c.case.id not in ids)
        for loaded in chosen:
            case = loaded.case
            trials = selection.trials or case.trials or 1
            for profile in profiles[str(suite.path)]:
                for variant in selection.variants:
                    for trial in range(1, trials + 1):
                        tail = f"{profile.name}/{variant}/{trial}"
                        needs = tuple(f"{label_of[n]}/{tail}" for n in case.depends_on if n in ids)
                        name = f"{label_of[case.id]}/{tail}"
                        jobs.append(Job(name, suite, loaded, profile, variant, trial, needs))
    return Plan(tuple(jobs), tuple(left_out))


def _labels(suites: Sequence[LoadedSuite]) -> list[dict[str, str]]:
    """For each suite, by case id, what the case is called in the run.

    Different cases differ in more than upper and lower case: their results are in folders.
    """
    uses = Counter(loaded.case.id.casefold() for suite in suites for loaded in suite.cases)
    # An id that is used once is its own label, whatever comes before it.
    taken = {case_id for case_id, count in uses.items() if count == 1}
    labels: list[dict[str, str]] = []
    for suite in suites:
        names: dict[str, str] = {}
        for loaded in suite.cases:
            case_id = loaded.case.id
            label = case_id
            if uses[case_id.casefold()] > 1:
                label, number = f"{suite.name}.{case_id}", 1
                while label.casefold() in taken:
                    number += 1
                    label = f"{suite.name}-{number}.{case_id}"
                taken.add(label.casefold())
            names[case_id] = label
        labels.append(names)
    return labels


def is_selected(loaded: LoadedCase, selection: Selection) -> bool:
    """Whether the selection takes this case: any of the globs, and any of the tags."""
    case = loaded.case
    if selection.case_globs and not any(
        fnmatch.fnmatchcase(case.id, glob) for glob in selection.case_globs
    ):
        return False
    return not selection.tags or bool(set(selection.tags) & set(case.tags))


def _ordered(cases: Iterable[LoadedCase]) -> list[LoadedCase]:
    """The cases as they come, but each after those it depends on (there are no circles)."""
    by_id = {loaded.case.id: loaded for loaded in cases}
    ordered: dict[str, LoadedCase] = {}
    # With a stack of its own: a chain of cases may be longer than Python's.
    for first in by_id:
        waiting = [first]
        while waiting:
            current = waiting[-1]
            needed = [
                name
                for name in by_id[current].case.depends_on
                if name in by_id and name not in ordered
            ]
            if needed:
                waiting.extend(reversed(needed))
                continue
            waiting.pop()
            ordered.setdefault(current, by_id[current])
    return list(ordered.values())
