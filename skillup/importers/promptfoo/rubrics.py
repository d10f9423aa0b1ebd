"""Rubrics of promptfoo and AgentV: criteria, thresholds and grading prompts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.importers import files
from skillup.importers.messages import is_messages
from skillup.importers.values import SourceValue, as_text

Check = dict[str, Any]
LEAST_PASS = 0.8
"""AgentV's, of a score of its own."""
_PLACEHOLDER = re.compile(r"\{\{-?\s*([\w.]+)[^{}]*\}\}")
_OUR_NAMES = {
    "output": "{{output}}", "answer": "{{output}}", "rubric": "{{criteria}}",
    "rubrics": "{{criteria}}", "rubrics_json": "{{criteria}}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Background:
    """What assertions may refer to, and how their tool reads them."""

    promptfoo: bool = False
    """Else AgentV: texts are trimmed before they are compared."""
    expected: Any = None
    criteria: str = ""
    base: Path | None = None
    templates: SourceValue | None = None
    rubric_prompt: SourceValue | None = None
    """The grading prompt of all rubrics that have none of their own."""


def rubric_of_texts(texts: list[str]) -> Any:
    """AgentV's bare texts: one rubric, which passes from a share of them."""
    return texts[0] if len(texts) == 1 else {"criteria": texts, "threshold": LEAST_PASS}


def read_rubric(node: SourceValue, kind: str, name: str, background: Background) -> Any:
    """The rubric of an ``llm-rubric``: a text, criteria, a grading prompt, or nothing but a name.

    A single criterion without anything else needs no list. None if nothing can be asked.
    """
    given = node.get("value", "criteria", "rubrics")
    if isinstance(given.value, str) and given.value.startswith(files.SCHEME):
        text = files.read_text_file(given.text(), given, background.base)
        criteria: list[Check] = [{"outcome": text}] if text else []
    else:
        criteria = criteria_of(given)
    own = node.get("prompt", "rubricPrompt", "rubric_prompt") or background.rubric_prompt
    prompt = _prompt(own, background.base) if own else ""
    if own and prompt and _PLACEHOLDER.search(prompt):
        prompt = _with_our_names(prompt, own, background)
    elif own and prompt:
        if criteria:
            own.lost("a grading prompt without variables, beside criteria")
        criteria, prompt = criteria or [{"outcome": prompt}], ""
    if given and not criteria and not prompt:
        return None
    asked = criteria or [{"outcome": _by_name(node, name, background)}]
    least = node.get("threshold", "min_score").number()
    if least is None and background.promptfoo:
        least = 0.7 if kind == "g-eval" else None
    elif least is None and len(criteria) > 1:
        least = LEAST_PASS
    made: Check = {"criteria": asked}
    if least is not None and 0 < least <= 1:
        made["threshold"] = least
    if prompt:
        made["prompt"] = prompt
    if len(made) == 1 and len(criteria) <= 1 and set(asked[0]) <= {"outcome", "required"}:
        return asked[0]["outcome"]
    return made


def criteria_of(node: SourceValue) -> list[Check]:
    """The criteria of a text, a list of texts, or of mappings with weights."""
    if isinstance(node.value, dict) and (inner := node.get("criteria", "rubrics")):
        return criteria_of(inner)
    found: list[Check] = []
    for item in node.elements():
        is_mapping = isinstance(item.value, dict)
        said = item.get("outcome", "description", "criterion").text() if is_mapping else item.text()
        if not said.strip():
            if is_mapping:
                item.drop("a criterion without an outcome")
            continue
        if item.get("operator").text() == "contradiction":
            said = f"Says nothing that contradicts this (it need not be mentioned): {said}"
        least = item.get("min_score")
        if (score := least.number()) is not None:
            what = f"the criterion passes from a score of {score}"
            least.changed(what, "a judge says yes or no here")
        named, weight = item.get("id", "name").text(), item.get("weight").number()
        made: Check = {"id": named, "outcome": said} if named else {"outcome": said}
        if weight not in (None, 1):
            made["weight"] = weight
        if item.get("required").is_true():
            made["required"] = True
        found.append(made)
    return found


def _prompt(node: SourceValue, base: Path | None) -> str:
    """The grading prompt's text, if there is one to be had."""
    value = node.value[0] if isinstance(node.value, list) and len(node.value) == 1 else node.value
    if isinstance(value, dict) and not is_messages(value):
        node.drop("a grading prompt that a program makes", "left out: see the criterion instead")
        return ""
    # Not filled in as a template: most of its placeholders are the grader's own.
    node.use()
    text = as_text(value).strip()
    if text.startswith(files.SCHEME) or re.fullmatch(r".*\.(md|txt|json)", text):
        text = (files.read_text_file(text, node, base) or "").strip()
    try:
        data = json.loads(text)
    except ValueError:
        return text
    if not is_messages(data):
        return text
    messages = data if isinstance(data, list) else [data]
    return "\n\n".join(as_text(message.get("content")).strip() for message in messages)


def _with_our_names(text: str, node: SourceValue, background: Background) -> str:
    """A grading prompt with our names of what its tool's placeholders mean."""

    def renamed(match: re.Match[str]) -> str:
        name = match[1].removeprefix("vars.")
        if name in _OUR_NAMES:
            return _OUR_NAMES[name]
        known = node.scope.lookup(name, []) if node.scope is not None else None
        if known is None and name in ("input", "question"):
            return "{{input}}"
        if name == "criteria" and not background.promptfoo:
            known = background.criteria
        elif name in ("expected_output", "reference_answer"):
            known = background.expected or known or ""
        if known is None:
            node.lost(f"`{match[0]}` of a grading prompt", "left out: there is no counterpart")
        return as_text(known).replace("{{", "{ {")

    return _PLACEHOLDER.sub(renamed, text)


def _by_name(node: SourceValue, name: str, background: Background) -> str:
    """The criterion of a grader that says nothing but its name."""
    if background.criteria:
        return background.criteria
    subject = name.replace("_", " ").replace("-", " ").strip()
    wanted = "agrees with what is expected" if background.expected else "does well what was asked"
    about = f"In respect of {subject}, the answer" if subject else "The answer"
    text = f"{about} {wanted}."
    node.changed("a grader without a criterion", f"it asks: {text}")
    return text
