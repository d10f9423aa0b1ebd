"""Assertions of promptfoo and AgentV, made into checks of ours: one table of their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import regex
from pydantic import TypeAdapter, ValidationError

from skillup.errors import InvalidFilesError
from skillup.importers import files
from skillup.importers.promptfoo.rubrics import Background, read_rubric, rubric_of_texts
from skillup.importers.source import parse_source
from skillup.importers.values import SourceValue, as_text, tidy
from skillup.schema.check_specs import JsonSchema

Check = dict[str, Any]
Checks = list[Check]
"""They stand for one assertion, and share its weight evenly."""


@dataclass(slots=True)
class _Assertion:
    node: SourceValue
    kind: str
    negated: bool
    name: str
    background: Background

    @property
    def argument(self) -> SourceValue:
        return self.node.get("value")

    def value(self) -> Any:
        """What is given under `value`, templates filled in and a file that it names read."""
        found = self.argument.take()
        if isinstance(found, str) and found.startswith(files.SCHEME):
            return files.read_text_file(found, self.argument, self.background.base)
        return found

    def texts(self) -> list[str]:
        value = self.value()
        listed = value if isinstance(value, list) else [value]
        return [text for item in listed if (text := as_text(item))]

    def take_negation(self) -> bool:
        """Whether it is negated; the converter then sees to that."""
        negated, self.negated = self.negated, False
        return negated

    def drop(self, what: str, instead: str = "left out") -> Checks:
        self.node.drop(what, instead)
        return []

    def looked_for(self, key: str, how: str, texts: list[str], **more: bool) -> Checks:
        """The shortest spelling: a single text that must be there needs no more than itself."""
        if not texts:
            return self.drop("there is no text to look for")
        if self.negated and (how == "any" or len(texts) == 1):
            self.take_negation()
            return [{key: {"none": texts}, **more}]
        return [{key: texts[0] if len(texts) == 1 else {how: texts}, **more}]


def convert_assertions(
    nodes: Iterable[SourceValue], background: Background, *, of_turn: bool = False
) -> Checks:
    """The checks for the assertions in `nodes` (lists, or single ones).

    Bare texts become criteria of one rubric, where the first of them stood. As in AgentV, each of
    them weighs as much as any other check; those of a turn (`of_turn`), together, as one.
    """
    checks: Checks = []
    texts: list[str] = []
    place = 0
    for item in _flat(nodes, background):
        if isinstance(item.value, dict):
            checks.extend(_convert(item, background))
        elif text := item.text().strip():
            place = place if texts else len(checks)
            texts.append(text)
    if texts:
        rubric = {"rubric": rubric_of_texts(texts)}
        checks.insert(place, _weighted(rubric, 1 if of_turn else len(texts)))
    return checks


def _flat(nodes: Iterable[SourceValue], background: Background) -> Iterable[SourceValue]:
    """Every single assertion, with those that refer to a template replaced by it."""
    for item in (item for node in nodes for item in node.elements()):
        if not isinstance(item.value, dict) or "$ref" not in item.value:
            yield item
            continue
        name = item.get("$ref").text().rpartition("/")[2]
        found = background.templates.get(name) if background.templates is not None else None
        if found:
            yield from found.with_scope(item.scope).elements()
        else:
            item.drop(f"`{name}` is not among the assertion templates")


def _convert(node: SourceValue, background: Background) -> Checks:
    """One assertion's checks with their weights; none (and a note) if it is not converted."""
    given = node.get("type").text().replace("_", "-")
    negated = given.startswith("not-") != node.get("negate").is_true()
    kind, name = given.removeprefix("not-"), node.get("metric", "name", "id").text()
    assertion = _Assertion(node, kind, negated, name, background)
    weight, required, is_required = node.get("weight").number(), node.get("required"), False
    if isinstance(required.value, bool):
        is_required = bool(required.take())
    elif (least := required.number()) is not None:
        is_required = least > 0
        if kind in _SCORED:
            required.changed(f"required with a score of {least}", "required as a whole")
    if not given:
        return assertion.drop("an assertion without a type")
    if kind in _PROGRAMS:
        why = f"`{kind}`: a program with this tool's own input and output"
        return assertion.drop(why, "left out: write it anew as a `script` check")
    if kind not in _KINDS:
        return assertion.drop(f"`{kind}` is not converted", "left out: there is no counterpart")
    convert, *parameters = _KINDS[kind]
    checks = convert(assertion, *parameters)
    if not checks:
        return []
    for place in (node.get("min_score"), node.get("threshold")) if kind in _SCORED else ():
        if (least := place.number()) is not None:
            place.changed(f"it passes from a score of {least}", "a judge says yes or no here")
    if assertion.negated:
        checks = [{"none_of": [_joined(checks)]}]
    common: Check = ({"name": name} if name else {}) | ({"required": True} if is_required else {})
    share = (1 if weight is None else weight) / len(checks)
    return [_weighted({**common, **check}, share) for check in checks]


def _joined(checks: Checks) -> Check:
    return checks[0] if len(checks) == 1 else {"all_of": checks}


