"""Judging again: new grades of records, what they change, and how far judges and people agree."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

import anyio

from skillup.checks.context import ReadFile
from skillup.checks.registry import JUDGED
from skillup.errors import InvalidFilesError, Problem
from skillup.frozen import frozen
from skillup.judges.evaluate import Judge, PendingJudgements, gather
from skillup.judges.grade import grade, grade_record
from skillup.judges.models import with_judge_model
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


@frozen
class Regrader:
    """Grades records: by rules one after the other, by judges several at once."""

    judges: Judges

    def by_rules(self, item: RegradeItem) -> Grade | None:
        """None: it needs more than rules."""
        pending = PendingJudgements(item.case)
        graded = grade_record(item.record, item.read_file, case=item.case, pending=pending)
        return None if pending.open else graded

    def by_judges(self, items: Sequence[RegradeItem]) -> list[Grade]:
        """The grades of all of `items`, in order; their `judging` is what this judging took."""

        async def one(read: tuple[RegradeItem, Judge]) -> Grade:
            item, judge = read
            record = item.record.model_copy(update={"judging": None})
            return await grade(record, item.read_file, judge, case=item.case)

        async def every() -> list[Grade]:
            async with AsyncExitStack() as stack:
                judges = [self.judges(item.record, item.case) for item in items]
                entered = [await stack.enter_async_context(judge) for judge in judges]
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
        elif _says(known) != _says(check):
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


def _says(check: CheckResult, reads: bool = False) -> Hashable:
    reads = reads or is_read(check)
    words = (check.found, check.excerpt, tuple(check.notes)) if reads else ()
    parts = tuple((part.passed, _says(part, reads)) for part in check.children)
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


@frozen
class JudgeVerdict:
    """What was said. An error is no verdict, and is counted apart."""

    passed: bool | None  # None: the judge failed
    reason: str
    quote: str = ""  # What it was shown to rest on
    kind: str = ""  # The key of the check it is about; `case`: of the trial as a whole


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
            passed = None if one.error else one.passed
            found[item] = JudgeVerdict(passed, one.error or one.found, one.excerpt, result.kind)
    if grade.status != "SKIP":
        passed = None if grade.status == "ERROR" else grade.status == "PASS"
        found[JudgedItem(job, 0, CASE)] = JudgeVerdict(passed, grade.reason, kind=CASE)
    return found


def _within(check: CheckResult) -> Iterator[CheckResult]:
    """What somebody read for in `check`, itself or its parts."""
    if check.kind not in JUDGED and check.role != "judge":
        for child in check.children:
            yield from _within(child)
    elif check.assertable:
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
    if case.judge_model is None or case.judge_model.model != model:
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


@frozen
class Agreement:
    """Of two judges, over what both were asked and both answered."""

    items: int
    agreed: int
    kappa: float | None
    """-1..1; None where it is not defined: both always said the same one thing, or no items."""
    disagreements: tuple[tuple[JudgedItem, JudgeVerdict, JudgeVerdict], ...]

    @property
    def share(self) -> float | None:
        return self.agreed / self.items if self.items else None


def agreement(first: Verdicts, second: Verdicts) -> Agreement:
    both = [(item, first[item], second[item]) for item in first if item in second]
    both = [(item, a, b) for item, a, b in both if None not in (a.passed, b.passed)]
    apart = tuple((item, a, b) for item, a, b in both if a.passed != b.passed)
    kappa = kappa_of([(bool(a.passed), bool(b.passed)) for _, a, b in both])
    return Agreement(len(both), len(both) - len(apart), kappa, apart)


def kappa_of(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    if not pairs:
        return None
    count = len(pairs)
    observed = sum(a == b for a, b in pairs) / count
    first, second = (sum(side) / count for side in zip(*pairs, strict=True))
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (observed - chance) / (1 - chance)


RECORDED = "recorded"  # The name of the judges as they were when the run was judged
NOW = "judged now"  # The name of the judges that the cases name


@dataclass(slots=True)
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
        return {item: one.reason for item, one in self.read().items() if one.passed is None}


@frozen
class JudgePair:
    first: str
    second: str
    items: Agreement
    trials: Agreement


def pairs_of(columns: Collection[JudgeColumn]) -> list[JudgePair]:
    judges = [(one.name, one.read(), one.trials()) for one in columns]
    return [
        JudgePair(one, other, agreement(read, other_read), agreement(trials, other_trials))
        for (one, read, trials), (other, other_read, other_trials) in combinations(judges, 2)
    ]


# A judge against what people said: `labels.csv`. ``pass`` is the positive class: precision is the
# share of the judge's passes that people passed, too, recall the share of people's passes that the
# judge found.

_LABELS = {"pass": True, "yes": True, "true": True, "1": True,
           "fail": False, "no": False, "false": False, "0": False}  # fmt: skip
_COLUMNS = ("job", "turn", "check", "label")


@frozen
class Label:
    line: int
    job: str  # A job's id, or a case's: then of all its trials
    turn: int
    check: str
    passed: bool


@frozen
class Score:
    pairs: Sequence[tuple[bool, bool]]  # What the judge said, and what people say
    wrong: Sequence[tuple[JudgedItem, JudgeVerdict, Label]]
    unanswered: Sequence[JudgedItem]  # Labelled, and the judge failed to answer
    unmatched: Sequence[Label]  # Labels of something that was not judged

    def confusion(self) -> dict[str, int]:
        cells = {"true_pass": (True, True), "false_pass": (True, False),
                 "true_fail": (False, False), "false_fail": (False, True)}  # fmt: skip
        return {name: self.pairs.count(cell) for name, cell in cells.items()}

    def shares(self) -> dict[str, tuple[int, int]]:
        """Each as a part of a whole, which may be 0."""
        cells, both = self.confusion(), self.pairs.count((True, True))
        return {
            "accuracy": (both + cells["true_fail"], len(self.pairs)),
            "precision": (both, both + cells["false_pass"]),
            "recall": (both, both + cells["false_fail"]),
        }


def read_labels(path: Path) -> list[Label]:
    """The labels in a CSV file; without a `check`, of the trial. Raises InvalidFilesError."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFilesError([Problem(path, 1, 1, "", f"cannot be read: {error}")]) from None
    rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    lacking = [f"`{name}`" for name in ("job", "label") if name not in (rows.fieldnames or ())]
    if lacking:
        what, fix = f"the first line lacks {', '.join(lacking)}", "write the columns: "
        raise InvalidFilesError([Problem(path, 1, 1, "", what, fix + ",".join(_COLUMNS))])
    labels: dict[tuple[str, int, str], Label] = {}
    problems: list[Problem] = []
    for row in rows:
        job, turn, check, label = (_flat(row.get(name) or "") for name in _COLUMNS)
        if not label:
            continue
        wrong = None
        if not job:
            wrong = "job", "there is no job", "write a trial's id, or a case's"
        elif turn and not turn.isdigit():
            wrong = "turn", f"`{turn}` is no turn", "write its number, 0 for the conversation"
        elif label.casefold() not in _LABELS:
            wrong = "label", f"`{label}` is no label", "write `pass` or `fail`"
        else:
            passed = _LABELS[label.casefold()]
            new = Label(rows.line_num, job, int(turn or 0), check or CASE, passed)
            old = labels.setdefault((job, new.turn, new.check), new)
            if old.passed != passed:
                wrong = "label", f"line {old.line} says the opposite", "leave one of them out"
        if wrong is not None:
            where, what, fix = wrong
            problems.append(Problem(path, rows.line_num, 1, where, what, fix))
    if problems:
        raise InvalidFilesError(problems)
    return list(labels.values())


