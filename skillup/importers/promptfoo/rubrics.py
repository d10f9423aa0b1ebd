"""Rubrics of promptfoo and AgentV: criteria, thresholds and grading prompts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.importers import files
from skillup.importers.values import SourceValue, as_text

Check = dict[str, Any]
LEAST_PASS = 0.8
"""AgentV's, of a score of its own."""
_PLACEHOLDER = re.compile(r"\{\{-?\s*(?:vars\.)?([\w.]+)[^{}]*\}\}")
_OUR_NAMES = {
    "output": "{{output}}", "answer": "{{output}}", "rubric": "{{criteria}}",
    "rubrics": "{{criteria}}", "input": "{{input}}", "question": "{{input}}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Background:
    """What assertions may refer to, and how their tool reads them."""

    promptfoo: bool = False
    """Else AgentV: texts are trimmed before they are compared."""
    expected: Any = None
    criteria: str = ""
    base: Path | None = None
    rubric_prompt: SourceValue | None = None
    """The grading prompt of all rubrics that have none of their own."""


def rubric_of_texts(texts: list[str]) -> Any:
    """AgentV's bare texts: one rubric, which passes from a share of them."""
    return texts[0] if len(texts) == 1 else {"criteria": texts, "threshold": LEAST_PASS}


def read_rubric(node: SourceValue, kind: str, background: Background) -> Any:
    """The rubric of an ``llm-rubric``: a text, criteria, or a grading prompt.

    A single criterion without anything else needs no list. None if nothing can be asked.
    """
    given = node.get("value", "criteria", "rubrics")
    criteria = criteria_of(given)
    if isinstance(given.value, str) and given.value.startswith(files.SCHEME):
        text = files.read(given.text(), given, background.base)
        criteria = [{"outcome": text}] if text else []
    own = node.get("prompt", "rubricPrompt", "rubric_prompt") or background.rubric_prompt
    prompt = _prompt(own, background) if own else ""
    if own and prompt and "{{output}}" not in prompt:  # it is no more than a criterion
        if criteria:
            own.lost("a grading prompt without the answer, beside criteria")
        criteria, prompt = criteria or [{"outcome": prompt}], ""
    if not criteria and background.criteria:
        criteria = [{"outcome": background.criteria}]
    if not criteria:
        return None
    threshold = node.get("threshold", "min_score")
    least = threshold.number()
    if least is None and background.promptfoo:
        least = 0.7 if kind == "g-eval" else None
    elif least is None and len(criteria) > 1:
        least = LEAST_PASS
    elif least is not None:
        what = f"it passes from a score of {least}"
        threshold.changed(what, "a judge says yes or no here")
    made: Check = {"criteria": criteria}
    if least is not None and 0 < least <= 1:
        made["threshold"] = least
    if prompt:
        made["prompt"] = prompt
    if len(made) == 1 and len(criteria) == 1 and set(criteria[0]) == {"outcome"}:
        return criteria[0]["outcome"]
    return made


def criteria_of(node: SourceValue) -> list[Check]:
    """The criteria of a text, a list of texts, or of mappings with weights."""
    if isinstance(node.value, dict) and (inner := node.get("criteria", "rubrics")):
        return criteria_of(inner)
    found: list[Check] = []
    for item in node.elements():
        is_mapping = isinstance(item.value, dict)
        text = item.get("outcome", "description").text() if is_mapping else item.text()
        if not text.strip():
            if is_mapping:
                item.drop("a criterion without an outcome")
            continue
        if item.get("operator").text() == "contradiction":
            text = f"Says nothing that contradicts this (it need not be mentioned): {text}"
        named, weight = item.get("id", "name").text(), item.get("weight").number()
        made: Check = {"id": named, "outcome": text} if named else {"outcome": text}
        if weight not in (None, 1):
            made["weight"] = weight
        if item.get("required").is_true():
            made["required"] = True
        found.append(made)
    return found


def _prompt(node: SourceValue, background: Background) -> str:
    """The grading prompt's text with our names of what its tool's placeholders mean."""

    def renamed(match: re.Match[str]) -> str:
        name = match[1]
        if name in _OUR_NAMES:
            return _OUR_NAMES[name]
        known = node.scope.lookup(name) if node.scope is not None else None
        if name == "criteria" and not background.promptfoo:
            known = background.criteria
        elif name in ("expected_output", "reference_answer"):
            known = background.expected or known or ""
        if known is None:
            node.lost(f"`{match[0]}` of a grading prompt", "left out: there is no counterpart")
        return as_text(known).replace("{{", "{ {")

    if not isinstance(node.value, str):
        node.drop("a grading prompt that is no text", "left out: see the criterion instead")
        return ""
    # Not filled in as a template: most of its placeholders are the grader's own.
    node.use()
    text = node.value.strip()
    if text.startswith(files.SCHEME) or re.fullmatch(r".*\.(md|txt)", text):
        text = (files.read(text, node, background.base) or "").strip()
    return _PLACEHOLDER.sub(renamed, text)
