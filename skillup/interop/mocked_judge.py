"""An agent judge whose answers stand in the file: `mock_results` of a judge-debug file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.checks.scoring import weighted_mean
from skillup.judges.agents.criteria import Asked, numbered
from skillup.judges.ledger import Ledger
from skillup.judges.settling import Reader
from skillup.judges.sitting import Inquiry
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import TurnError


class MockedJudge:
    """A `Reader`: answers for agent judges, and passes everything else on to `other`."""

    def __init__(self, results: Sequence[Mapping[str, Any]], other: Reader) -> None:
        self._results = results
        self._other = other

    def problem(self, case: Case) -> TurnError | None:
        """None: agent judges need nobody here."""
        kept = [judge for judge in case.all_judges() if judge.type != "agent_judge"]
        return self._other.problem(case.model_copy(update={"judge": None, "judges": kept or None}))

    async def read(self, inquiry: Inquiry, ledger: Ledger) -> Sequence[CheckResult]:
        """What the file says for the judge's criteria."""
        if inquiry.judge is None or inquiry.judge.type != "agent_judge":
            return await self._other.read(inquiry, ledger)
        return [mocked_result(inquiry.judge, self._results)]


def mocked_result(judge: JudgeConfig, results: Sequence[Mapping[str, Any]]) -> CheckResult:
    """The judge's result; a criterion that the file says nothing of makes it an error."""
    children: list[CheckResult] = []
    silent: list[str] = []
    for place, asked in enumerate(numbered(judge.criteria)):
        said = _said(asked, place, results)
        if said is None:
            silent.append(asked.id)
        else:
            children.append(_child(asked, said))
    score = round(weighted_mean(children), 6) if children else 0.0
    threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
    met = sum(child.passed for child in children)
    refused = any(child.required and not child.passed for child in children)
    unmet = next((child for child in children if not child.passed), None)
    why = "" if unmet is None else f"; {unmet.name}: {unmet.found}".removesuffix(": ")
    error = f"`mock_results` has nothing for {', '.join(silent)}" if silent else None
    return CheckResult(
        name=judge.id or "agent_judge",
        kind="agent_judge",
        passed=error is None and score >= threshold and not refused,
        score=score,
        role="judge",
        found=f"{met} of {len(children)} criteria met, score {score:.2f} of {threshold:.2f}{why}",
        notes=["answered by the file's `mock_results`: no agent was asked"],
        error=error,
        children=children,
    )


def _said(
    asked: Asked, place: int, results: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """By id; by its text, as older files have it; else by place, where no entry names anything."""
    for said in results:
        if said.get("criterion_id") == asked.id or said.get("criterion") == asked.criterion.outcome:
            return said
    named = any("criterion_id" in said or "criterion" in said for said in results)
    return results[place] if not named and place < len(results) else None


def _child(asked: Asked, said: Mapping[str, Any]) -> CheckResult:
    passed = said.get("passed") is True
    evidence = said.get("evidence", said.get("reason", ""))
    failures = said.get("failures") or []
    return CheckResult(
        name=asked.criterion.outcome,
        kind="criterion",
        passed=passed,
        score=float(passed),
        weight=asked.criterion.weight,
        required=asked.criterion.required,
        role="judge",
        expected=asked.criterion.outcome,
        found="; ".join(map(str, failures)) or _joined(evidence),
        excerpt=_joined(evidence),
    )


def _joined(evidence: Any) -> str:
    return "; ".join(map(str, evidence)) if isinstance(evidence, list) else str(evidence)
