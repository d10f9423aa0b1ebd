"""The rule-based judge: success rules that must all hold, failure rules of which none may."""

from __future__ import annotations

from dataclasses import dataclass

from skillup.checks import CheckContext, evaluate
from skillup.checks.describe import TURNED_ROUND
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """What one judge says, and on what grounds."""

    passed: bool
    reason: str
    results: tuple[CheckResult, ...]


def judge_by_rules(judge: JudgeConfig, context: CheckContext) -> JudgeVerdict:
    """Failure rules outrank success rules; where neither speaks, evidence is wanting.

    A failure rule's result is turned round for the report: it passes when its pattern is absent.
    One that could not be evaluated does not pass.
    """
    failure = []
    for check in judge.failure:
        result = evaluate(check, context, role="failure", negated=True)
        absent = result.assertable and result.error is None and not result.passed
        failure.append(
            result.model_copy(
                update={
                    "passed": absent,
                    "score": float(absent),
                    "required": True,
                    "name": f"not ({result.name})",
                    "expected": f"{TURNED_ROUND}{result.expected}",
                }
            )
        )
    success = [evaluate(check, context, role="success", required=True) for check in judge.success]
    results = (*failure, *success)
    matched = next((r for r in failure if not r.passed), None)
    if matched is not None:
        why = "matched" if matched.assertable else "could not be evaluated"
        return JudgeVerdict(False, f"failure rule {why}: {matched.name}", results)
    missed = next((r for r in success if not r.passed), None)
    if missed is not None:
        return JudgeVerdict(False, f"success rule not met: {missed.name}", results)
    if not success and judge.otherwise == "pass":
        said = CheckResult(
            name="no rule is broken",
            kind="rule_based",
            passed=True,
            score=1.0,
            role="judge",
            expected="no failure rule holds",
            found=f"{len(failure)} failure rules, none of which holds",
        )
        return JudgeVerdict(True, "no failure rule holds", (*results, said))
    if not success:
        return JudgeVerdict(False, "no success rule: there is no evidence to pass on", results)
    return JudgeVerdict(True, "all success rules met", results)
