"""Judging again: new grades of records, what they change, and how far judges and people agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

import anyio

from skillup.checks.context import ReadFile
from skillup.checks.registry import JUDGED
from skillup.dataclass import frozen, mutable
from skillup.judges.evaluate import Judge, PendingJudgements, gather
from skillup.judges.grade import grade, grade_record
from skillup.judges.models import with_judge_model
from skillup.load.model import judge_models
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade, Judging
from skillup.schema.record import Record, joined
from skillup.schema.suite import Suite

Judges = Callable[[Record, Case], AbstractAsyncContextManager[Judge]]
"""Makes the judge of a record by a case; the same object may be made, and entered, for many."""


@frozen
class RegradeItem:
    record: Record
    read_file: ReadFile
    case: Case


def by_rules(item: RegradeItem) -> Grade | None:
    """Its new grade; None: it needs more than rules."""
    pending = PendingJudgements(item.case)
    graded = grade_record(item.record, item.read_file, case=item.case, pending=pending)
    return None if pending.open else graded


def by_judges(items: Sequence[RegradeItem], judges: Judges) -> list[Grade]:
    """All at once: the grades in order; their `judging` is what this judging took."""

    async def one(read: tuple[RegradeItem, Judge]) -> Grade:
        item, judge = read
        record = item.record.model_copy(update={"judging": None})
        return await grade(record, item.read_file, judge, case=item.case)

    async def every() -> list[Grade]:
        async with AsyncExitStack() as stack:
            made = [judges(item.record, item.case) for item in items]
            entered = [await stack.enter_async_context(judge) for judge in made]
            return await gather(one, zip(items, entered, strict=True))

    return anyio.run(every)


# Two grades of the same record, compared check by check.

Change = Literal["flipped", "changed", "added", "removed"]
"""flipped: passed or not; changed: the same verdict for another score, or with another reason,
quotation or note of whoever read."""


@frozen
class CheckChange:
    """A check that says something else than before, or that only one of the grades has."""

    change: Change
    where: str  # ``turn 2``, ``turn 2, first follow-up`` or ``conversation``
    before: CheckResult | None  # None: added
    after: CheckResult | None  # None: removed

    @property
    def check(self) -> CheckResult:
        found = self.after or self.before
        assert found is not None
        return found


@frozen
class GradeChange:
    before: Grade
    after: Grade
    flips: tuple[CheckChange, ...]

    @property
    def is_flip(self) -> bool:
        return self.before.status != self.after.status

    def __bool__(self) -> bool:
        same = ("status", "score", "reason")
        differs = any(getattr(self.before, n) != getattr(self.after, n) for n in same)
        return bool(self.flips) or differs


def is_read(check: CheckResult) -> bool:
    """Somebody reads for it: what they say of it may change while the verdict does not."""
    return (check.kind in JUDGED and check.kind != "script") or check.kind == "agent_judge"


_KEYS: tuple[Callable[[str, CheckResult], Hashable], ...] = (
    lambda where, c: (where, c.role, c.kind, c.expected, c.name),
    lambda where, c: (where, c.role, c.kind, c.expected),
    lambda where, c: (where, c.role, c.kind, c.name),
    # A line that somebody reads is in no other way known again.
    lambda where, c: (where, c.role, c.kind) if is_read(c) else object(),
)
"""By what checks are the same: unchanged, renamed, edited, reworded (in as many checks)."""


def compare(before: Grade, after: Grade) -> GradeChange:
    """Checks are the same if they stand in the same place and look for the same thing.

    Compound checks are compared as a whole. The changes are in the order of the newer grade; what
    was removed comes last.
    """
    if before is after:  # as mostly
        return GradeChange(before, after, ())
    old, new = ([(where, check) for _, where, check in _checks(g)] for g in (before, after))
    partner: dict[int, int] = {}
    for key in _KEYS if len(old) == len(new) else _KEYS[:-1]:
        free = [(key(*old[n]), n) for n in range(len(old)) if n not in partner.values()]
        for number, placed in enumerate(new):
            match = next((one for one in free if one[0] == key(*placed)), None)
            if number not in partner and match is not None:
                partner[number] = match[1]
                free.remove(match)
    changes = []
    for number, (where, check) in enumerate(new):
        if number not in partner:
            changes.append(CheckChange("added", where, None, check))
            continue
        known = old[partner[number]][1]
        if known.passed != check.passed:
            changes.append(CheckChange("flipped", where, known, check))
        elif says_of(known) != says_of(check):
            changes.append(CheckChange("changed", where, known, check))
    gone = [placed for number, placed in enumerate(old) if number not in partner.values()]
    changes += [CheckChange("removed", where, check, None) for where, check in gone]
    return GradeChange(before, after, tuple(changes))


def _checks(grade: Grade) -> Iterator[tuple[int, str, CheckResult]]:
    """Each with its turn (0: the conversation), and where it stands."""
    for turn in grade.turns:
        number, where = turn.turn_number, f"turn {turn.turn_number}"
        yield from ((number, where, check) for check in turn.checks)
        for one in turn.follow_ups:
            yield from ((number, f"{where}, {one.label}", check) for check in one.checks)
    yield from ((0, "conversation", check) for check in grade.assertions)


def says_of(check: CheckResult, reads: bool = False) -> Hashable:
    """What two results of the same check differ in; `reads`: somebody reads for it."""
    reads = reads or is_read(check)
    words = (check.found, check.excerpt, tuple(check.notes)) if reads else ()
    parts = tuple((part.passed, says_of(part, reads)) for part in check.children)
    return (
        check.score, check.weight, check.required, check.assertable, check.error, check.expected,
        words, parts,
    )  # fmt: skip


# What a judge said of each thing it was asked, so that it can be compared with others.

CASE = "case"  # The `check` of the verdict on the whole trial


@dataclass(frozen=True, slots=True, order=True)
class JudgedItem:
    job: str
    turn: int  # From 1; 0: the conversation
    check: str  # The check's name; of a criterion, also its own: ``name / criterion``


Said = Literal["pass", "fail", "unknown"]  # `unknown`: who read could not tell


@frozen
class JudgeVerdict:
    """What was said. An error is no verdict, and is counted apart."""

    said: Said | None  # None: the judge failed
    reason: str
    quote: str = ""  # What it was shown to rest on
    kind: str = ""  # The key of the check it is about; `case`: of the trial as a whole
    expected: str = ""  # What was asked
    divided: bool = False  # The votes differ


Verdicts = dict[JudgedItem, JudgeVerdict]


def verdicts_of(job: str, grade: Grade) -> Verdicts:
    """What judges who read were asked about the trial, by criterion, and its own verdict."""
    found: Verdicts = {}
    read = ((turn, part) for turn, _, check in _checks(grade) for part in _within(check))
    for turn, result in read:
        parts = [(f"{result.name} / {child.name}", child) for child in result.children]
        for name, one in parts if parts and result.error is None else [(result.name, result)]:
            item, number = JudgedItem(job, turn, name), 1
            while item in found:
                number += 1
                item = JudgedItem(job, turn, f"{name} #{number}")
            said: Said = "pass" if one.passed else "fail" if one.assertable else "unknown"
            about = (one.excerpt, result.kind, one.expected, one.agreement not in (None, 1.0))
            reason = one.error or one.found
            found[item] = JudgeVerdict(None if one.error else said, reason, *about)
    if grade.status in _VERDICTS or grade.status == "ERROR":
        verdict = JudgeVerdict(_VERDICTS.get(grade.status), grade.reason, kind=CASE)
        found[JudgedItem(job, 0, CASE)] = verdict
    return found


_VERDICTS: dict[str, Said] = {"PASS": "pass", "FAIL": "fail"}


def _within(check: CheckResult) -> Iterator[CheckResult]:
    """What somebody read for in `check`, itself or its parts."""
    if check.kind not in JUDGED and check.role != "judge":
        for child in check.children:
            yield from _within(child)
    elif check.assertable or check.answers:  # else there was nothing to read
        yield check


# The same case, judged by another model.

_SCRIPTED = "scripted:"


def read_by(case: Case, model: str, here: Path, suite: Suite | None = None) -> Case:
    """`case` with `model` as its judge; a `scripted:FILE` that is there from `here` is meant."""
    file = here / model.removeprefix(_SCRIPTED)
    if model.startswith(_SCRIPTED) and file.is_file():
        model = f"{_SCRIPTED}{file}"
    return with_judge_model(case, model, suite=suite)


def judged_by(case: Case, model: str, here: Path) -> Case:
    """As :func:`read_by`, its agent judges too; agents are not played by a `scripted:FILE`."""
    own = case.judge_model.members() if case.judge_model is not None else []
    if {one.model for one in [*own, *judge_models(case)]} != {model}:
        case = read_by(case, model, here)
    if model.startswith(_SCRIPTED):
        return case
    name = model.removeprefix("openai-responses:").removeprefix("openai-chat:")
    judges = [
        judge.model_copy(update={"model": name}) if judge.type == "agent_judge" else judge
        for judge in case.all_judges()
    ]
    return case.model_copy(update={"judge": None, "judges": judges or None})


# How far two judges say the same: the share of agreement, and Cohen's kappa.

Pairs = Sequence[tuple[JudgedItem, JudgeVerdict, JudgeVerdict]]
"""What two judges said of the same items, on which neither failed."""


def both_said(first: Verdicts, second: Verdicts) -> Pairs:
    both = [(item, first[item], second[item]) for item in first if item in second]
    return [(item, a, b) for item, a, b in both if a.said and b.said]


def kappa_of(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, tuple[float, float] | None]:
    """Cohen's kappa, of any number of categories, and its interval at 95 %, within -1..1.

    The interval is None where the sample shows no variation, too. J. L. Fleiss, J. Cohen,
    B. S. Everitt, Psychological Bulletin 72 (1969), 323-327.
    """
    if not pairs:
        return None, None
    count = len(pairs)
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(first[said] * second[said] for said in first) / count**2
    if chance == 1:
        return None, None
    kappa = (sum(a == b for a, b in pairs) / count - chance) / (1 - chance)
    terms = 0.0
    for a, b in pairs:
        if a == b:
            terms += (1 - (first[a] + second[a]) / count * (1 - kappa)) ** 2
        else:
            terms += ((1 - kappa) * (second[a] + first[b]) / count) ** 2
    variance = terms / count - (kappa - chance * (1 - kappa)) ** 2
    if variance < 1e-9:
        return kappa, None
    around = 1.96 * variance**0.5 / (1 - chance) / count**0.5
    return kappa, (max(-1.0, kappa - around), min(1.0, kappa + around))


RECORDED = "recorded"  # The name of the judges as they were when the run was judged
NOW = "judged now"  # The name of the judges that the cases name


@mutable
class JudgeColumn:
    name: str
    model: str | None = None  # Asked in place of the cases' own judges; None: those themselves
    verdicts: Verdicts = field(default_factory=dict)  # Of trials, too
    took: Judging | None = None

    def add(self, job: str, grade: Grade) -> None:
        self.verdicts.update(verdicts_of(job, grade))
        self.took = joined(self.took, grade.judging)

    def read(self) -> Verdicts:
        """What was read by a model or an agent: what judges can differ in."""
        mechanical = (CASE, "script")
        return {item: one for item, one in self.verdicts.items() if one.kind not in mechanical}

    def trials(self) -> Verdicts:
        return {item: one for item, one in self.verdicts.items() if one.kind == CASE}

    def failures(self) -> dict[JudgedItem, str]:
        return {item: one.reason for item, one in self.read().items() if one.said is None}


def pairs_of(columns: Collection[JudgeColumn]) -> list[tuple[str, str, Pairs, Pairs]]:
    """Of each two judges the names, and what both said of items and of trials."""
    judges = [(one.name, one.read(), one.trials()) for one in columns]
    return [
        (one, other, both_said(read, other_read), both_said(trials, other_trials))
        for (one, read, trials), (other, other_read, other_trials) in combinations(judges, 2)
    ]
