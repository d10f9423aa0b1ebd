"""Assertions on what the agent did: tools, their order and arguments, skills."""

from __future__ import annotations

from typing import Any

from skillup.importers.promptfoo.assertion import (
    Assertion,
    Check,
    Parts,
    one,
    shared,
    together,
)
from skillup.importers.promptfoo.values import SourceValue, as_text

_KINDS = {"command": "shell", "search": "search"}


def _tool(value: Any) -> Check:
    """``{name, kind?}`` of a tool that is named, or meant by a pattern."""
    if isinstance(value, dict):
        name = value.get("name", value.get("pattern", value.get("tool")))
        return {"name": as_text(name)} if name is not None else {}
    return {"name": as_text(value)}


def _range(value: dict[Any, Any]) -> Check:
    return {key: value[key] for key in ("min", "max") if isinstance(value.get(key), int)}


def tool_used(assertion: Assertion) -> Parts:
    """``trajectory:tool-used``: a name, several names, or a name with counts."""
    value = assertion.value()
    if isinstance(value, dict):
        assertion.knows("name", "pattern", "tool", "min", "max")
        tool, counts = _tool(value), _range(value)
        if not tool:
            return assertion.drop("no tool is named", "left out")
        if assertion.negated and not counts:
            assertion.takes_negation()
            return one({"tool_not_called": tool})
        if counts.get("max") == 0:
            return one({"tool_not_called": tool})
        if "max" in counts and "min" not in counts:
            counts = {"min": 0, **counts}
        return one({"tool_called": {**tool, **counts}})
    tools = [_tool(item) for item in (value if isinstance(value, list) else [value])]
    if not tools or not all(tool.get("name") for tool in tools):
        return assertion.drop("no tool is named", "left out")
    # Negated, a list means that none of them was used.
    key = "tool_not_called" if assertion.takes_negation() else "tool_called"
    return together({key: tool} for tool in tools)


def tool_sequence(assertion: Assertion) -> Parts:
    """``trajectory:tool-sequence``: names in an order."""
    value = assertion.value()
    steps = value.get("steps") if isinstance(value, dict) else value
    mode = value.get("mode", "in_order") if isinstance(value, dict) else "in_order"
    if isinstance(value, dict):
        assertion.knows("steps", "mode")
    for step in steps if isinstance(steps, list) else ():
        for key in (
            sorted(set(step) - {"name", "pattern", "tool"}) if isinstance(step, dict) else ()
        ):
            assertion.node.lost(f"`{key}` of a step", "left out: only the tool's name counts")
    calls = [_tool(step) for step in steps] if isinstance(steps, list) else []
    if not calls or not all(calls):
        return assertion.drop("no tools are named", "left out")
    return one({"tool_sequence": {"calls": calls, "mode": _mode(mode)}})


def _mode(mode: Any) -> str:
    return {"exact": "exact", "any_order": "any_order"}.get(as_text(mode), "in_order")


def tool_args(assertion: Assertion) -> Parts:
    """``trajectory:tool-args-match``"""
    value = assertion.value()
    if not isinstance(value, dict) or not _tool(value):
        return assertion.drop("no tool is named", "left out")
    args = value.get("args", value.get("arguments"))
    if not isinstance(args, dict):
        return assertion.drop("no arguments are given", "left out")
    assertion.knows("name", "pattern", "tool", "args", "arguments", "mode", "ignore", "defaults")
    exact = value.get("mode") == "exact"
    if exact:
        assertion.node.changed(
            "`mode: exact` refuses other arguments", "the given ones are compared, others allowed"
        )
    ignored = value.get("ignore")
    names = ignored if isinstance(ignored, list) else [ignored]
    kept = {key: item for key, item in args.items() if key not in names}
    wanted = {**_tool(value), "args": _args(kept, assertion.node, exact=exact)}
    return one({"tool_called": wanted, "case_sensitive": True})


def _args(args: dict[Any, Any], node: SourceValue, *, exact: bool = False) -> Check:
    if not exact and any(isinstance(value, dict) for value in args.values()):
        node.changed("an argument with parts, compared in part", "it is compared as a whole")
    # A mapping could be taken for one of our own comparisons, so it is spelled out.
    return {
        as_text(key): {"equals": value} if isinstance(value, dict) else value
        for key, value in args.items()
    }


