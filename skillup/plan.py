"""The plan: cases × profiles × variants × trials → jobs. Pure: it reads and starts nothing."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from skillup.dataclass import frozen
from skillup.errors import UsageError
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.schema.profile import Profile

if TYPE_CHECKING:
    from skillup.schema.record import Variant

MOST_JOBS = 200_000
"""Trials of a run. All that is known of them is kept in memory, and listed in its files."""


@frozen
class Selection:
    """Which cases, and how often."""

    case_globs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    trials: int | None = None  # Outranks what the cases say
    variants: tuple[Variant, ...] = ("with_skill",)
    trials_from_turn: int | None = None
    """The trials of a case share the turns before this one; None: they share none."""

    def takes(self, case_id: str, tags: Iterable[str], branch_of: str | None) -> bool:
        """Any of the globs has to take the case, or the one it is a path of; and any tag."""
        if self.case_globs and not is_named(case_id, branch_of or case_id, self.case_globs):
            return False
        return not self.tags or not set(self.tags).isdisjoint(tags)

    def takes_loaded(self, loaded: LoadedCase) -> bool:
        """As :meth:`takes`."""
        return self.takes(loaded.id, loaded.like.tags, loaded.branch_of)


@frozen
class Job:
    """One trial to run."""

    id: str  # ``CASE/PROFILE/VARIANT/N``: unique in the run, and its directory there
    suite: LoadedSuite
    loaded: LoadedCase
    profile: Profile
    variant: Variant
    trial: int
    depends_on: tuple[str, ...]  # Ids of jobs that must have passed before
    family: str = ""  # Jobs of one family may share turns; empty: it shares none
    steps: tuple[object, ...] = ()
    """For each turn, what names it within the family: two jobs share those that they begin with."""

    @property
    def case(self) -> str:
        """What the run calls the case: ids that several suites use are told apart."""
        name = self.id.rsplit("/", 3)[0]  # the case's own id may contain slashes
        return self.loaded.id if name == self.loaded.id else name  # one text for all


@frozen
class Plan:
    """All jobs, each after those it depends on."""

    jobs: tuple[Job, ...]
    whole: tuple[Job, ...] = ()
    """All jobs of the run that this is a part (`--shard`) of; empty: these are all."""


def make_plan(
    suites: Sequence[LoadedSuite], profiles: Mapping[str, Sequence[Profile]], selection: Selection
) -> Plan:
    """The jobs for `suites`; `profiles` says, by suite file, which engines run its cases.

    A job depends on the same profile, variant and trial (or the last) of what is selected, too, of
    the cases that its case depends on; of one with branches, on all paths. Raises UsageError for a
    `trials_from_turn` that does not fit, and for more than :data:`MOST_JOBS` jobs.
    """
    selected = [[c for c in suite.cases if selection.takes_loaded(c)] for suite in suites]
    labels = _labels(suites)
    jobs: list[Job] = []
    for suite, chosen, label_of in zip(suites, selected, labels, strict=True):
        needed = {name for loaded in chosen for name in loaded.like.depends_on}
        paths: dict[str, dict[str, int]] = {}  # How often each path of a case that is needed is run
        for loaded in chosen if needed else ():
            for name in needed.intersection([loaded.id, loaded.family]):
                paths.setdefault(name, {})[loaded.id] = _trials(loaded, selection)
        ordered = _ordered(chosen) if needed else chosen
        variants = selection.variants
        if suite.suite.benchmark.enabled:  # of its own cases alone
            variants = ("with_skill", "without_skill")
        for loaded, profile, variant in product(ordered, profiles[str(suite.path)], variants):
            fork_at = _fork_at(loaded, selection)
            label = label_of.get(loaded.id, loaded.id)
            for trial in range(1, _trials(loaded, selection) + 1):
                needs = tuple(
                    f"{label_of.get(path, path)}/{profile.name}/{variant}/{min(trial, most)}"
                    for name in loaded.like.depends_on
                    for path, most in paths.get(name, {}).items()
                )
                name = f"{label}/{profile.name}/{variant}/{trial}"
                job = Job(name, suite, loaded, profile, variant, trial, needs)
                jobs.append(_related(job, fork_at))
            if len(jobs) > MOST_JOBS:
                what = f"this would be a run of more than {MOST_JOBS:,} trials"
                hint = "run each case less often (--trials), or some of the cases (-k, --tag)"
                raise UsageError(what, hint=hint)
    if jobs and selection.trials_from_turn is not None and all(job.trial == 1 for job in jobs):
        what = f"--trials-from-turn {selection.trials_from_turn}: no case is run more than once"
        hint = "say how often with --trials"
        raise UsageError(f"{what}, so there is nothing to share", hint=hint)
    return Plan(tuple(jobs))


def _trials(loaded: LoadedCase, selection: Selection) -> int:
    return selection.trials or loaded.like.trials or 1


def _fork_at(loaded: LoadedCase, selection: Selection) -> int:
    """The first turn that each trial runs for itself, from 1."""
    first, given = selection.trials_from_turn or 1, loaded.like.input
    if first == 1 or given.transcript is not None:
        return 1
    if first > len(given.all_turns()):
        what = f"--trials-from-turn {first}: {loaded.id} has no such turn"
        raise UsageError(what, hint="choose an earlier turn, or other cases with -k")
    return first


def _related(job: Job, fork_at: int) -> Job:
    """`job`, with what it may share: with other paths of its case, and with other trials."""
    if job.loaded.branch_of is None and fork_at == 1:
        return job
    own = [str(job.suite.path), job.loaded.family, job.profile.name, job.variant]
    if fork_at == 1:
        own.append(str(job.trial))
    turns = len(job.loaded.like.input.all_turns())
    places = job.loaded.places or tuple(("turn", number) for number in range(turns))
    steps = tuple(
        (place, None if number < fork_at else job.trial)
        for number, place in enumerate(places, start=1)
    )
    return replace(job, family="\n".join(own), steps=steps)


def _labels(suites: Sequence[LoadedSuite]) -> list[dict[str, str]]:
    """For each suite, by case id, what cases are called that are not called by their id alone."""
    if len(suites) < 2:
        return [{} for _ in suites]
    uses = Counter(loaded.id.casefold() for suite in suites for loaded in suite.cases)
    labels: list[dict[str, str]] = []
    taken: set[str] = set()
    for suite in suites:
        names: dict[str, str] = {}
        for case_id in (loaded.id for loaded in suite.cases):
            label = f"{suite.name}.{case_id}" if uses[case_id.casefold()] > 1 else case_id
            if label.casefold() in taken:
                hint = "give the suites different names, or rename one of the cases"
                raise UsageError(f"two cases of the run would be called {label}", hint=hint)
            taken.add(label.casefold())
            if label != case_id:
                names[case_id] = label
        labels.append(names)
    return labels


def is_named(case_id: str, family: str, globs: Iterable[str]) -> bool:
    """Whether any of the globs takes the path `case_id` of `family`; ``ID/``: of just that id."""
    return any(
        fnmatch.fnmatchcase(case_id, glob[:-1])
        if glob.endswith("/")
        else fnmatch.fnmatchcase(case_id, glob) or fnmatch.fnmatchcase(family, glob)
        for glob in globs
    )


def _ordered(cases: Iterable[LoadedCase]) -> list[LoadedCase]:
    """The cases as they come, but each after those it depends on; a case's paths together."""
    families: dict[str, list[LoadedCase]] = {}
    owners: dict[str, str] = {}
    for loaded in cases:
        families.setdefault(loaded.family, []).append(loaded)
        owners[loaded.id] = owners[loaded.family] = loaded.family
    ordered: dict[str, list[LoadedCase]] = {}

    def add(family: str) -> None:
        if family in ordered:
            return
        for name in families[family][0].like.depends_on:
            if name in owners:
                add(owners[name])
        ordered[family] = families[family]

    for family in families:
        add(family)
    return [loaded for paths in ordered.values() for loaded in paths]
