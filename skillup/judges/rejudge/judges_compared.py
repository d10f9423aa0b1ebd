"""Several judges over the same records: what each said, and what it took."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from skillup.checks.registry import JUDGED
from skillup.judges.models.client import with_judge_model
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade, Judging
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import joined
from skillup.schema.suite import Suite

# What a judge said of each thing it was asked, so that it can be compared with others.

CASE = "case"  # The `check` of the verdict on the whole trial


@dataclass(frozen=True, slots=True, order=True)
class JudgedItem:
    """One thing that is judged: a criterion, a check, or the trial as a whole."""

    job: str
    turn: int  # From 1; 0: the conversation
    check: str  # The check's name; of a criterion, also its own: ``name / criterion``


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """What was said. An error is no verdict, and is counted apart."""

    passed: bool | None  # None: the judge failed
    reason: str
    quote: str = ""  # What it was shown to rest on
    kind: str = ""  # The key of the check it is about; `case`: of the trial as a whole


def verdicts_of(job: str, grade: Grade) -> dict[JudgedItem, JudgeVerdict]:
    """Everything that judges who read were asked about the trial, and the trial's own verdict.

    A check of several criteria counts by its criteria. Deterministic checks say the same whoever
    judges: they are left out, and so are those for which there was nothing to read. A skipped trial
    has no verdict.
    """
    found: dict[JudgedItem, JudgeVerdict] = {}
    for turn, result in _read(grade):
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


def _read(grade: Grade) -> Iterator[tuple[int, CheckResult]]:
    """Every check that somebody read for, also within others, with its turn (0: none)."""
    for turn in grade.turns:
        follow_ups = (check for one in turn.follow_ups for check in one.checks)
        for check in (*turn.checks, *follow_ups):
            yield from ((turn.turn_number, found) for found in _within(check))
    for check in grade.assertions:
        yield from ((0, found) for found in _within(check))


def _within(check: CheckResult) -> Iterator[CheckResult]:
    if check.kind not in JUDGED and check.role != "judge":
        for child in check.children:
            yield from _within(child)
    elif check.assertable:
        yield check


# The same case, judged by another model.

_SCRIPTED = "scripted:"


def read_by(case: Case, model: str, here: Path, suite: Suite | None = None) -> Case:
    """`case` of `suite` with `model` as what reads for its checks, as `--judge-model` wants it.

    A file of `scripted:FILE` that is there from `here` is meant; else the suite's.
    """
    file = here / model.removeprefix(_SCRIPTED)
    if model.startswith(_SCRIPTED) and file.is_file():
        model = f"{_SCRIPTED}{file}"
    return with_judge_model(case, model, suite=suite)


def judged_by(case: Case, model: str, here: Path) -> Case:
    """As :func:`read_by`, and with `model` as the model of its agent judges.

    Agents cannot be asked for a judge of a `scripted:FILE`, and keep their model.
    """
    if case.judge_model is None or case.judge_model.model != model:
        case = read_by(case, model, here)
    if model.startswith(_SCRIPTED):
        return case
    name = model.removeprefix("openai-responses:").removeprefix("openai-chat:")

    def by_it(judge: JudgeConfig) -> JudgeConfig:
        if judge.type != "agent_judge":
            return judge
        return judge.model_copy(update={"model": name})

    judges = [by_it(judge) for judge in case.judges] if case.judges else None
    judge = by_it(case.judge) if case.judge is not None else None
    return case.model_copy(update={"judge": judge, "judges": judges})


# How far two judges say the same: the share of agreement, and Cohen's kappa.


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two judges said different things of the same."""

    item: JudgedItem
    first: JudgeVerdict
    second: JudgeVerdict


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two judges, over what both were asked and both answered."""

    items: int
    agreed: int
    kappa: float | None
    """-1..1; None where it is not defined: both always said the same one thing, or no items."""
    disagreements: tuple[Disagreement, ...]

    @property
    def share(self) -> float | None:
        """None: there is nothing that both answered."""
        return self.agreed / self.items if self.items else None


def agreement(
    first: Mapping[JudgedItem, JudgeVerdict], second: Mapping[JudgedItem, JudgeVerdict]
) -> Agreement:
    """Compare what two judges said of the same records."""
    pairs = [Disagreement(item, first[item], second[item]) for item in first if item in second]
    pairs = [p for p in pairs if None not in (p.first.passed, p.second.passed)]
    apart = tuple(pair for pair in pairs if pair.first.passed != pair.second.passed)
    kappa = kappa_of([(bool(p.first.passed), bool(p.second.passed)) for p in pairs])
    return Agreement(len(pairs), len(pairs) - len(apart), kappa, apart)


def kappa_of(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of two judges; None where it is not defined."""
    if not pairs:
        return None
    count = len(pairs)
    observed = sum(a == b for a, b in pairs) / count
    yes_first = sum(a for a, _ in pairs) / count
    yes_second = sum(b for _, b in pairs) / count
    chance = yes_first * yes_second + (1 - yes_first) * (1 - yes_second)
    if chance == 1:
        return None
    return (observed - chance) / (1 - chance)


RECORDED = "recorded"  # The name of the judges as they were when the run was judged
NOW = "judged now"  # The name of the judges that the cases name


@dataclass(slots=True)
class JudgeColumn:
    """One judge of a panel."""

    name: str
    model: str | None = None
    """Who is asked in place of the cases' own judges; None: those themselves."""
    verdicts: dict[JudgedItem, JudgeVerdict] = field(default_factory=dict)
    """All that it said, of scripts and of trials as a whole, too."""
    took: Judging | None = None

    def add(self, job: str, grade: Grade) -> None:
        """One more grade by this judge."""
        self.verdicts.update(verdicts_of(job, grade))
        self.took = joined(self.took, grade.judging)

    def read(self) -> dict[JudgedItem, JudgeVerdict]:
        """What was read by a model or an agent: what judges can differ in."""
        return {
            item: verdict
            for item, verdict in self.verdicts.items()
            if verdict.kind not in (CASE, "script")
        }

    def trials(self) -> dict[JudgedItem, JudgeVerdict]:
        """The verdicts on trials as a whole."""
        return {item: said for item, said in self.verdicts.items() if said.kind == CASE}

    def failures(self) -> dict[str, list[JudgedItem]]:
        """What it failed to judge, by the reason."""
        found: dict[str, list[JudgedItem]] = {}
        for item, verdict in self.read().items():
            if verdict.passed is None:
                found.setdefault(verdict.reason, []).append(item)
        return found


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two judges compared: by what they read, and by what that came to for each trial."""

    first: str
    second: str
    items: Agreement
    trials: Agreement


def pairs_of(columns: Collection[JudgeColumn]) -> list[JudgePair]:
    """Each judge with each later one."""
    said = [(one.name, one.read(), one.trials()) for one in columns]
    return [
        JudgePair(one, other, agreement(read, other_read), agreement(trials, other_trials))
        for (one, read, trials), (other, other_read, other_trials) in combinations(said, 2)
    ]
