"""Every check by its key: what it looks at, and how it reads in one line. One is added here."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from skillup.checks import files, text, tools
from skillup.checks.context import (
    CheckSubject,
    Finding,
    NotAssertableError,
    beginning,
    listed,
    quoted,
)
from skillup.checks.text import shown
from skillup.checks.tools import show_match
from skillup.frozen import frozen
from skillup.schema.checks import Check, GoldenFile, JsonMatch, TextSet, ToolCount
from skillup.schema.record import TurnRecord

FOLLOW_UP = "follow_up"
_AMOUNTS: dict[str, tuple[Callable[[TurnRecord], float | None], str, str]] = {
    "tokens": (
        lambda turn: turn.usage.output_tokens if turn.usage is not None else None,
        "{:g} output tokens",
        "the engine did not report its output tokens",
    ),
    "cost": (lambda turn: turn.cost_usd, "${:.6g}", "the engine did not report its cost"),
    "time": (lambda turn: turn.duration_ms / 1000, "{:.3f} s", ""),
}
"""What of a turn is counted, how it is shown, and why it may not be known."""


def _limit(
    spec: float, subject: CheckSubject, *, of: str, within: Callable[[float, float], bool]
) -> Finding:
    amount, shown, unknown = _AMOUNTS[of]
    values = [value for turn in subject.turns if (value := amount(turn)) is not None]
    if len(values) < len(subject.turns):
        raise NotAssertableError(unknown)
    # Sums of cents are not exact in binary: 0.1 + 0.2 must still be within 0.3.
    total = round(sum(values), 9)
    return Finding(within(total, spec), shown.format(total))


def _exit_code(spec: int, subject: CheckSubject) -> Finding:
    process = subject.last.process
    if process is None or process.exit_code is None:
        signal = f": it was ended by signal {process.signal}" if process and process.signal else ""
        raise NotAssertableError(f"the agent's process has no exit code{signal}")
    return Finding(process.exit_code == spec, f"exit code {process.exit_code}")


# The arguments of a check in one line.


def _show_texts(spec: TextSet, show: Callable[[str], str] = quoted) -> str:
    parts = [listed(map(show, spec.all))] if spec.all else []
    if spec.any:
        parts.append(f"{'any of ' * (len(spec.any) > 1)}{listed(map(show, spec.any))}")
    if spec.none:
        parts.append(f"{'none of ' * bool(parts)}{listed(map(show, spec.none))}")
    return "; ".join(parts)


def _show_json(spec: JsonMatch) -> str:
    condition = "is absent" if spec.exists is False else "exists"
    if "equals" in spec.model_fields_set:
        condition = f"= {shown(spec.equals)}"
    elif spec.matches is not None:
        condition = f"~ /{spec.matches}/"
    elif "json_schema" in spec.model_fields_set:
        condition = "is valid by its schema"
    return f"{spec.path} {condition}{', and nothing else' if spec.whole else ''}"


def _show_files(spec: Any) -> str:
    return "; ".join(
        f"{one.path} {quoted(one.content) if one.content is not None else f'~ /{one.matches}/'}"
        for one in spec
    )


def _show_list(texts: Sequence[str]) -> str:
    return listed(map(quoted, texts))


def _show_checks(spec: Sequence[Check]) -> str:
    return "[" + "; ".join(check.name or describe(check) for check in spec) + "]"


def _texts(how: str) -> Callable[[Any], TextSet]:
    """Texts in a list, as a set of which all, any, or none are wanted."""
    return lambda spec: TextSet.model_construct(**{how: getattr(spec, "not_contains", spec)})


@frozen
class CheckKind:
    look: Callable[[Any, CheckSubject], Finding] | None
    """Looks at the record itself; None: the check is made of checks, or asks a judge."""
    show: Callable[[Any], str] = str  # Its arguments in one line
    of_answers: bool = False
    """It is of what was said: where there are several answers, :func:`look` chooses among them."""
    forbids: bool = False  # It wants that something is not there
    read: Callable[[Any], Any] | None = None
    """From its arguments to those that `look` takes, where these differ."""


_at_most = partial(partial, _limit, within=operator.le)
_contains = partial(CheckKind, text.contains, _show_texts, of_answers=True)
_matches = CheckKind(text.matches, partial(_show_texts, show="/{}/".format), of_answers=True)
_called = partial(CheckKind, tools.tool_called, show_match)
_glob = partial(CheckKind, show=_show_list, of_answers=True)
KINDS: dict[str, CheckKind] = {
    "contains": _contains(),
    "not_contains": _contains(forbids=True, read=_texts("none")),
    "matches": _matches,
    "glob": _glob(text.glob),
    "not_glob": _glob(partial(text.glob, wanted=False), forbids=True),
    "equals": CheckKind(text.equals, quoted, of_answers=True),
    "min_tokens": CheckKind(partial(_limit, of="tokens", within=operator.ge)),
    "max_tokens": CheckKind(_at_most(of="tokens")),
    "json": CheckKind(text.json_value, _show_json, of_answers=True),
    "tool_called": _called(),
    "tool_not_called": _called(forbids=True),
    "tool_sequence": CheckKind(
        tools.tool_sequence, lambda s: f"{s.mode}: {listed(map(show_match, s.calls))}"
    ),
    "skill_used": CheckKind(tools.skill_used),
    "skill_not_used": CheckKind(partial(tools.skill_used, wanted=False), forbids=True),
    "files_exist": CheckKind(files.files_exist, listed),
    "files_not_exist": CheckKind(files.files_not_exist, listed, forbids=True),
    "file_contains": CheckKind(files.file_contains, _show_files),
    "golden_file": CheckKind(
        files.golden_file, lambda s: f"{s.file or 'the answer'} = {s.path}", of_answers=True
    ),
    "exit_code": CheckKind(_exit_code),
    "max_cost_usd": CheckKind(_at_most(of="cost"), "${:g}".format),
    "max_duration_seconds": CheckKind(_at_most(of="time"), "{:g} s".format),
    **dict.fromkeys(("any_of", "all_of"), CheckKind(None, _show_checks)),
    "none_of": CheckKind(None, _show_checks, forbids=True),
    "script": CheckKind(None, operator.attrgetter("path")),
    "rubric": CheckKind(None, lambda s: _show_list([line.outcome for line in s.criteria])),
    "similar": CheckKind(None, lambda s: f"{quoted(s.to)} ≥ {s.threshold:g}"),
    "expected_output": CheckKind(None, quoted),
    "relevance": CheckKind(None, lambda s: f"≥ {s.threshold:g} in windows of {s.window_size}"),
    "answer_quality": CheckKind(None, lambda s: f"{', '.join(s.aspects)} ≥ {s.threshold:g}"),
    FOLLOW_UP: CheckKind(None, lambda _: "a follow-up"),
    # skill-up's spellings
    **dict.fromkeys(("must_contain", "must_contain_all"), _contains(read=_texts("all"))),
    "must_contain_any": _contains(read=_texts("any")),
    **dict.fromkeys(
        ("must_not_contain", "turn_response_not_contains"),
        _contains(forbids=True, read=_texts("none")),
    ),
    "output_contains": _contains(),
    "output_matches": _matches,
    "turn_response_contains": _contains(
        read=lambda s: TextSet.model_construct(all=s.contains_all, any=s.contains_any)
    ),
    "tool_called_in_turn": _called(),
    "tool_not_called_in_turn": _called(forbids=True),
}
COMPOSITE = frozenset({"any_of", "all_of", "none_of"})  # Checks made of checks
JUDGED = frozenset(
    {"script", "rubric", "similar", "expected_output", "relevance", "answer_quality"}
)
"""Checks that need a judge."""


def meaning(key: str, spec: Any) -> Any:
    """The arguments as the check's own function takes them; once more changes nothing."""
    read = KINDS[key].read
    return spec if read is None or isinstance(spec, TextSet) else read(spec)


