"""The written-down judge's verdicts on criteria: each decided by itself, by regexes on the answer.

A question lists its criteria as ``c1: …``: see `skillup/judges/reading/criteria.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillup.judges.models.failures import CannotAskError
from skillup.judges.models.question import ModelQuestion
from skillup.judges.models.scripted_texts import judged_answer, without_texts
from skillup.schema.judge_script import JudgeCriterion
from skillup.schema.patterns import compiled_pattern

if TYPE_CHECKING:
    import regex

_PER_SEARCH = 1.0
"""Seconds that a regex may take."""
_LONGEST_QUOTE = 300
_CRITERION = re.compile(r"^(?P<id>c\d+): (?P<text>.*(?:\n   .*)*)", re.MULTILINE)


def verdicts_on(
    question: ModelQuestion, known: Sequence[JudgeCriterion]
) -> list[dict[str, str]] | None:
    """A verdict for each criterion of `question`; None: it is not about criteria, or none is known.

    Raises CannotAskError for a criterion that none of `known` is about.
    """
    if not known or set(question.answer.model_fields) != {"verdicts"}:
        return None
    answer = judged_answer(question.prompt)
    verdicts: list[dict[str, str]] = []
    for match in _CRITERION.finditer(without_texts(question.prompt)):
        rule = next((r for r in known if all(find(p, match["text"]) for p in r.when)), None)
        if rule is None:
            shown = " ".join(match["text"].split())
            name = question.model.model
            raise CannotAskError(
                f"none of the `criteria` of {name} is about {match['id']}: {shown}"
            )
        verdicts.append({"id": match["id"], **_verdict(rule, answer)})
    return verdicts


def find(pattern: str, text: str) -> regex.Match[str] | None:
    """Where `pattern` finds something; case is ignored. Raises CannotAskError: it took too long."""
    try:
        return compiled_pattern(pattern, True).search(text, timeout=_PER_SEARCH)
    except TimeoutError:
        raise CannotAskError(
            f"the pattern /{pattern}/ took too long; write it without nested repetition"
        ) from None


def _verdict(rule: JudgeCriterion, answer: str) -> dict[str, str]:
    reason, quote = "Nothing that must not be there is there.", ""
    for pattern in rule.found:
        match = find(pattern, answer)
        if match is None:
            return {"verdict": "fail", "reason": f"Nothing matches /{pattern}/.", "quote": ""}
        reason, quote = f"This matches /{pattern}/.", _quoted(match)
    for pattern in rule.not_found:
        if match := find(pattern, answer):
            reason, quote = f"This matches /{pattern}/.", _quoted(match)
            return {"verdict": "fail", "reason": reason, "quote": quote}
    return {"verdict": "pass", "reason": reason, "quote": quote}


def _quoted(match: regex.Match[str]) -> str:
    """The line that it begins in: what stands on several lines may be of several messages."""
    text = match.string
    begin = text.rfind("\n", 0, match.start()) + 1
    line = text[begin:].partition("\n")[0].strip()
    return line if len(line) <= _LONGEST_QUOTE else match[0].partition("\n")[0][:_LONGEST_QUOTE]
