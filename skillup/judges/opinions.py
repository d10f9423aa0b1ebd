"""The judges that read the whole conversation: what a script or an agent said becomes a verdict."""

from __future__ import annotations

from skillup.checks import CheckContext
from skillup.judges.rules import JudgeVerdict
from skillup.judges.sitting import Sitting
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig


def judge_by_reading(
    number: int, judge: JudgeConfig, context: CheckContext, sitting: Sitting | None
) -> JudgeVerdict:
    """The verdict of the case's judge `number`; without a sitting there is nobody to ask.

    Each of its results must pass, where the judge is required.
    """
    results = [_nobody(judge)] if sitting is None else sitting.judge(number, judge, context)
    stated = tuple(result.model_copy(update={"required": judge.required}) for result in results)
    unmet = next((result for result in stated if not result.passed), None)
    label = judge.id or judge.type or "judge"
    if unmet is not None:
        return JudgeVerdict(False, f"{label}: {unmet.name}: {unmet.found}", stated)
    return JudgeVerdict(True, f"{label}: yes", stated)


def _nobody(judge: JudgeConfig) -> CheckResult:
    kind = judge.type or "judge"
    why = "there is nobody to ask: this grade was made by rules alone"
    return CheckResult(name=kind, kind=kind, passed=False, score=0.0, role="judge", error=why)
