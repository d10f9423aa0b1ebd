"""From what the agent answered, once or several times, to one result with a child per criterion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillup.checks.evidence import one_line
from skillup.checks.scoring import weighted_mean
from skillup.engines.failures import shortened
from skillup.judges.agents.answer import CriterionVerdict
from skillup.judges.agents.criteria import Asked
from skillup.schema.grade import CheckResult

Verdicts = Mapping[str, CriterionVerdict]
Weakness = Callable[[str, bool], str | None]
_REASON_CHARACTERS = 1000
_QUOTE_CHARACTERS = 300


def opinion(
    asked: Sequence[Asked],
    answers: Sequence[Verdicts],
    threshold: float,
    weakness: Weakness,
    mask: Callable[[str], str],
) -> dict[str, Any]:
    """The fields of the judge's result; the majority of `answers` decides, a tie is no pass.

    `weakness` tells why a quotation supports nothing, or not a pass.
    """
    children = [_child(item, answers, weakness, mask) for item in asked]
    score = round(weighted_mean(children), 6)
    passed = _passes(children, score, threshold)
    unmet = [child for child in children if not child.passed]
    found = f"{len(children) - len(unmet)} of {len(children)} criteria met, score {score:.2f}"
    if not passed:
        why = next((c for c in unmet if c.required), unmet[0] if unmet else None)
        found += f" < {threshold:.2f}" if score < threshold else ""
        found += f"; {why.name}: {why.found}" if why is not None else ""
    fields: dict[str, Any] = {
        "passed": passed,
        "score": score,
        "found": found,
        "children": children,
    }
    if len(answers) > 1:
        fields |= _agreement(asked, answers, threshold, passed)
    return fields


def _child(
    item: Asked,
    answers: Sequence[Verdicts],
    weakness: Weakness,
    mask: Callable[[str], str],
) -> CheckResult:
    given = [answer[item.id] for answer in answers]
    votes = [float(verdict.passed) for verdict in given]
    passed = sum(votes) * 2 > len(votes)
    shown = next((verdict for verdict in given if verdict.passed == passed), given[0])
    criterion = item.criterion
    child = CheckResult(
        name=criterion.outcome if criterion.id is None else f"{item.id}: {criterion.outcome}",
        kind="criterion",
        passed=passed,
        score=float(passed),
        weight=criterion.weight,
        required=criterion.required,
        role="judge",
        expected=criterion.outcome,
        found=shortened(one_line(mask(shown.reason)), _REASON_CHARACTERS),
        excerpt=" / ".join(_quote(quote, mask) for quote in shown.evidence),
        notes=[
            f"a quotation does not support this: {why}: {_quote(quote, mask)}"
            for quote in shown.evidence
            if (why := weakness(quote, passed)) is not None
        ],
    )
    if passed and not shown.evidence:
        child = child.model_copy(update={"notes": ["the judge quotes nothing for this pass"]})
    if len(votes) == 1:
        return child
    agreed = sum(vote == float(passed) for vote in votes) / len(votes)
    notes = list(child.notes)
    if agreed < 1:
        notes.append(f"the judge disagreed with itself: {sum(votes):g} of {len(votes)} said yes")
    return child.model_copy(update={"votes": votes, "agreement": agreed, "notes": notes})


def _agreement(
    asked: Sequence[Asked], answers: Sequence[Verdicts], threshold: float, passed: bool
) -> dict[str, Any]:
    """The score each time, and the share of the times that come to the same verdict."""
    votes: list[float] = []
    same = 0
    for answer in answers:
        alone = [_child(item, [answer], lambda *_: None, str) for item in asked]
        votes.append(round(weighted_mean(alone), 6))
        same += _passes(alone, votes[-1], threshold) == passed
    notes = [] if same == len(answers) else [f"{same} of {len(answers)} answers say the same"]
    return {"votes": votes, "agreement": same / len(answers), "notes": notes}


def _passes(children: Sequence[CheckResult], score: float, threshold: float) -> bool:
    return score >= threshold and all(c.passed for c in children if c.required)


def _quote(text: str, mask: Callable[[str], str]) -> str:
    return shortened(one_line(mask(text)), _QUOTE_CHARACTERS)
