"""A run beside its reference: what was used, what became of each case, what is sure of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from math import inf
from statistics import median
from typing import Literal

from skillup.dataclass import frozen
from skillup.history.reference import Reference
from skillup.history.regressions import CONFIDENCE, Assessment, Kind, Night, Statement, assess
from skillup.history.runs import (
    ABSENT,
    VERDICTS,
    WITH_SKILL,
    About,
    CaseKey,
    CaseTally,
    RunOutcomes,
    by_case,
    together,
)
from skillup.schema.line import grouped
from skillup.schema.past_runs import Change, ChangeKind

Quantity = Literal["duration_ms", "cost_usd"]
CaseState = Literal[
    "regressed",
    "recovered",
    "fewer_passes",
    "more_passes",
    "same",
    "not_run",
    "skipped",
    "only_in_a",
    "only_in_b",
]
"""`regressed`: it passes less often, significantly, or did and has not recovered; `fewer_passes`,
`more_passes`: as observed, which may be chance. `not_run`, `skipped`: no verdict in A or in B."""


@frozen
class CaseChange:
    """A case in the reference, all its nights together, and in the run."""

    key: CaseKey
    a: CaseTally
    b: CaseTally
    change: CaseState
    statements: tuple[Statement, ...] = ()
    quarantined: bool = False
    """It has the tag `quarantine`: no statement is made of it, and no gate fails for it."""

    def said(self, kind: Kind) -> Statement | None:
        return next((one for one in self.statements if one.kind == kind), None)


class Comparison:
    """The reference (A) and the run (B); numbers over all cases are over those with the skill,
    unless there are none.
    """

    def __init__(
        self, reference: Reference, b: RunOutcomes, confidence: float = CONFIDENCE
    ) -> None:
        self.reference, self.nights, self.b = reference, reference.nights, b
        self.confidence, pinned, accepted = confidence, reference.pinned, reference.accepted
        history = [Night.of(run, b.quarantined) for run in (*self.nights, b)]
        fixed = [key for key, run in accepted.items() if pinned and run == pinned.run_id]
        self.assessment = Assessment()
        if self.nights:
            self.assessment = assess(history, accepted, confidence, fixed)
        self.of_suites = [one for one in self.assessment.regressed if one.key is None]
        """What is sure of all cases of a suite together."""
        self.base = pinned or self._before_it_got_worse()
        """With which what was used is compared."""
        self.changed = list(changes(self.base, b))
        self.cases = list(self._cases(accepted))
        self.counted = [case for case in self.cases if case.key.variant == WITH_SKILL] or self.cases
        self.counted_keys = {case.key for case in self.counted}
        self.judged_in_both = [case for case in self.counted if case.a.judged and case.b.judged]
        self.time_increase = typical_increase(self.judged_in_both, "duration_ms")
        self.cost_increase = typical_increase(self.judged_in_both, "cost_usd")

    def _before_it_got_worse(self) -> RunOutcomes:
        """The newest night before all that is worse tonight got worse; B in a first night."""
        since = {one.since for one in self.assessment.regressed}
        steady = takewhile(lambda night: night.run_id not in since, self.nights)
        return [self.b, *self.nights[:1], *steady][-1]

    def _cases(self, accepted: Mapping[CaseKey, str]) -> Iterable[CaseChange]:
        """Those of B in its order, then those that only the newest night of the reference has."""
        before = [by_case(run.trials) for run in self.nights]
        after, newest = by_case(self.b.trials), before[-1] if before else {}
        red = self.assessment.red
        said = grouped(self.assessment.statements, lambda one: one.key)
        for key in dict.fromkeys([*after, *newest]):
            a, b = self.assessment.reference(key), after.get(key, ABSENT)
            if a is ABSENT and accepted.get(key) == self.b.run_id:
                a = b  # What it does in this run is what it is to do
            elif a is ABSENT:
                a = together(night[key] for night in before if key in night)
            change: CaseState = "regressed" if key in red else self._state(key, a, b)
            yield CaseChange(
                key, a, b, change, tuple(said.get(key, ())), "/".join(key[:2]) in self.b.quarantined
            )

    def _state(self, key: CaseKey, a: CaseTally, b: CaseTally) -> CaseState:
        if a.rate is None or b.rate is None:
            states = {a.state, b.state}
            if "absent" in states:
                return "only_in_b" if a.state == "absent" else "only_in_a"
            skipped = "skip" in states and not states & {"error", "not_started"}
            return "skipped" if skipped else "not_run"
        if key in self.assessment.recovered:
            return "recovered"
        if a.rate == b.rate:
            return "same"
        return "fewer_passes" if b.rate < a.rate else "more_passes"


def typical_increase(cases: Iterable[CaseChange], quantity: Quantity) -> float | None:
    """By how much the median case's median trial took longer or cost more: 0.2 means 20 %.

    None: no case has it in both; a case on several engines is one for each.
    """

    def typical(tally: CaseTally) -> float | None:
        judged = [trial for trial in tally.trials if trial.status in VERDICTS]
        known = [value for one in judged if (value := getattr(one, quantity)) is not None]
        return median(known) if known else None

    pairs = [(typical(case.a), typical(case.b)) for case in cases]
    ratios = [
        b / a if a else inf if b else 1.0 for a, b in pairs if a is not None and b is not None
    ]
    return median(ratios) - 1 if ratios else None


# What two runs used that was not the same: what a difference in their verdicts may come from.


def changes(earlier: RunOutcomes, run: RunOutcomes) -> Iterator[Change]:
    """What explains most first; what one of them does not know is no change.

    Of digests it is enough that they differ; a skill that one run did not have is empty, and so is
    a case, where both were asked for the same.
    """
    a, b = earlier.about, run.about
    yield from _differing("model", a.models, b.models)
    yield from _differing("cli", a.cli_versions, b.cli_versions)
    if a.repository and b.repository:  # else its skills are not known, either
        for name in sorted(a.skills.keys() | b.skills.keys()):
            before, after = a.skills.get(name, ""), b.skills.get(name, "")
            if before != after:
                old, new = a.skill_files.get(name, {}), b.skill_files.get(name, {})
                known = (old.keys() | new.keys()) if old and new else set()
                files = sorted(path for path in known if old.get(path) != new.get(path))
                yield Change(kind="skill", name=name, before=before, after=after, files=files)
    same = earlier.selection_key == run.selection_key and a.cases and b.cases
    gone = dict.fromkeys(a.cases, "") if same else {}
    new = dict.fromkeys(b.cases, "") if same else {}
    yield from _differing("case", {**new, **a.cases}, {**gone, **b.cases}, both=not same)
    yield from _differing("profile", a.profiles, b.profiles)
    yield from _differing("skillup", {"": a.skillup_version}, {"": b.skillup_version})
    yield from _differing("host", {"": a.host}, {"": b.host})
    yield from _differing("commit", {"": _commit(a)}, {"": _commit(b)})


def _differing(
    kind: ChangeKind, a: Mapping[str, str], b: Mapping[str, str], *, both: bool = True
) -> Iterator[Change]:
    for name, after in b.items():
        before = a.get(name, after)
        if before != after and ((before and after) or not both):
            yield Change(kind=kind, name=name, before=before, after=after)


def _commit(about: About) -> str:
    return f"{about.commit[:12]}{' with uncommitted changes' if about.dirty else ''}"
