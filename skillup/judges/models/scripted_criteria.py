"""The written-down judge's verdicts on criteria: each decided by itself, by regexes on the answer.

A question lists its criteria as ``c1: …`` and has the answers in material between lines with a
code: see `skillup/judges/reading/prompt.py` and `material.py`, which write what is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regex import Match

from skillup.judges.models.failures import CannotAskError
from skillup.judges.models.question import ModelQuestion
from skillup.schema.judge_script import JudgeCriterion
from skillup.schema.patterns import compiled_pattern

_PER_SEARCH = 1.0
"""Seconds that a regex may take."""
_LONGEST_QUOTE = 300
_MATERIAL = re.compile(
    r"^=====\[ (?P<code>\w+) BEGIN MATERIAL \]=====\n(?P<text>.*?)\n?"
    r"^=====\[ (?P=code) END MATERIAL \]=====$",
    re.MULTILINE | re.DOTALL,
)
_CRITERION = re.compile(r"^(?P<id>c\d+): (?P<text>.*(?:\n   .*)*)", re.MULTILINE)
_WHOLE = "Judge the conversation as a whole"


def verdicts_on(
    question: ModelQuestion, known: Sequence[JudgeCriterion]
) -> list[dict[str, str]] | None:
    """A verdict for each criterion of `question`; None: it is not about criteria, or none is known.

    Raises CannotAskError for a criterion that none of `known` is about.
    """
    if not known or set(question.answer.model_fields) != {"verdicts"}:
        return None
    asked = _MATERIAL.sub("", question.prompt)
    answer = _judged_answer(question.prompt, whole=_WHOLE in asked)
    verdicts: list[dict[str, str]] = []
    for match in _CRITERION.finditer(asked):
        rule = next((r for r in known if all(find(p, match["text"]) for p in r.when)), None)
        if rule is None:
            shown = " ".join(match["text"].split())
            name = question.model.model
            raise CannotAskError(
                f"none of the `criteria` of {name} is about {match['id']}: {shown}"
            )
        verdicts.append({"id": match["id"], **_verdict(rule, answer)})
    return verdicts


def find(pattern: str, text: str) -> Match[str] | None:
    """Where `pattern` finds something; case is ignored. Raises CannotAskError: it took too long."""
    try:
        return compiled_pattern(pattern, True).search(text, timeout=_PER_SEARCH)
    except TimeoutError:
        raise CannotAskError(
            f"the pattern /{pattern}/ took too long; write it without nested repetition"
        ) from None


def _verdict(rule: JudgeCriterion, answer: str) -> dict[str, str]:
    verdict, reason, quote = "pass", "Nothing that must not be there is there.", ""
    for pattern in rule.found:
        match = find(pattern, answer)
        if match is None:
            verdict, reason, quote = "fail", f"Nothing matches /{pattern}/.", ""
            break
        reason, quote = f"This matches /{pattern}/.", match[0]
    for pattern in rule.not_found:
        if verdict == "pass" and (match := find(pattern, answer)):
            verdict, reason, quote = "fail", f"This matches /{pattern}/.", match[0]
    return {"verdict": verdict, "reason": reason, "quote": quote[:_LONGEST_QUOTE]}


def _judged_answer(prompt: str, *, whole: bool) -> str:
    """The last answer in the material; of a `whole` conversation, the answers of all its turns."""
    answers = [said for said in _sections(prompt) if said[0].endswith((" answer", "(empty)"))]
    judged = answers if whole else answers[-1:]
    return "\n\n".join(text for label, text in judged if label.startswith("turn "))


def _sections(prompt: str) -> Iterator[tuple[str, str]]:
    """Each text of the material, after who it is of: `turn 2 · answer`."""
    for material in _MATERIAL.finditer(prompt):
        heading = re.compile(rf"^-----\[ {material['code']} (.*) \]-----$", re.MULTILINE)
        pieces = heading.split(material["text"])
        yield from zip(pieces[1::2], (piece.strip("\n") for piece in pieces[2::2]), strict=True)
