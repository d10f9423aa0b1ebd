"""Lists of assertions of AgentV and promptfoo, made into checks of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

from skillup.importers import references
from skillup.importers.promptfoo import metric_assertions as metric
from skillup.importers.promptfoo import rubric_assertions as judged
from skillup.importers.promptfoo import text_assertions as text
from skillup.importers.promptfoo import tool_assertions as tool
from skillup.importers.promptfoo.assertion import (
    Assertion,
    Background,
    Check,
    Parts,
    joined,
    one,
    with_weight,
)
from skillup.importers.promptfoo.values import SourceValue

# Groups of assertions that pass from a share of their weight.

_MOST_MEMBERS = 6
_NEARLY = 1e-9


def grouped(assertion: Assertion, members: Parts) -> Parts:
    """``assert-set``: `members` are its converted assertions with their weights."""
    threshold = assertion.number("threshold")
    aggregator = assertion.node.get("aggregator")
    if aggregator is not None and (own := aggregator.get("threshold")) is not None:
        threshold = own.number()
    if not members:
        return assertion.drop("nothing of the group came over", "left out")
    if threshold is not None and threshold <= 0:
        assertion.node.changed("a group that always passes", "it is shown, with the weight 0")
        return [({**_all(members), "weight": 0}, 1.0)]
    if threshold is not None and threshold < 1 and assertion.counts_by_score:
        assertion.node.changed(
            f"a group that passes from a score of {threshold}",
            "its score counts as before; it is shown as failed unless all of it passes",
        )
        return one(_all(members))
    if threshold is None or threshold >= 1:
        return one(_all([member for member in members if member[1]] or members))
    return _from_share(assertion, members, threshold)


def _all(members: Parts) -> Check:
    return {"all_of": [with_weight(check, share) for check, share in members]}


def _from_share(assertion: Assertion, members: Parts, threshold: float) -> Parts:
    """The smallest selections that reach the threshold: one of them has to pass as a whole."""
    if len(members) > _MOST_MEMBERS:
        assertion.node.changed(
            f"a group of {len(members)} that passes from a score of {threshold}",
            "here all of them must pass",
        )
        return one(_all(members))
    needed = threshold * sum(weight for _, weight in members) - _NEARLY
    smallest: list[frozenset[int]] = []
    for size in range(1, len(members) + 1):
        for chosen in map(frozenset, combinations(range(len(members)), size)):
            enough = sum(members[index][1] for index in chosen) >= needed
            if enough and not any(less <= chosen for less in smallest):
                smallest.append(chosen)
    said = f"a group that passes from a score of {threshold}"
    idle = [check for i, (check, _) in enumerate(members) if not any(i in s for s in smallest)]
    if idle:
        names = ", ".join(f"`{check.get('name') or next(iter(check))}`" for check in idle)
        assertion.node.changed(said, f"left out, because they cannot decide: {names}")
    else:
        assertion.node.changed(said, "the same selections pass; the score is 1 or 0, not a mean")
    options = [joined([(members[i][0], 1.0) for i in sorted(chosen)]) for chosen in smallest]
    return one(options[0] if len(options) == 1 else {"any_of": options})


_OTHER_MEASURE = "a measure of common word sequences"

_CONVERTERS: dict[str, Callable[[Assertion], Parts]] = {
    "contains": text.contains("all", fold=False),
    "contains-all": text.contains("all", fold=False),
    "contains-any": text.contains("any", fold=False),
    "icontains": text.contains("all", fold=True),
    "icontains-all": text.contains("all", fold=True),
    "icontains-any": text.contains("any", fold=True),
    "regex": text.regex,
    "starts-with": text.begins,
    "ends-with": text.ends,
    "equals": text.equals,
    "is-json": text.is_json,
    "contains-json": text.contains_json,
    "word-count": text.word_count,
    "similar": text.similar(0.75),
    "levenshtein": text.similar(0.8, "a number of edits"),
    "rouge-n": text.similar(0.75, _OTHER_MEASURE),
    "bleu": text.similar(0.5, _OTHER_MEASURE),
    "gleu": text.similar(0.5, _OTHER_MEASURE),
    "meteor": text.similar(0.5, _OTHER_MEASURE),
    "trajectory:tool-used": tool.tool_used,
    "trajectory:tool-sequence": tool.tool_sequence,
    "trajectory:tool-args-match": tool.tool_args,
    "trajectory:step-count": tool.step_count,
    "tool-call-f1": tool.tool_call_f1,
    "tool-trajectory": tool.old_trajectory,
    "skill-used": tool.skill_used,
    "skill-trigger": tool.old_skill_trigger,
    "latency": metric.latency,
    "cost": metric.cost,
    "token-usage": metric.token_usage,
    "execution-metrics": metric.execution_metrics,
    "field-accuracy": metric.field_accuracy,
    "llm-rubric": judged.rubric,
    "agent-rubric": judged.rubric,
    "rubric": judged.rubric,
    "rubrics": judged.rubric,
    "llm-grader": judged.rubric,
    "llm-judge": judged.rubric,
    "agent-judge": judged.rubric,
    "g-eval": judged.rubric,
    "search-rubric": judged.rubric,
    "trajectory:goal-success": judged.goal,
    "conversation-relevance": judged.relevance,
    "model-graded-closedqa": judged.in_words("{}"),
    "factuality": judged.in_words("The answer agrees with these facts: {}"),
    "model-graded-factuality": judged.in_words("The answer agrees with these facts: {}"),
    "answer-relevance": judged.in_words("The answer is about what was asked."),
    "is-refusal": judged.in_words("The agent refuses to do what was asked.", "a refusal"),
    "is-html": judged.in_words("The whole answer is valid HTML.", "HTML"),
    "contains-html": judged.in_words("The answer contains HTML.", "HTML"),
    "is-xml": judged.in_words("The whole answer is well-formed XML.", "XML"),
    "contains-xml": judged.in_words("The answer contains well-formed XML.", "XML"),
    "is-sql": judged.in_words("The whole answer is a valid SQL statement.", "SQL"),
    "contains-sql": judged.in_words("The answer contains a valid SQL statement.", "SQL"),
}

_PROGRAMS = {
    "script", "code-grader", "code-judge", "code", "javascript", "python", "ruby", "webhook",
}  # fmt: skip
_SCORED = {"llm-rubric", "agent-rubric", "g-eval", "rubrics", "factuality", "answer-relevance"}


def convert_assertions(
    nodes: Iterable[SourceValue], background: Background, *, of_turn: bool = False
) -> list[Check]:
    """The checks that the assertions in `nodes` (lists, or single ones) come to.

    Bare texts become criteria of one rubric, where the first of them stood. As in AgentV, each of
    them weighs as much as any other check; those of a turn (`of_turn`), together, as one.
    """
    checks: list[Check] = []
    said: list[str] = []
    place: int | None = None
    for item in _flat(nodes, background):
        if isinstance(item.value, dict):
            checks.extend(
                with_weight(check, weight) for check, weight in _convert(item, background)
            )
            continue
        line = item.text()
        if line.strip():
            place = len(checks) if place is None else place
            said.append(line)
    if place is not None:
        weight = 1 if of_turn else len(said)
        checks.insert(place, with_weight({"rubric": judged.lines(said)}, weight))
    return checks


def _flat(
    nodes: Iterable[SourceValue], background: Background, depth: int = 0
) -> Iterable[SourceValue]:
    """Every single assertion, included and referenced ones in their place."""
    for node in nodes:
        for item in node.elements():
            if not isinstance(item.value, dict) or depth > 3:
                yield item
            elif "include" in item.value and "type" not in item.value:
                yield from _flat(_included(item, background), background, depth + 1)
            elif "$ref" in item.value:
                yield from _flat(_referenced(item, background), background, depth + 1)
            else:
                yield item


def _included(item: SourceValue, background: Background) -> list[SourceValue]:
    name_node = item.get("include")
    name = name_node.text() if name_node is not None else ""
    if "/" not in name and "." not in name:
        name = f".agentv/templates/{name}.yaml"
    found = references.find(name, name_node or item, base=background.base)
    if found is None:
        return []
    top = SourceValue.top(item.source.open_related(found)[0], item.scope)
    listed = top.get("assert", "assertions") or top
    return [listed]


def _referenced(item: SourceValue, background: Background) -> list[SourceValue]:
    reference = item.get("$ref")
    name = reference.text().rpartition("/")[2] if reference is not None else ""
    found = background.templates.get(name) if background.templates is not None else None
    if found is None:
        item.note(f"`{name}` is not among the assertion templates", "left out")
        return []
    return [found.with_scope(item.scope)]


def _convert(node: SourceValue, background: Background) -> Parts:
    """One assertion's checks with their weights; none (and a note) if it could not come over."""
    kind_node = node.get("type")
    if kind_node is None:
        node.note("an assertion without a type", "left out")
        return []
    kind = kind_node.text().replace("_", "-")
    negated = kind.startswith("not-")
    negate = node.get("negate")
    if negate is not None and negate.take() is True:
        negated = not negated
    assertion = Assertion(node, kind.removeprefix("not-"), negated, background)
    name = node.get("metric", "name", "id")
    assertion.name = name.text() if name is not None else ""
    weight_node, required = node.get("weight"), node.get("required")
    weight = weight_node.number() if weight_node is not None else 1
    parts = _parts(assertion)
    if not parts:
        return []
    common: Check = {"name": assertion.name} if assertion.name else {}
    if required is not None and _is_required(required, assertion.kind):
        common["required"] = True
    _note_scores(assertion)
    return [
        ({**common, **check}, share * float(1 if weight is None else weight))
        for check, share in assertion.negate(parts)
    ]


