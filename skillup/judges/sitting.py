"""What is asked of judges while a record is evaluated, gathered so that it can be asked at once.

Evaluation is a pure function of the record and of what judges said. So it is done twice: the first
time every check that needs a judge is noted down as an inquiry and stands as unanswered; the
inquiries are answered (:mod:`skillup.judges.settling`); the second time the answers are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skillup.checks import CheckContext
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import TurnRecord

Subject = tuple[object, ...]
"""Names what is asked about: a turn (or one of its follow-ups), or the conversation."""


@dataclass(slots=True)
class Inquiry:
    """Everything that is asked about one subject in one role: it may go to a model as one call."""

    key: Subject
    context: CheckContext
    role: CheckRole
    checks: list[Check] = field(default_factory=list)
    """Different ones, in the order in which they were met."""
    judge: JudgeConfig | None = None
    """A whole judge (`script`, `agent_judge`) is asked instead of `checks`."""
    case: Case | None = None
    """The case it is judged by; None: the one in the record."""


@dataclass(slots=True)
class Answers:
    """What is known so far."""

    checks: dict[tuple[Subject, str], CheckResult] = field(default_factory=dict)
    """By subject and the check as JSON."""
    judges: dict[Subject, list[CheckResult]] = field(default_factory=dict)


class Sitting:
    """One evaluation: answers what is known, notes down what is not."""

    def __init__(self, answers: Answers) -> None:
        self.case: Case | None = None
        """The case that is judged by, where it may be another than the record's."""
        self._answers = answers
        self._open: dict[Subject, Inquiry] = {}

    @property
    def inquiries(self) -> Mapping[Subject, Inquiry]:
        """What could not be answered, by subject."""
        return self._open

    def ask(self, check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
        """The answer of a judge that reads; one that says it is open, if it is not known yet."""
        key = (role, *subject_of(context.turn))
        known = self._answers.checks.get((key, check_key(check)))
        if known is not None:
            return known
        inquiry = self._open.setdefault(key, Inquiry(key, context, role, case=self.case))
        if check not in inquiry.checks:
            inquiry.checks.append(check)
        return _open_result(check.key, role)

    def judge(self, number: int, judge: JudgeConfig, context: CheckContext) -> list[CheckResult]:
        """The results of the case's judge `number`, a script or an agent."""
        key: Subject = ("judge", number)
        known = self._answers.judges.get(key)
        if known is not None:
            return known
        self._open[key] = Inquiry(key, context, "judge", judge=judge, case=self.case)
        return [_open_result(judge.type or "rule_based", "judge")]


def check_key(check: Check) -> str:
    """Tells checks apart that ask something else."""
    return check.model_dump_json(exclude_unset=True, by_alias=True)


def subject_of(turn: TurnRecord | None) -> Subject:
    """A turn of a record is known by its number and by what asked for it."""
    return ("conversation",) if turn is None else (turn.turn_number, *turn.asked_by)


def _open_result(kind: str, role: CheckRole) -> CheckResult:
    return CheckResult(
        name=kind, kind=kind, passed=False, score=0.0, role=role, error="not answered yet"
    )
