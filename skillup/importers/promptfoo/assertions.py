"""Assertions of promptfoo and AgentV, made into checks of ours: one table of their types."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import regex
from pydantic import TypeAdapter, ValidationError

from skillup.dataclass import frozen
from skillup.errors import InvalidFilesError
from skillup.importers.source import SCHEME, SourceValue, as_text, parse_source, tidy
from skillup.schema.checks import JsonSchema

Check = dict[str, Any]
Checks = list[Check]  # They stand for one assertion, and share its weight evenly

LEAST_PASS = 0.8  # AgentV's, of a score of its own
_PLACEHOLDER = re.compile(r"\{\{-?\s*(?:vars\.)?([\w.]+)[^{}]*\}\}")
_OUR_NAMES = {
    "output": "{{output}}", "answer": "{{output}}", "rubric": "{{criteria}}",
    "rubrics": "{{criteria}}", "input": "{{input}}", "question": "{{input}}",
}  # fmt: skip


@frozen
class Background:
    """What assertions may refer to, and how their tool reads them."""

    promptfoo: bool = False  # Else AgentV: texts are trimmed before they are compared
    expected: Any = None
    criteria: str = ""
    base: Path | None = None
    rubric_prompt: SourceValue | None = None
    """The grading prompt of all rubrics that have none of their own."""


@frozen
class _Assertion:
    node: SourceValue
    background: Background
    negated: bool

    @property
    def argument(self) -> SourceValue:
        return self.node.get("value")

    def value(self) -> Any:
        """The argument, templates filled in; a file that it names is read."""
        found = self.argument.take()
        if isinstance(found, str) and found.startswith(SCHEME):
            return self.argument.read_file(found, self.background.base)
        return found

    def texts(self) -> list[str]:
        value = self.value()
        listed = value if isinstance(value, list) else [value]
        return [text for item in listed if (text := as_text(item))]


def convert_assertions(
    nodes: Iterable[SourceValue], background: Background, *, of_turn: bool = False
) -> Checks:
    """The checks for the assertions in `nodes` (lists, or single ones).

    Bare texts become one rubric, where the first of them stood. As in AgentV each of them weighs as
    much as any other check; those of a turn (`of_turn`), together, as one.
    """
    checks: Checks = []
    texts: list[str] = []
    place = 0
    for item in (item for node in nodes for item in node.elements()):
        if isinstance(item.value, dict):
            checks.extend(_convert(item, background))
        elif text := item.text().strip():
            place = place if texts else len(checks)
            texts.append(text)
    if texts:
        several = {"criteria": texts, "threshold": LEAST_PASS}
        rubric = {"rubric": several if len(texts) > 1 else texts[0]}
        checks.insert(place, _weighted(rubric, 1 if of_turn else len(texts)))
    return checks


def _convert(node: SourceValue, background: Background) -> Checks:
    """One assertion's checks with their weights; none (and a note) if it is not converted."""
    given = node.get("type").text().replace("_", "-")
    negated = given.startswith("not-") != (node.get("negate").take() is True)
    kind, name = given.removeprefix("not-"), node.get("metric", "name", "id").text()
    weight, required = node.get("weight").number(), node.get("required")
    is_required = required.value is True or bool(required.value and required.number())
    required.use()
    if kind in _PROGRAMS:
        what = f"`{kind}`: a program with this tool's own input and output"
        node.drop(what, "left out: write it anew as a `script` check")
        return []
    convert, *parameters = _KINDS.get(kind, (None,))
    checks = convert(_Assertion(node, background, negated), *parameters) if convert else []
    if not checks:
        what = "it says nothing that can be checked here" if convert else "there is no counterpart"
        node.drop(f"`{kind}`: {what}" if kind else f"an assertion without a type: {what}")
        return []
    if negated and all("skill_used" in check for check in checks):
        checks = [{"skill_not_used": check["skill_used"]} for check in checks]
    elif negated:
        checks = [{"none_of": checks}]
    common: Check = ({"name": name} if name else {}) | ({"required": True} if is_required else {})
    share = (1 if weight is None else weight) / len(checks)
    return [_weighted({**common, **check}, share) for check in checks]


def _weighted(check: Check, weight: float) -> Check:
    return check if weight == 1 else {**check, "weight": tidy(round(weight, 6))}