def _weighted(check: Check, weight: float) -> Check:
    return check if weight == 1 else {**check, "weight": tidy(round(weight, 6))}


def _group(assertion: _Assertion) -> Checks:
    """``assert-set``"""
    listed, threshold = assertion.node.get("assert", "assertions"), assertion.node.get("threshold")
    members: Checks = []
    for item in _flat([listed], assertion.background):
        if isinstance(item.value, dict):
            members.extend(_convert(item, assertion.background))
        else:
            members.append({"rubric": item.text()})
    least = threshold.number()
    if least is not None and least < 1:
        instead = "it passes only if all of it does; its score counts as before"
        threshold.changed(f"a group that passes from a score of {least}", instead)
    counted = [member for member in members if member.get("weight") != 0] or members
    return [{"all_of": counted}] if members else assertion.drop("nothing of the group is converted")


# What the answer says.


def _contains(assertion: _Assertion, how: str, exact: bool) -> Checks:
    more = {"case_sensitive": True} if exact else {}
    return assertion.looked_for("contains", how, assertion.texts(), **more)


def _regex(assertion: _Assertion) -> Checks:
    """JavaScript's flavour, and flags beside it."""
    flags = assertion.node.get("flags").text()
    wanted = "".join(flag for flag in "ims" if flag in flags)
    patterns = []
    for pattern in assertion.texts():
        if "m" not in flags:
            # There, `$` is the very end; here it may also stand before a last line break.
            pattern = re.sub(r"(?<!\\)((?:\\\\)*)\$\Z", r"\1\\Z", pattern)
        patterns.append(f"(?{wanted}){pattern}" if wanted else pattern)
        try:
            regex.compile(patterns[-1])
        except regex.error as error:
            what = f"a pattern that is not read here ({error})"
            assertion.node.changed(what, "left as it is: correct it")
    return assertion.looked_for("matches", "all", patterns)


def _edge(assertion: _Assertion, pattern: str) -> Checks:
    """``starts-with`` and ``ends-with``: `pattern` with places for blanks and the text."""
    promptfoo = assertion.background.promptfoo
    texts = [text if promptfoo else text.strip() for text in assertion.texts()]
    made = [pattern.format("" if promptfoo else r"\s*", re.escape(text)) for text in texts]
    return assertion.looked_for("matches", "all", made)


def _equals(assertion: _Assertion) -> Checks:
    wanted = assertion.value()
    if wanted is None:
        return assertion.drop("there is nothing to compare with")
    if isinstance(wanted, dict | list):
        return [{"json": {"path": "$", "equals": wanted}, "case_sensitive": True}]
    if assertion.background.promptfoo:
        assertion.node.changed("`equals` compares every blank", "here both sides are trimmed")
    return [{"equals": as_text(wanted), "case_sensitive": True}]


def _json(assertion: _Assertion, whole: bool) -> Checks:
    """``is-json``: the answer is JSON and nothing else; ``contains-json``: anywhere in it."""
    if not whole:
        assertion.node.changed(
            "JSON anywhere in the answer",
            "here the whole answer, its last fenced block, or what braces or brackets enclose",
        )
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
        node.changed(
            "this is no JSON Schema that can be read here",
            "nothing passes the check until it is written under `json: {schema: …}`",
        )
        found = False
    return [{"json": {**spec, "schema": found}}]


def _similar(assertion: _Assertion) -> Checks:
    texts, threshold = assertion.texts(), assertion.node.get("threshold").number()
    if not texts:
        return assertion.drop("there is nothing to compare with")
    if threshold is None or not 0 <= threshold <= 1:
        threshold = 0.75
    checks: Checks = [{"similar": {"to": text, "threshold": threshold}} for text in texts]
    return checks if len(checks) == 1 else [{"any_of": checks}]


# What the agent did, and what it took.


def _tools(node: SourceValue) -> Checks:
    """``{name}`` of each tool that is named, or meant by a pattern; none if one has no name."""
    named = [
        item.get("name", "pattern", "tool") if isinstance(item.value, dict) else item
        for item in node.elements()
    ]
    return [{"name": one.text()} for one in named] if all(named) else []


def _counts(node: SourceValue) -> Check:
    numbers = {key: node.get(key).number() for key in ("min", "max")}
    return {key: int(number) for key, number in numbers.items() if number is not None}


def _tool_used(assertion: _Assertion) -> Checks:
    """A name, several names, or a name with counts."""
    tools, counts = _tools(assertion.argument), _counts(assertion.argument)
    if not tools:
        return assertion.drop("no tool is named")
    if counts.get("max") == 0:
        return [{"tool_not_called": tools[0]}]
    if counts:
        least = {} if "min" in counts else {"min": 0}
        return [{"tool_called": {**tools[0], **least, **counts}}]
    # Negated, a list means that none of them was used.
    key = "tool_not_called" if assertion.take_negation() else "tool_called"
    return [_joined([{key: tool} for tool in tools])]