def labels_to_fill_in(items: Iterable[JudgedItem]) -> str:
    """A CSV file with a row for each of `items`, whose label is for people to write."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((item.job, item.turn, _flat(item.check), "") for item in items)
    return text.getvalue()


def against_labels(verdicts: Verdicts, labels: Sequence[Label]) -> Score:
    """How well `verdicts` agree with `labels`; a trial's own label outranks that of its case."""
    by_place = {(label.job, label.turn, label.check): label for label in labels}
    pairs: list[tuple[bool, bool]] = []
    wrong: list[tuple[JudgedItem, JudgeVerdict, Label]] = []
    unanswered: list[JudgedItem] = []
    matched: set[Label] = set()
    for item, verdict in verdicts.items():
        jobs = (item.job, item.job.rsplit("/", 3)[0])
        places = [(job, item.turn, _flat(item.check)) for job in jobs]
        given = [by_place[place] for place in places if place in by_place]
        matched.update(given)
        if not given:
            continue
        if verdict.passed is None:
            unanswered.append(item)
            continue
        pairs.append((verdict.passed, given[0].passed))
        if verdict.passed != given[0].passed:
            wrong.append((item, verdict, given[0]))
    unmatched = [label for label in labels if label not in matched]
    return Score(pairs, wrong, unanswered, unmatched)


def _flat(text: str) -> str:
    """Names may hold line breaks, which spreadsheets and people change."""
    return " ".join(text.split())
