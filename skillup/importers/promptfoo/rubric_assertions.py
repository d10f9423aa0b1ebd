"""Assertions that a model judges: rubrics, in their many spellings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from skillup.importers.messages import is_messages
from skillup.importers.promptfoo.assertion import (
    Assertion,
    Background,
    Check,
    Parts,
    one,
)
from skillup.importers.promptfoo.values import SourceValue, as_text
from skillup.importers.references import SCHEME

LEAST_PASS = 0.8
"""AgentV's, of a score of its own."""
_OF_G_EVAL = 0.7
_PLACEHOLDER = re.compile(r"\{\{-?\s*([\w.]+)[^{}]*\}\}")
_ANSWERS = ("output", "answer")
_QUESTIONS = ("input", "question")
_RUBRICS = ("rubric", "rubrics", "rubrics_json")
_REFERENCES = ("expected_output", "reference_answer")


def rubric(assertion: Assertion) -> Parts:
    """``llm-rubric``: a text, criteria, a grading prompt, or nothing but a name."""
    node = assertion.node
    criteria: list[Check] = []
    for key in ("value", "criteria", "rubrics"):
        given = node.get(key)
        if given is not None and not criteria:
            criteria = _criteria(assertion, given)
    own = node.get("prompt", "rubricPrompt", "rubric_prompt") or assertion.background.rubric_prompt
    text = _prompt(assertion, own) if own is not None else ""
    if own is not None and text and _PLACEHOLDER.search(text):
        text = _with_our_names(text, own, assertion.background)
    elif text and not criteria:
        criteria, text = [{"outcome": text}], ""
    elif own is not None and text:
        own.lost("a grading prompt without variables, beside criteria", "left out")
        text = ""
    return one({"rubric": _short(assertion, criteria or [{"outcome": _by_name(assertion)}], text)})


def _short(assertion: Assertion, criteria: list[Check], prompt: str) -> Any:
    """A single criterion without anything else needs no list."""
    made: Check = {"criteria": criteria}
    least = assertion.number("threshold", "min_score")
    if least is None and assertion.background.promptfoo:
        least = _OF_G_EVAL if assertion.kind == "g-eval" else None
    elif least is None and len(criteria) > 1:
        least = LEAST_PASS
    if least is not None and 0 < least <= 1:
        made["threshold"] = least
    if prompt:
        made["prompt"] = prompt
    if len(made) == 1 and len(criteria) == 1 and set(criteria[0]) <= {"outcome", "required"}:
        return criteria[0]["outcome"]
    return made


def lines(texts: list[str]) -> Any:
    """AgentV's bare texts: one rubric, which passes from a share of them."""
    return texts[0] if len(texts) == 1 else {"criteria": texts, "threshold": LEAST_PASS}


def _criteria(assertion: Assertion, given: SourceValue) -> list[Check]:
    if isinstance(given.value, list):
        return criteria_of(given)
    if isinstance(given.value, dict):
        inner = given.get("criteria", "rubrics")
        if inner is not None:
            return _criteria(assertion, inner)
        return [made] if (made := _criterion(given)) else []
    text = assertion.value() if given.loc[-1] == "value" else given.take()
    return [{"outcome": as_text(text)}] if as_text(text).strip() else []


def criteria_of(listed: SourceValue) -> list[Check]:
    """The criteria of a list: texts, or mappings with weights."""
    return [criterion for item in listed.elements() if (criterion := _criterion(item))]


def _criterion(node: SourceValue) -> Check:
    if not isinstance(node.value, dict):
        text = node.text()
        return {"outcome": text} if text.strip() else {}
    label, outcome = node.get("id", "name"), node.get("outcome", "description", "criterion")
    named = label.text() if label is not None else ""
    text = outcome.text() if outcome is not None else ""
    operator = node.get("operator")
    if operator is not None and operator.text() == "contradiction":
        text = f"Says nothing that contradicts this (it need not be mentioned): {text}"
    least_node = node.get("min_score")
    least = least_node.number() if least_node is not None else None
    old = node.get("required_min_score")
    if old is not None and least is None:
        least = (old.number() or 0) / 10
    ranges = node.get("score_ranges")
    if ranges is not None:
        text = _levels(text or named.replace("_", " "), ranges, least)
    elif least is not None:
        node.changed(f"the criterion passes from a score of {least}", "a judge says yes or no here")
    if not text.strip():
        node.note("a criterion without an outcome", "left out")
        return {}
    made: Check = {"id": named} if named else {}
    made["outcome"] = text
    weight, required = node.get("weight"), node.get("required")
    if weight is not None and (share := weight.number()) not in (None, 1):
        made["weight"] = share
    if required is not None and required.take() is True:
        made["required"] = True
    return made


