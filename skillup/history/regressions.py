"""What got worse in the newest of several nights, at one error rate for all that is said of it.

Pure statistics (`docs/statistics.md`): a night is any run that was read, and nothing is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from skillup.frozen import frozen
from skillup.history.runs import ABSENT, WITH_SKILL, CaseKey, CaseTally, RunOutcomes, by_case
from skillup.history.runs import together as pooled
from skillup.stats import PassCounts, fisher_lower, holm

Kind = Literal["fewer_passes", "slower", "dearer", "more_errors"]
CONFIDENCE = 0.99
"""In a night in which nothing changed, the chance that no statement is significant."""
_REFERENCE = 20
"""Nights that a case's reference is of, at most: the newest steady ones."""


@frozen
class Night:
    """One run, as it is compared."""

    run_id: str
    started_at: str
    tallies: Mapping[CaseKey, CaseTally]
    """Of the cases with the skill; of all, if there are none with it."""
    until_decided: bool = False

    @staticmethod
    def of(run: RunOutcomes) -> Night:
        every = by_case(run.trials)
        own = {key: tally for key, tally in every.items() if key.variant == WITH_SKILL}
        return Night(run.run_id, run.started_at, own or every, run.until_decided)


@frozen
class Measured:
    """One side of a statement."""

    value: float
    """The share of trials that passed or had an error, or a trial's median in ms or USD."""
    trials: int
    count: int = 0  # That passed or had an error


@frozen
class Statement:
    """That a case, or all cases of a suite together, got worse."""

    kind: Kind
    suite: str
    key: CaseKey | None  # None: all cases of the suite together
    p: float
    """The chance of a statement as strong as this, of this or any other case, in a night in which
    nothing changed; of all kinds together."""
    significant: bool  # Else `fewer_passes` only: as it was observed
    before: Measured
    after: Measured
    nights: int = 1  # The newest nights, tonight included, that `after` is of
    since: str | None = None
    """The run at which a case that stays red became red; None: it is said of tonight."""

    @property
    def increase(self) -> float | None:
        """0.2: by 20 % more; None: from 0."""
        return self.after.value / self.before.value - 1 if self.before.value else None


@frozen
class Assessment:
    """What is said of the newest night."""

    statements: tuple[Statement, ...] = ()
    """Significant ones first, then by p."""
    recovered: Mapping[CaseKey, str] = field(default_factory=dict)
    """Cases that had been red until tonight, and since which run."""
    references: Mapping[CaseKey, CaseTally] = field(default_factory=dict)

    @property
    def regressed(self) -> list[Statement]:
        return [one for one in self.statements if one.significant]

    @property
    def red(self) -> dict[CaseKey, Statement]:
        """The cases that are red: those that got worse tonight, and those that stay so."""
        return {one.key: one for one in self.regressed if one.key and one.kind == "fewer_passes"}

    def reference(self, key: CaseKey) -> CaseTally:
        """The earlier nights that tonight is compared with, pooled; ABSENT for a new case."""
        return self.references.get(key, ABSENT)


def assess(
    nights: Sequence[Night],
    accepted: Mapping[CaseKey, str] | None = None,
    confidence: float = CONFIDENCE,
) -> Assessment:
    """What got worse in the last of `nights` (the oldest first); at least one.

    `accepted`: by case, the run with which its reference begins anew.
    """
    *earlier, tonight = nights
    references: dict[CaseKey, CaseTally] = {}
    for key in tonight.tallies:
        own = [night for night in earlier if key in night.tallies]
        begin = (accepted or {}).get(key)
        starts = [place for place, night in enumerate(own) if night.run_id == begin]
        own = own[starts[0] if starts else 0 :][-_REFERENCE:]
        references[key] = pooled(night.tallies[key] for night in own)
    fewer = {}
    for key, after in tonight.tallies.items():
        before = references[key]
        if before.rate is not None and after.rate is not None and after.rate < before.rate:
            counts = PassCounts(before.passed, before.judged, after.passed, after.judged)
            fewer[key] = fisher_lower(counts)
    statements = []
    for key, p in zip(fewer, holm(list(fewer.values())), strict=True):
        before, after = references[key], tonight.tallies[key]
        statements.append(
            Statement(
                kind="fewer_passes",
                suite=key.suite,
                key=key,
                p=p,
                significant=p <= 1 - confidence + 1e-9,
                before=Measured(before.rate or 0.0, before.judged, before.passed),
                after=Measured(after.rate or 0.0, after.judged, after.passed),
            )
        )
    statements.sort(key=lambda one: (not one.significant, one.p))
    return Assessment(tuple(statements), references=references)


def assess_pair(a: Night, b: Night, confidence: float = CONFIDENCE) -> Assessment:
    """What got worse from `a` to `b`, without any other night."""
    return assess([a, b], confidence=confidence)
