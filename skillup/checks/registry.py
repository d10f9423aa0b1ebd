"""Every check by its key: the one place to add one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from skillup.checks import files, json_values, skills, text, tools
from skillup.checks.context import CheckSubject, Finding, not_assertable
from skillup.schema.check_specs import GoldenFile, JsonMatch, TextSet, ToolCount
from skillup.schema.record import TurnRecord

Within = Callable[[float, float], bool]


def _text_set(spec: TextSet, subject: CheckSubject) -> Finding:
    return text.contains(subject, all_of=spec.all, any_of=spec.any, none_of=spec.none)


def _all(spec: Sequence[str], subject: CheckSubject) -> Finding:
    return text.contains(subject, all_of=spec)


def _none(spec: Sequence[str], subject: CheckSubject) -> Finding:
    return text.contains(subject, none_of=spec)


def _limit(
    spec: float,
    subject: CheckSubject,
    *,
    amount: Callable[[TurnRecord], float | None],
    within: Within,
    shown: str,
    unknown: str = "",
) -> Finding:
    """The sum of an amount over the turns; `unknown`: why it may not be known."""
    values = [value for turn in subject.turns if (value := amount(turn)) is not None]
    if len(values) < len(subject.turns):
        return not_assertable(unknown)
    # Sums of cents are not exact in binary: 0.1 + 0.2 must still be within 0.3.
    total = round(sum(values), 9)
    return Finding(within(total, spec), shown.format(total))


def _exit_code(spec: int, subject: CheckSubject) -> Finding:
    """The agent's process (of the last turn) ended with this code."""
    process = subject.last.process
    if process is None or process.exit_code is None:
        signal = f": it was ended by signal {process.signal}" if process and process.signal else ""
        return not_assertable(f"the agent's process has no exit code{signal}")
    return Finding(process.exit_code == spec, f"exit code {process.exit_code}")


_tokens = partial(
    _limit,
    amount=lambda turn: None if turn.usage is None else turn.usage.output_tokens,
    shown="{:g} output tokens",
    unknown="the engine did not report its output tokens",
)
_cost = partial(
    _limit,
    amount=lambda turn: turn.cost_usd,
    within=operator.le,
    shown="${:.6g}",
    unknown="the engine did not report its cost",
)
_duration = partial(
    _limit, amount=lambda turn: turn.duration_ms / 1000, within=operator.le, shown="{:.3f} s"
)
DETERMINISTIC: dict[str, Callable[[Any, CheckSubject], Finding]] = {
    "contains": _text_set,
    "not_contains": _none,
    "matches": text.matches,
    "glob": text.glob,
    "not_glob": partial(text.glob, wanted=False),
    "equals": text.equals,
    "min_tokens": partial(_tokens, within=operator.ge),
    "max_tokens": partial(_tokens, within=operator.le),
    "json": json_values.json_value,
    "tool_called": tools.tool_called,
    "tool_not_called": partial(tools.tool_called, wanted=False),
    "tool_sequence": tools.tool_sequence,
    "skill_used": skills.skill_used,
    "skill_not_used": partial(skills.skill_used, wanted=False),
    "files_exist": files.files_exist,
    "files_not_exist": files.files_not_exist,
    "file_contains": files.file_contains,
    "golden_file": files.golden_file,
    "exit_code": _exit_code,
    "max_cost_usd": _cost,
    "max_duration_seconds": _duration,
    "must_contain": _all,
    "must_contain_all": _all,
    "must_contain_any": lambda spec, subject: text.contains(subject, any_of=spec),
    "must_not_contain": _none,
    "output_contains": _text_set,
    "output_matches": text.matches,
    "turn_response_contains": lambda spec, subject: text.contains(
        subject, all_of=spec.contains_all, any_of=spec.contains_any
    ),
    "turn_response_not_contains": lambda spec, subject: _none(spec.not_contains, subject),
    "tool_called_in_turn": tools.tool_called,
    "tool_not_called_in_turn": partial(tools.tool_called, wanted=False),
}
"""Checks that look at the record themselves: what they are asked, and of what."""