def describe(check: Check) -> str:
    r"""``tool_not_called shell args.command ~ /\brm\b/``: the key and what it looks for."""
    key, spec = check.key_and_spec()
    turn = check.turn if check.turn is not None else getattr(spec, "turn", None)
    return title(key, meaning(key, spec), check, turn)


def title(key: str, spec: Any, check: Check | None = None, turn: int | str | None = None) -> str:
    """The line for a check that has no name."""
    if key == FOLLOW_UP:
        return f"follow-up {quoted((check.prompt if check else None) or '')}"
    return f"{key} {beginning(KINDS[key].show(spec))}" + (f" (turn {turn})" if turn else "")


def expected(key: str, spec: Any) -> str:
    """What is to be there for the check to pass: ``no "deleted"`` of a ``not_contains``."""
    return beginning("no " * KINDS[key].forbids + KINDS[key].show(spec))


def look(key: str, spec: Any, subject: CheckSubject, *, negated: bool) -> Finding:
    """What must be there, in the last answer; what must not, in all; `negated`: turned round."""
    ask = KINDS[key].look
    assert ask is not None
    if not KINDS[key].of_answers:
        found = ask(spec, subject)
        if _forbids(key, spec) != negated and found.passed != negated:
            # That something was left alone says nothing of an agent that did not even answer.
            idle = _without(subject, lambda turn: bool(turn.response.strip() or turn.tool_calls))
            if idle is not None:
                raise NotAssertableError(f"the agent neither answered nor called a tool{idle}")
        if key.startswith(("tool_", "skill_")):
            _refuse_unread(key, spec, subject, found)
        return found
    findings = []
    # What the check looks for, and what it forbids (True), each as a check of its own.
    parts = [(spec, _forbids(key, spec))]
    if isinstance(spec, TextSet) and spec.none and (spec.all or spec.any):
        forbidden = spec.model_copy(update={"any": None, "all": None})
        wanted = spec.model_copy(update={"none": None})
        parts = [(wanted, False), (forbidden, True)]
    for part, forbids in parts:
        answers = subject.turns if forbids != negated else subject.turns[-1:]
        if isinstance(spec, JsonMatch):  # one in words has no value that could be forbidden
            with_json = (turn for turn in answers if text.root_of(spec, turn.response)[0])
            answers = tuple(with_json) or answers[-1:]
        each = [(turn, ask(part, replace(subject, answered=turn))) for turn in answers]
        # One answer that says it decides: for what is looked for, or against what is forbidden.
        turn, found = next((one for one in each if one[1].passed != forbids), each[-1])
        of_a_file = isinstance(spec, GoldenFile) and spec.file is not None
        if forbids != negated and found.passed == forbids and not of_a_file:
            unanswered = _without(subject, lambda turn: bool(turn.response.strip()))
            if unanswered is not None:
                found = Finding(False, f"the agent gave no answer{unanswered}", assertable=False)
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


def _refuse_unread(key: str, spec: Any, subject: CheckSubject, found: Finding) -> None:
    """NotAssertableError if one more call, in a line that nobody could read, changed the result."""
    most = getattr(spec, "max", None) is not None or getattr(spec, "mode", None) == "exact"
    lines = sum(turn.unread_lines for turn in subject.turns)
    if lines and (found.passed if _forbids(key, spec) else most or not found.passed):
        what = f"lines of the engine's output that could not be read: {lines}"
        raise NotAssertableError(f"{what}; a call may be in them")


def _forbids(key: str, spec: Any) -> bool:
    if isinstance(spec, ToolCount):  # `max: 0`, or `min: 0` with a `max`, holds without a call
        return spec.max == 0 or spec.min == 0
    if isinstance(spec, TextSet):
        return not (spec.all or spec.any)
    return KINDS[key].forbids or getattr(spec, "exists", None) is False