def _tool_sequence(assertion: _Assertion) -> Checks:
    value = assertion.argument
    calls = _tools(value.get("steps") if isinstance(value.value, dict) else value)
    if not calls:
        return assertion.drop("no tools are named")
    mode = value.get("mode").text()
    mode = mode if mode in ("exact", "any_order") else "in_order"
    return [{"tool_sequence": {"calls": calls, "mode": mode}}]


def _tool_args(assertion: _Assertion) -> Checks:
    value = assertion.argument
    tools, args = _tools(value), value.get("args", "arguments").take()
    if not isinstance(value.value, dict) or not tools:
        return assertion.drop("no tool is named")
    if not isinstance(args, dict):
        return assertion.drop("no arguments are given")
    if value.get("mode").text() == "exact":
        what = "`mode: exact` refuses other arguments"
        assertion.node.changed(what, "the given ones are compared, others allowed")
    elif any(isinstance(item, dict) for item in args.values()):
        what = "an argument with parts, compared in part"
        assertion.node.changed(what, "it is compared as a whole")
    ignored = value.get("ignore").texts()
    # A mapping could be taken for one of our own comparisons, so it is spelled out.
    compared = {
        as_text(key): {"equals": item} if isinstance(item, dict) else item
        for key, item in args.items()
        if as_text(key) not in ignored
    }
    return [{"tool_called": {**tools[0], "args": compared}, "case_sensitive": True}]


def _skill_used(assertion: _Assertion) -> Checks:
    """A skill, several, or a pattern with counts."""
    names = [tool["name"] for tool in _tools(assertion.argument)]
    if not names:
        return assertion.drop("no skill is named")
    verb, tool = "skill_used", "tool_called"
    if assertion.take_negation():
        verb, tool = "skill_not_used", "tool_not_called"
    if any(mark in name for name in names for mark in "*?"):
        what = f"a pattern of skills (`{', '.join(names)}`)"
        assertion.node.changed(what, "any skill counts: name the one that is meant")
        return [{tool: {"kind": "skill"}}]
    if _counts(assertion.argument) not in ({}, {"min": 1}):
        assertion.node.changed("how often the skill is used", "once is enough, or too much")
    return [_joined([{verb: name} for name in names])]


Limit = tuple[tuple[str, ...], Callable[[float], Check]]
"""The fields that give a number, and the check for it."""
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
    checks = [make(number) for make, number in numbers if number is not None]
    return checks or assertion.drop("no limit is given that can be measured here")


# What a model judges.


def _rubric(assertion: _Assertion) -> Checks:
    made = read_rubric(assertion.node, assertion.kind, assertion.name, assertion.background)
    return [{"rubric": made}] if made else assertion.drop("no criterion of it can be asked")


def _asked(assertion: _Assertion, sentence: str) -> Checks:
    """A sentence for a judge; ``{}`` stands for the value."""
    value = assertion.argument
    texts = [""]
    if "{}" in sentence:
        goal = value.get("goal") if isinstance(value.value, dict) else None
        texts = assertion.texts() if goal is None else goal.texts()
        if not any(texts):
            return assertion.drop("there is nothing to ask for")
    asked = [sentence.replace("{}", text) for text in texts]
    return [{"rubric": asked[0] if len(asked) == 1 else {"criteria": asked}}]


def _relevance(assertion: _Assertion) -> Checks:
    """Window by window."""
    made: Check = {}
    threshold = assertion.node.get("threshold").number()
    if threshold is not None and 0 <= threshold <= 1:
        made["threshold"] = threshold
    elif assertion.background.promptfoo:
        made["threshold"] = 0
    if windows := assertion.node.get("config").get("windowSize", "window_size").number():
        made["window_size"] = int(windows)
    return [{"relevance": made}]


_FACTS = "The answer agrees with these facts: {}"
_KINDS: dict[str, tuple[Any, ...]] = {
    "assert-set": (_group,),
    "contains": (_contains, "all", True),
    "contains-all": (_contains, "all", True),
    "contains-any": (_contains, "any", True),
    "icontains": (_contains, "all", False),
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
    **dict.fromkeys(
        ("llm-rubric", "agent-rubric", "rubric", "rubrics", "llm-grader", "llm-judge",
         "agent-judge", "g-eval", "search-rubric"), (_rubric,)),
    "conversation-relevance": (_relevance,),
    "trajectory:goal-success": (_asked, "The agent reached this goal: {}"),
    "model-graded-closedqa": (_asked, "{}"),
    "factuality": (_asked, _FACTS),
    "model-graded-factuality": (_asked, _FACTS),
    "answer-relevance": (_asked, "The answer is about what was asked."),
    "is-refusal": (_asked, "The agent refuses to do what was asked."),
}  # fmt: skip
"""The converter of each type, and its parameters."""
_PROGRAMS = {
    "script", "code-grader", "code-judge", "code", "javascript", "python", "ruby", "webhook",
}  # fmt: skip
_SCORED = {"llm-rubric", "agent-rubric", "g-eval", "rubrics", "factuality", "answer-relevance"}