def _group(assertion: _Assertion) -> Checks:
    """``assert-set``"""
    listed, threshold = assertion.node.get("assert", "assertions"), assertion.node.get("threshold")
    members = convert_assertions([listed], assertion.background)
    if (least := threshold.number()) is not None and least < 1:
        instead = "it passes only if all of it does; its score counts as before"
        threshold.changed(f"a group that passes from a score of {least}", instead)
    counted = [member for member in members if member.get("weight") != 0] or members
    return [{"all_of": counted}] if members else []


# What the answer says.


def _texts(key: str, how: str, texts: list[str], **more: bool) -> Checks:
    """A single text that must be there needs no more than itself."""
    return [{key: texts[0] if len(texts) == 1 else {how: texts}, **more}] if texts else []


def _contains(assertion: _Assertion, how: str, exact: bool) -> Checks:
    """For promptfoo a text where a list belongs is one, with commas between."""
    texts = assertion.texts()
    if how and assertion.background.promptfoo and isinstance(assertion.value(), str):
        rows = csv.reader(texts[0].splitlines(), skipinitialspace=True) if texts else ()
        texts = [text for row in rows for item in row if (text := item.strip())]
    return _texts("contains", how or "all", texts, **({"case_sensitive": True} if exact else {}))


def _regex(assertion: _Assertion) -> Checks:
    """JavaScript's flavour."""
    flags = assertion.node.get("flags").text()
    kept = "".join(flag for flag in "ims" if flag in flags)
    patterns = []
    for pattern in assertion.texts():
        if "m" not in flags:
            # There, `$` is the very end; here it may also stand before a last line break.
            pattern = re.sub(r"(?<!\\)((?:\\\\)*)\$\Z", r"\1\\Z", pattern)
        patterns.append(f"(?{kept}){pattern}" if kept else pattern)
        try:
            regex.compile(patterns[-1])
        except regex.error as error:
            what = f"a pattern that is not read here ({error})"
            assertion.node.changed(what, "left as it is: correct it")
    return _texts("matches", "all", patterns)


def _edge(assertion: _Assertion, pattern: str) -> Checks:
    """``starts-with`` and ``ends-with``: `pattern` with places for blanks and the text."""
    texts, blanks = assertion.texts(), ""
    if not assertion.background.promptfoo:
        texts, blanks = [text.strip() for text in texts], r"\s*"
    return _texts("matches", "all", [pattern.format(blanks, re.escape(text)) for text in texts])


def _equals(assertion: _Assertion) -> Checks:
    expected = assertion.value()
    if isinstance(expected, dict | list):
        return [{"json": {"path": "$", "equals": expected}, "case_sensitive": True}]
    return [] if expected is None else [{"equals": as_text(expected), "case_sensitive": True}]


def _json(assertion: _Assertion, whole: bool) -> Checks:
    """``is-json``: the answer is JSON and nothing else; ``contains-json``: anywhere in it."""
    spec: Check = {"whole": True} if whole else {}
    node = assertion.argument
    if not node or node.value == "":
        return [{"json": {**spec, "exists": True}}]
    found = assertion.value()
    try:
        if isinstance(found, str):
            found = parse_source(found, node.source.path).data
        if isinstance(found, dict):
            found = {"$schema": "http://json-schema.org/draft-07/schema#", **found}
        TypeAdapter(JsonSchema).validate_python(found)
    except (ValidationError, InvalidFilesError):
        instead = "nothing passes the check until it is written under `json: {schema: …}`"
        node.changed("this is no JSON Schema that can be read here", instead)
        found = assertion.negated
    return [{"json": {**spec, "schema": found}}]


def _similar(assertion: _Assertion) -> Checks:
    threshold = assertion.node.get("threshold").number()
    least = 0.75 if threshold is None or not 0 <= threshold <= 1 else threshold
    checks: Checks = [{"similar": {"to": one, "threshold": least}} for one in assertion.texts()]
    return [{"any_of": checks}] if len(checks) > 1 else checks


# What the agent did, and what it took.