def step_count(assertion: Assertion) -> Parts:
    """``trajectory:step-count``: how many steps of a kind."""
    value = assertion.value()
    if not isinstance(value, dict):
        return assertion.drop("no counts are given", "left out")
    assertion.knows("type", "pattern", "min", "max")
    kind = as_text(value.get("type", "tool"))
    counts = {"min": 0, **_range(value)}
    if kind == "tool":
        return one({"tool_called": {"name": as_text(value.get("pattern", "*")), **counts}})
    if kind in _KINDS:
        named = {"name": as_text(value["pattern"])} if value.get("pattern") else {}
        return one({"tool_called": {**named, "kind": _KINDS[kind], **counts}})
    return assertion.drop(f"steps of the kind `{kind}` are not counted here", "left out")


def tool_call_f1(assertion: Assertion) -> Parts:
    """``tool-call-f1``: which tools were called, order and number apart."""
    value = assertion.value()
    names = value.split(",") if isinstance(value, str) else value
    names = [as_text(name).strip() for name in names] if isinstance(names, list) else []
    if not names:
        return assertion.drop("no tools are named", "left out")
    threshold = assertion.number("threshold")
    assertion.node.changed(
        "an F1 score of the tools that were called",
        "each must have been called; others are not counted against it"
        + (f", and its threshold {threshold} is gone" if threshold is not None else ""),
    )
    return together({"tool_called": {"name": name}} for name in names)


def old_trajectory(assertion: Assertion) -> Parts:
    """AgentV's earlier ``tool-trajectory``: minimum counts, or calls in an order."""
    node = assertion.node
    mode_node = node.get("mode")
    mode = mode_node.text() if mode_node is not None else "any_order"
    checks: list[Check] = []
    minimums = node.get("minimums")
    for name, count in minimums.items() if minimums is not None else ():
        checks.append({"tool_called": {"name": name, "min": int(count.number() or 0)}})
    expected = node.get("expected")
    calls = [_old_call(call) for call in expected.elements()] if expected is not None else []
    if mode == "subset":
        return assertion.drop("`mode: subset`: no other tools than these", "left out")
    if calls:
        ours = {"exact": "exact", "in_order": "in_order"}.get(mode, "any_order")
        exact = {"case_sensitive": True} if any("args" in call for call in calls) else {}
        checks.append({"tool_sequence": {"calls": calls, "mode": ours}, **exact})
    matching = node.get("args_match", "argsMatch")
    if matching is not None:
        _args_match(matching)
    return shared(checks) if checks else assertion.drop("no tools are named", "left out")


def _args_match(node: SourceValue) -> None:
    how = ", ".join(node.texts())
    if how not in ("superset", "ignore"):
        node.changed(f"arguments compared by `{how}`", "the given ones are compared, no others")


def _old_call(node: SourceValue) -> Check:
    if not isinstance(node.value, dict):
        return {"name": node.text()}
    tool = node.get("tool", "name")
    call: Check = {"name": tool.text() if tool is not None else "*"}
    args = node.get("args", "input")
    given = args.take() if args is not None else None
    if isinstance(given, dict):
        call["args"] = _args(given, node)
    matching = node.get("args_match", "argsMatch")
    if matching is not None:
        _args_match(matching)
    return call


def skill_used(assertion: Assertion) -> Parts:
    """``skill-used``: a skill, several, or a pattern with counts."""
    value = assertion.value()
    key = "skill_not_used" if assertion.takes_negation() else "skill_used"
    if isinstance(value, dict):
        assertion.knows("name", "pattern", "min", "max")
        name = as_text(value.get("name", value.get("pattern")))
        if not name or any(mark in name for mark in "*?"):
            assertion.node.changed(
                f"a pattern of skills (`{name}`)", "any skill counts: name the one that is meant"
            )
            tool = "tool_not_called" if key == "skill_not_used" else "tool_called"
            return one({tool: {"kind": "skill"}})
        if _range(value) not in ({}, {"min": 1}):
            assertion.node.changed("how often the skill is used", "once is enough, or too much")
        return one({key: name})
    names = [as_text(item) for item in (value if isinstance(value, list) else [value]) if item]
    if not names:
        return assertion.drop("no skill is named", "left out")
    return together({key: name} for name in names)


def old_skill_trigger(assertion: Assertion) -> Parts:
    """AgentV's earlier ``skill-trigger``."""
    skill = assertion.node.get("skill", "value")
    wanted = assertion.node.get("should_trigger")
    if skill is None:
        return assertion.drop("no skill is named", "left out")
    used = (wanted is None or wanted.take() is not False) is not assertion.takes_negation()
    return one({"skill_used" if used else "skill_not_used": skill.text()})