_FORBIDDING_ANSWERS = frozenset(
    {"not_contains", "not_glob", "must_not_contain", "turn_response_not_contains"}
)
OF_ANSWERS = _FORBIDDING_ANSWERS | {
    *("contains", "matches", "glob", "equals", "json", "golden_file", "must_contain"),
    *("must_contain_all", "must_contain_any", "output_contains", "output_matches"),
    "turn_response_contains",
}
"""Checks of what was said: where there are several answers, :func:`look` chooses among them."""
_FORBIDDING = _FORBIDDING_ANSWERS | {
    *("tool_not_called", "tool_not_called_in_turn", "skill_not_used", "files_not_exist")
}
NAMES_ITS_TURN = frozenset(
    {
        *("turn_response_contains", "turn_response_not_contains"),
        *("tool_called_in_turn", "tool_not_called_in_turn"),
    }
)
"""Checks whose arguments have a `turn` of their own."""
COMPOSITE = frozenset({"any_of", "all_of", "none_of"})
"""Checks made of checks."""
JUDGED = frozenset(
    {"script", "rubric", "similar", "expected_output", "relevance", "answer_quality"}
)
"""Checks that need a judge."""


def look(key: str, spec: Any, subject: CheckSubject, *, negated: bool) -> Finding:
    """What the check finds: what must be there, in the last answer; what must not, in every one.

    `negated`: it stands in `none_of` or in `failure`, where the two change places.
    """
    ask = DETERMINISTIC[key]
    if key not in OF_ANSWERS:
        found = ask(spec, subject)
        unknown = None
        if _forbids(key, spec) != negated and found.passed != negated:
            # That something was left alone says nothing of an agent that did not even answer.
            idle = _without(subject, lambda turn: bool(turn.response.strip() or turn.tool_calls))
            unknown = (
                None if idle is None else f"the agent neither answered nor called a tool{idle}"
            )
        unknown = unknown or _unread(key, spec, subject, found)
        return found if unknown is None else not_assertable(unknown)
    findings = []
    parts = [(spec, _forbids(key, spec))]
    """What the check looks for, and what it forbids (True), each as a check of its own."""
    if isinstance(spec, TextSet) and spec.none:
        forbidden = spec.model_copy(update={"any": None, "all": None})
        wanted = spec.model_copy(update={"none": None})
        parts = [*([(wanted, False)] if spec.any or spec.all else []), (forbidden, True)]
    for part, forbids in parts:
        answers = subject.turns if forbids != negated else subject.turns[-1:]
        if isinstance(spec, JsonMatch):  # one in words has no value that could be forbidden
            with_json = (turn for turn in answers if json_values.root_of(spec, turn.response)[0])
            answers = tuple(with_json) or answers[-1:]
        each = [(turn, ask(part, replace(subject, answered=turn))) for turn in answers]
        # One answer that says it decides: for what is looked for, or against what is forbidden.
        turn, found = next((one for one in each if one[1].passed != forbids), each[-1])
        of_a_file = isinstance(spec, GoldenFile) and spec.file is not None
        if forbids != negated and found.passed == forbids and not of_a_file:
            unanswered = _without(subject, lambda turn: bool(turn.response.strip()))
            if unanswered is not None:
                found = not_assertable(f"the agent gave no answer{unanswered}")
        elif turn is not subject.last:
            found = replace(found, found=f"turn {turn.turn_number}: {found.found}")
        findings.append(found)
    return next((found for found in findings if not found.passed), findings[0])


def _without(subject: CheckSubject, has_some: Callable[[TurnRecord], bool]) -> str | None:
    """The first turn that has none, as words to add; None: each has. Commands need not answer."""
    turns = [turn for turn in subject.turns if not turn.slash_command] or subject.turns
    turn = next((turn for turn in turns if not has_some(turn)), None)
    if turn is None:
        return None
    return f" in turn {turn.turn_number}" if len(subject.turns) > 1 else ""


def _unread(key: str, spec: Any, subject: CheckSubject, found: Finding) -> str | None:
    """That calls may be in lines that could not be read, where one more could change the result."""
    if not key.startswith(("tool_", "skill_")):
        return None
    most = getattr(spec, "max", None) is not None or getattr(spec, "mode", None) == "exact"
    if not (found.passed if _forbids(key, spec) else most or not found.passed):
        return None
    lines = sum(turn.unread_lines for turn in subject.turns)
    if lines == 0:
        return None
    return f"lines of the engine's output that could not be read: {lines}; a call may be in them"


def _forbids(key: str, spec: Any) -> bool:
    if isinstance(spec, ToolCount):  # `max: 0`, or `min: 0` with a `max`, holds without a call
        return spec.max == 0 or spec.min == 0
    return key in _FORBIDDING or getattr(spec, "exists", None) is False