def _tools(node: SourceValue) -> Checks:
    """``{name}`` of each tool that is named, or meant by a pattern; none if one has no name."""
    named = [item.inner("name", "pattern", "tool") for item in node.elements()]
    return [{"name": one.text()} for one in named] if all(named) else []


def _tool_used(assertion: _Assertion) -> Checks:
    """A name, several names (negated: none of them), or a name with counts."""
    value = assertion.argument
    numbers = {key: value.get(key).number() for key in ("min", "max")}
    counts = {key: int(number) for key, number in numbers.items() if number is not None}
    if "max" in counts:
        counts = {"min": 0, **counts}
    return [{"tool_called": {**tool, **counts}} for tool in _tools(value)]


def _tool_sequence(assertion: _Assertion) -> Checks:
    calls, mode = _tools(assertion.argument.inner("steps")), assertion.argument.get("mode").text()
    mode = mode if mode in ("exact", "any_order") else "in_order"
    return [{"tool_sequence": {"calls": calls, "mode": mode}}] if calls else []


def _tool_args(assertion: _Assertion) -> Checks:
    value = assertion.argument
    tools, args = _tools(value), value.get("args", "arguments").take()
    if not isinstance(value.value, dict) or not tools or not isinstance(args, dict):
        return []
    if (mode := value.get("mode")).text() == "exact":
        mode.changed("no other arguments", "others may be there")
    if any(isinstance(item, dict) for item in args.values()):
        what = "an argument with parts, compared in part"
        assertion.node.changed(what, "it is compared as a whole")
    # A mapping could be taken for one of our own comparisons, so it is spelled out.
    compared = {
        as_text(key): {"equals": item} if isinstance(item, dict) else item
        for key, item in args.items()
    }
    return [{"tool_called": {**tools[0], "args": compared}, "case_sensitive": True}]


def _skill_used(assertion: _Assertion) -> Checks:
    names = [tool["name"] for tool in _tools(assertion.argument)]
    patterns = any(mark in name for name in names for mark in "*?")
    return [] if patterns else [{"skill_used": name} for name in names]


Limit = tuple[tuple[str, ...], Callable[[float], Check]]  # Fields of a number, and its check
_SECONDS: Callable[[float], Check] = lambda ms: {"max_duration_seconds": tidy(ms / 1000)}  # noqa: E731
_DOLLARS: Callable[[float], Check] = lambda limit: {"max_cost_usd": limit}  # noqa: E731
_LIMITS: tuple[Limit, ...] = (
    (("max_tool_calls",), lambda n: {"tool_called": {"name": "*", "min": 0, "max": int(n)}}),
    (("max_output", "max_output_tokens"), lambda n: {"max_tokens": int(n)}),
    (("max_cost_usd",), _DOLLARS),
    (("max_duration_ms",), _SECONDS),
)


def _limits(assertion: _Assertion, *limits: Limit) -> Checks:
    """Several limits, each an equal part of the score."""
    numbers = [(make, assertion.node.get(*names).number()) for names, make in limits]
    return [make(number) for make, number in numbers if number is not None]


# What a model judges.


def _rubric(assertion: _Assertion, promptfoos: float | None = None) -> Checks:
    """A text, criteria, or a grading prompt; `promptfoos`: its own threshold for this type."""
    node, background = assertion.node, assertion.background
    given = node.get("value", "criteria", "rubrics")
    criteria = criteria_of(given)
    if isinstance(given.value, str) and given.value.startswith(SCHEME):
        text = given.read_file(given.text(), background.base)
        criteria = [{"outcome": text}] if text else []
    own = node.get("prompt", "rubricPrompt", "rubric_prompt") or background.rubric_prompt
    prompt = _prompt(own, background) if own else ""
    if own and prompt and "{{output}}" not in prompt:  # it is no more than a criterion
        if criteria:
            own.lost("a grading prompt without the answer, beside criteria")
        criteria, prompt = criteria or [{"outcome": prompt}], ""
    if not criteria and (background.criteria or prompt):
        criteria = [{"outcome": background.criteria or "The answer does well what was asked."}]
    if not criteria:
        return []
    threshold = node.get("threshold", "min_score")
    least = threshold.number()
    if least is None and background.promptfoo:
        least = promptfoos
    elif least is None and len(criteria) > 1:
        least = LEAST_PASS
    elif least is not None:
        threshold.changed(f"it passes from a score of {least}", "a judge says yes or no here")
    made: Check = {"criteria": criteria}
    if least is not None and 0 < least <= 1:
        made["threshold"] = least
    if prompt:
        made["prompt"] = prompt
    if len(made) == 1 and len(criteria) == 1 and set(criteria[0]) == {"outcome"}:
        return [{"rubric": criteria[0]["outcome"]}]
    return [{"rubric": made}]


