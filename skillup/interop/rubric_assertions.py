"""Assertions that a model judges: rubrics, in their many spellings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from skillup.interop.assertion import Assertion, Check, Parts, one
from skillup.interop.node import Node, as_text
from skillup.interop.references import SCHEME

_LEAST_PASS = 0.8
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def rubric(assertion: Assertion) -> Parts:
    """``llm-rubric``: a text, criteria, a grading prompt, or nothing but a name."""
    node = assertion.node
    for key in ("value", "criteria", "rubrics"):
        given = node.get(key)
        if given is not None:
            criteria = _criteria(assertion, given)
            if criteria:
                return one({"rubric": _short(criteria)})
    prompt = node.get("prompt", "rubricPrompt", "rubric_prompt")
    if prompt is not None and (text := _prompt(assertion, prompt)):
        return one({"rubric": text})
    return one({"rubric": _by_name(assertion)})


def _short(criteria: list[Check]) -> Any:
    """A single criterion without anything else needs no list."""
    if len(criteria) == 1 and set(criteria[0]) <= {"outcome", "required"}:
        return criteria[0]["outcome"]
    return {"criteria": criteria}


def _criteria(assertion: Assertion, given: Node) -> list[Check]:
    if isinstance(given.value, list):
        return criteria_of(given)
    if isinstance(given.value, dict):
        inner = given.get("criteria", "rubrics")
        if inner is not None:
            return _criteria(assertion, inner)
        return [made] if (made := _criterion(given)) else []
    text = assertion.value() if given.loc[-1] == "value" else given.take()
    return [{"outcome": as_text(text)}] if as_text(text).strip() else []


def criteria_of(listed: Node) -> list[Check]:
    """The criteria of a list: texts, or mappings with weights."""
    return [criterion for item in listed.elements() if (criterion := _criterion(item))]


def _criterion(node: Node) -> Check:
    if not isinstance(node.value, dict):
        text = node.text()
        return {"outcome": text, "required": True} if text.strip() else {}
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


def _levels(subject: str, ranges: Node, least: float | None) -> str:
    """A scale of 0 to 10 as a sentence that can be true or false."""
    levels: list[tuple[str, str]] = []
    for key, level in ranges.items():
        levels.append((key, level.text()))
    if isinstance(ranges.value, list):
        for level in ranges.elements():
            bounds, outcome = level.get("score_range"), level.get("outcome")
            shown = "–".join(bounds.texts()) if bounds is not None else "?"
            levels.append((shown, outcome.text() if outcome is not None else ""))
    wanted = _LEAST_PASS if least is None else least
    ranges.changed("a scale of 0 to 10", f"became one criterion: level {wanted * 10:g} or better")
    listed = "\n".join(f"{key}: {' '.join(outcome.split())}" for key, outcome in levels)
    return f"{subject}: reaches level {wanted * 10:g} or better of these:\n{listed}"


def _prompt(assertion: Assertion, node: Node) -> str:
    """The grading prompt's text, if there is one to be had."""
    if isinstance(node.value, dict):
        node.note("a grading prompt that a program makes", "left out: see the criterion instead")
        return ""
    # Not filled in as a template: most of its placeholders are the grader's own.
    node.use()
    text = as_text(node.value).strip()
    if text.startswith(SCHEME) or (text.endswith((".md", ".txt")) and "\n" not in text):
        loaded = assertion.read(text, node)
        if not loaded:
            return ""
        text = str(loaded).strip()
    node.changed("a whole grading prompt", "it became one criterion; its placeholders stay as text")
    known = {"criteria": assertion.background.criteria}
    known["expected_output"] = known["reference_answer"] = as_text(assertion.background.expected)
    return _PLACEHOLDER.sub(lambda match: known.get(match[1]) or match[0], text)


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
    config = assertion.node.get("config")
    size = config.get("windowSize", "window_size") if config is not None else None
    if size is not None and (windows := size.number()):
        made["window_size"] = int(windows)
    return one({"relevance": made})