def _parts(assertion: Assertion) -> Parts:
    kind = assertion.kind
    if kind == "assert-set" or kind == "composite":
        listed = assertion.node.get("assert", "assertions", "evaluators", "graders")
        items = _flat([listed] if listed is not None else [], assertion.background)
        members: Parts = []
        for item in items:
            if isinstance(item.value, dict):
                members.extend(_weighed(_convert(item, assertion.background), item, assertion))
            else:
                members.extend(one({"rubric": item.text()}))
        return grouped(assertion, members)
    if kind in _PROGRAMS:
        return assertion.drop(
            f"`{kind}`: a program with this tool's own input and output",
            "left out: write it anew as a `script` check",
        )
    converter = _CONVERTERS.get(kind)
    if converter is None:
        return assertion.drop(f"`{kind}` has no counterpart", "left out")
    return converter(assertion)


def _weighed(parts: Parts, member: SourceValue, group: Assertion) -> Parts:
    """A member's checks, with the weight that an older AgentV group gives it by its name."""
    aggregator, name = group.node.get("aggregator"), member.get("name", "metric")
    if aggregator is None or name is None:
        return parts
    if (how := aggregator.get("type")) is not None:
        how.use()
    weights = aggregator.get("weights")
    given = weights.get(name.text()) if weights is not None else None
    weight = given.number() if given is not None else None
    return parts if weight is None else [(check, share * weight) for check, share in parts]


def _is_required(node: SourceValue, kind: str) -> bool:
    value = node.take()
    if isinstance(value, bool):
        return value
    number = node.number()
    if number is not None and kind in _SCORED:
        node.changed(f"required with a score of {number}", "required as a whole")
    return number is not None and number > 0


def _note_scores(assertion: Assertion) -> None:
    least = assertion.node.get("min_score")
    if least is not None:
        number = least.number()
        if assertion.kind in _SCORED:
            least.changed(f"it passes from a score of {number}", "a judge says yes or no here")
    if assertion.kind in _SCORED and (threshold := assertion.node.get("threshold")) is not None:
        number = threshold.number()
        threshold.changed(f"it passes from a score of {number}", "a judge says yes or no here")