def criteria_of(node: SourceValue) -> list[Check]:
    """The criteria of a text, a list of texts, or of mappings with weights."""
    if isinstance(node.value, dict) and (inner := node.get("criteria", "rubrics")):
        return criteria_of(inner)
    found: list[Check] = []
    for item in node.elements():
        text = item.inner("outcome", "description").text()
        if not text.strip():
            if isinstance(item.value, dict):
                item.drop("a criterion without an outcome")
            continue
        if item.get("operator").text() == "contradiction":
            text = f"Says nothing that contradicts this (it need not be mentioned): {text}"
        named, weight = item.get("id", "name").text(), item.get("weight").number()
        made: Check = {"id": named, "outcome": text} if named else {"outcome": text}
        if weight not in (None, 1):
            made["weight"] = weight
        if item.get("required").take() is True:
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
    if text.startswith(SCHEME) or re.fullmatch(r".*\.(md|txt)", text):
        text = (node.read_file(text, background.base) or "").strip()
    return _PLACEHOLDER.sub(renamed, text)


def _relevance(assertion: _Assertion) -> Checks:
    """``conversation-relevance``: window by window; promptfoo's own threshold is 0."""
    threshold = assertion.node.get("threshold").number()
    made: Check = {"threshold": 0} if assertion.background.promptfoo else {}
    if threshold is not None and 0 <= threshold <= 1:
        made["threshold"] = threshold
    if windows := assertion.node.get("config").get("windowSize", "window_size").number():
        made["window_size"] = int(windows)
    return [{"relevance": made}]


def _criterion(assertion: _Assertion, sentence: str) -> Checks:
    """A sentence for a judge; ``{}`` stands for the value."""
    texts = assertion.texts() if "{}" in sentence else [""]
    return [{"rubric": sentence.replace("{}", text)} for text in texts]


_FACTS = "The answer agrees with these facts: {}"
_KINDS: dict[str, tuple[Any, ...]] = {
    "assert-set": (_group,),
    "contains": (_contains, "", True),
    "contains-all": (_contains, "all", True),
    "contains-any": (_contains, "any", True),
    "icontains": (_contains, "", False),
    "icontains-all": (_contains, "all", False),
    "icontains-any": (_contains, "any", False),
    "regex": (_regex,),
    "starts-with": (_edge, r"\A{0}{1}"),
    "ends-with": (_edge, r"{1}{0}\Z"),
    "equals": (_equals,),
    "is-json": (_json, True),
    "contains-json": (_json, False),
    "similar": (_similar,),
    "trajectory:tool-used": (_tool_used,),
    "trajectory:tool-sequence": (_tool_sequence,),
    "trajectory:tool-args-match": (_tool_args,),
    "skill-used": (_skill_used,),
    "latency": (_limits, (("threshold", "max_ms", "max_duration_ms", "value"), _SECONDS)),
    "cost": (_limits, (("threshold", "budget", "max_usd", "max_cost_usd", "value"), _DOLLARS)),
    "token-usage": (_limits, *_LIMITS),
    "execution-metrics": (_limits, *_LIMITS),
    **dict.fromkeys(("llm-rubric", "agent-rubric", "rubrics", "llm-judge"), (_rubric,)),
    "g-eval": (_rubric, 0.7),
    "conversation-relevance": (_relevance,),
    "model-graded-closedqa": (_criterion, "{}"),
    "factuality": (_criterion, _FACTS),
    "model-graded-factuality": (_criterion, _FACTS),
    "answer-relevance": (_criterion, "The answer is about what was asked."),
    "is-refusal": (_criterion, "The agent refuses to do what was asked."),
}  # fmt: skip
"""The converter of each type, and its parameters."""
_PROGRAMS = {"script", "code-grader", "javascript", "python", "ruby", "webhook"}