def _levels(subject: str, ranges: SourceValue, least: float | None) -> str:
    """A scale of 0 to 10 as a sentence that can be true or false."""
    levels: list[tuple[str, str]] = []
    for key, level in ranges.items():
        levels.append((key, level.text()))
    if isinstance(ranges.value, list):
        for level in ranges.elements():
            bounds, outcome = level.get("score_range"), level.get("outcome")
            shown = "–".join(bounds.texts()) if bounds is not None else "?"
            levels.append((shown, outcome.text() if outcome is not None else ""))
    wanted = LEAST_PASS if least is None else least
    ranges.changed("a scale of 0 to 10", f"became one criterion: level {wanted * 10:g} or better")
    listed = "\n".join(f"{key}: {' '.join(outcome.split())}" for key, outcome in levels)
    return f"{subject}: reaches level {wanted * 10:g} or better of these:\n{listed}"


def _prompt(assertion: Assertion, node: SourceValue) -> str:
    """The grading prompt's text, if there is one to be had."""
    value = node.value[0] if isinstance(node.value, list) and len(node.value) == 1 else node.value
    if isinstance(value, dict) and not is_messages(value):
        node.note("a grading prompt that a program makes", "left out: see the criterion instead")
        return ""
    # Not filled in as a template: most of its placeholders are the grader's own.
    node.use()
    text = as_text(value).strip()
    if text.startswith(SCHEME) or (text.endswith((".md", ".txt", ".json")) and "\n" not in text):
        loaded = assertion.read(text, node)
        if not loaded:
            return ""
        text = as_text(loaded).strip()
    try:
        said = json.loads(text)
    except ValueError:
        return text
    if not is_messages(said):
        return text
    messages = said if isinstance(said, list) else [said]
    return "\n\n".join(as_text(message.get("content")).strip() for message in messages)


def _with_our_names(text: str, node: SourceValue, background: Background) -> str:
    """A grading prompt with our names of what its tool's placeholders mean."""

    def renamed(match: re.Match[str]) -> str:
        name = match[1].removeprefix("vars.")
        known = node.scope.lookup(name, []) if node.scope is not None else None
        if name in _ANSWERS:
            return "{{output}}"
        if name in _RUBRICS:
            return "{{criteria}}"
        if known is None and name in _QUESTIONS:
            return "{{input}}"
        if name == "criteria" and not background.promptfoo:
            known = background.criteria
        elif name in _REFERENCES:
            known = background.expected or known or ""
        if known is None:
            node.lost(f"`{match[0]}` of a grading prompt", "left out: there is no counterpart")
        return as_text(known).replace("{{", "{ {")

    return _PLACEHOLDER.sub(renamed, text)


def _by_name(assertion: Assertion) -> str:
    """The criterion of a grader that says nothing but its name."""
    background = assertion.background
    if background.criteria:
        return background.criteria
    name = assertion.name.replace("_", " ").replace("-", " ").strip()
    wanted = "agrees with what is expected" if background.expected else "does well what was asked"
    text = f"In respect of {name}, the answer {wanted}." if name else f"The answer {wanted}."
    assertion.node.changed("a grader without a criterion", f"it asks: {text}")
    return text


def in_words(sentence: str, note: str = "") -> Callable[[Assertion], Parts]:
    """A check that no program makes here, asked of a judge; ``{}`` stands for the value."""

    def convert(assertion: Assertion) -> Parts:
        value = assertion.value() if "{}" in sentence else None
        if "{}" in sentence and value in (None, "", []):
            return assertion.drop("there is nothing to ask for", "left out")
        texts = [as_text(item) for item in value] if isinstance(value, list) else [as_text(value)]
        if note:
            assertion.node.changed(note, "a model judges it here")
        asked = [sentence.replace("{}", text) for text in texts]
        if len(asked) == 1 or "{}" not in sentence:
            return one({"rubric": asked[0]})
        return one({"rubric": {"criteria": asked}})

    return convert


def goal(assertion: Assertion) -> Parts:
    """``trajectory:goal-success``"""
    value = assertion.value()
    assertion.knows("goal")
    wanted = value.get("goal") if isinstance(value, dict) else value
    if not wanted:
        return assertion.drop("no goal is given", "left out")
    return one({"rubric": f"The agent reached this goal: {as_text(wanted)}"})


def relevance(assertion: Assertion) -> Parts:
    """``conversation-relevance``: window by window."""
    made: Check = {}
    threshold = assertion.number("threshold")
    if threshold is not None and 0 <= threshold <= 1:
        made["threshold"] = threshold
    elif assertion.background.promptfoo:
        made["threshold"] = 0
    config = assertion.node.get("config")
    size = config.get("windowSize", "window_size") if config is not None else None
    if size is not None and (windows := size.number()):
        made["window_size"] = int(windows)
    return one({"relevance": made})
