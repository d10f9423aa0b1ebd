"""The plan: cases × profiles × variants × trials → jobs. Pure: it reads and starts nothing."""

from __future__ import annotations

import fnmatch
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
    trial. Cases with the same id in several suites are told apart by the suite's name.
    """
    counts: dict[str, int] = {}
    for suite in suites:
        for loaded in suite.cases:
            counts[loaded.case.id] = counts.get(loaded.case.id, 0) + 1
    jobs: list[Job] = []
    left_out: list[str] = []
    for suite in suites:
        chosen = [c for c in _ordered(suite.cases) if is_selected(c, selection)]
        ids = {c.case.id for c in chosen}
        left_out.extend(c.case.id for c in suite.cases if c.case.id not in ids)
        for loaded in chosen:
            case = loaded.case
            label = case.id if counts[case.id] == 1 else f"{suite.name}.{case.id}"
            prefix = "" if counts[case.id] == 1 else f"{suite.name}."
            trials = selection.trials or case.trials or 1
            for profile in profiles[str(suite.path)]:
                for variant in selection.variants:
                    for trial in range(1, trials + 1):
                        tail = f"{profile.name}/{variant}/{trial}"
                        needs = tuple(
                            f"{prefix if counts[n] > 1 else ''}{n}/{profile.name}/{variant}/{trial}"
                            for n in case.depends_on
                            if n in ids
                        )
                        jobs.append(
                            Job(f"{label}/{tail}", suite, loaded, profile, variant, trial, needs)
                        )
    return Plan(tuple(jobs), tuple(left_out))


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

    def place(loaded: LoadedCase) -> None:
        if loaded.case.id in ordered:
            return
        for needed in loaded.case.depends_on:
            if needed in by_id:
                place(by_id[needed])
        ordered[loaded.case.id] = loaded

    for loaded in by_id.values():
        place(loaded)
    return list(ordered.values())
