"""A check in one line, for lists, reports and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from skillup.checks.context import listed, one_line, quoted
from skillup.checks.json_values import shown
from skillup.checks.tools import show_match
from skillup.schema.check_specs import TextSet, ToolCount
from skillup.schema.checks import CHECK_FIELDS, Check

FOLLOW_UP = "follow_up"
_LONGEST = 200
_KEYS = {field: key for key, field in CHECK_FIELDS.items()}


def describe(check: Check) -> str:
    r"""``tool_not_called shell args.command ~ /\brm\b/``: the key and what it looks for."""
    key, spec = key_and_spec(check)
    return title(key, expected(key, spec), check)


def title(key: str, wanted: str, check: Check) -> str:
    """The line for `check`, once its key and what it looks for are known."""
    if key == FOLLOW_UP:
        return f"follow-up {quoted(check.prompt or '')}"
    return f"{key} {wanted}" if check.turn is None else f"{key} {wanted} (turn {check.turn})"


def key_and_spec(check: Check) -> tuple[str, Any]:
    """The check's key and its arguments; ``("follow_up", None)`` if it is a bare follow-up.

    The same as ``check.key`` and ``check.spec``, but fit for thousands of checks a second.
    """
    for field in check.model_fields_set:
        key = _KEYS.get(field)
        if key is not None:
            spec = getattr(check, field)
            if spec is not None:
                return key, spec
    return FOLLOW_UP, None


def expected(key: str, spec: Any) -> str:
    """What a check looks for, in one line."""
    if spec is None:
        return "a follow-up"
    return _fitting(_ARGUMENTS.get(key, _plainly)(spec))


def wanted(key: str, spec: Any) -> str:
    """What is to be there for the check to pass: ``no "deleted"`` of a ``not_contains``.

    Beside the key :func:`expected` says enough; by itself it would say the opposite.
    """
    negation = _NEGATED.get(key)
    return expected(key, spec) if negation is None else _fitting(negation(spec))


def _fitting(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _plainly(spec: Any) -> str:
    return str(spec)


def _texts(spec: Sequence[str]) -> str:
    return listed(map(quoted, spec))


def _one_of(spec: Sequence[str]) -> str:
    return quoted(spec[0]) if len(spec) == 1 else f"any of {_texts(spec)}"


def _text_set(spec: TextSet) -> str:
    parts = [_texts(spec.all)] if spec.all else []
    parts += [_one_of(spec.any)] if spec.any else []
    parts += [f"none of {_texts(spec.none)}"] if spec.none else []
    return "; ".join(parts)


def _patterns(spec: TextSet) -> str:
    parts = [_slashed(spec.all)] if spec.all else []
    parts += [f"any of {_slashed(spec.any)}"] if spec.any else []
    parts += [f"none of {_slashed(spec.none)}"] if spec.none else []
    return "; ".join(parts)


def _slashed(patterns: Sequence[str]) -> str:
    return listed(f"/{pattern}/" for pattern in patterns)


def _tool_count(spec: ToolCount) -> str:
    least = f", min {spec.min}" if spec.min is not None else ""
    most = f", max {spec.max}" if spec.max is not None else ""
    return show_match(spec) + least + most


def _json(spec: Any) -> str:
    if "equals" in spec.model_fields_set:
        return f"{spec.path} = {shown(spec.equals)}"
    if spec.matches is not None:
        return f"{spec.path} ~ /{spec.matches}/"
    if "json_schema" in spec.model_fields_set:
        return f"{spec.path} is valid by its schema{' as a whole' if spec.whole else ''}"
    if spec.whole and spec.path == "$" and spec.exists is not False:
        return "and nothing else"
    return f"{spec.path} {'is absent' if spec.exists is False else 'exists'}"


def _turn_contains(spec: Any) -> str:
    parts = [_texts(spec.contains_all)] if spec.contains_all else []
    parts += [_one_of(spec.contains_any)] if spec.contains_any else []
    return f"turn {spec.turn}: {'; '.join(parts)}"


def _file(spec: Any) -> str:
    what = quoted(spec.content) if spec.content is not None else f"~ /{spec.matches}/"
    return f"{spec.path} {what}"


def _none_of(items: Sequence[str], show: Callable[[Sequence[str]], str] = _texts) -> str:
    return f"no {show(items)}" if len(items) == 1 else f"none of {show(items)}"


def _check_list(spec: Sequence[Check]) -> str:
    return "[" + "; ".join(check.name or describe(check) for check in spec) + "]"


_ARGUMENTS: dict[str, Callable[[Any], str]] = {
    "contains": _text_set,
    "not_contains": _texts,
    "matches": _patterns,
    "glob": _texts,
    "not_glob": _texts,
    "equals": quoted,
    "json": _json,
    "tool_called": _tool_count,
    "tool_not_called": show_match,
    "tool_sequence": lambda s: f"{s.mode}: {listed(map(show_match, s.calls))}",
    "files_exist": listed,
    "files_not_exist": listed,
    "file_contains": lambda s: "; ".join(map(_file, s)),
    "golden_file": lambda s: f"{s.file or 'the answer'} = {s.path}",
    "max_cost_usd": lambda s: f"${s:g}",
    "max_duration_seconds": lambda s: f"{s:g} s",
    "script": lambda s: s.path,
    "rubric": lambda s: listed(quoted(line.outcome) for line in s.criteria),
    "similar": lambda s: f"{quoted(s.to)} ≥ {s.threshold:g}",
    "expected_output": quoted,
    "answer_quality": lambda s: f"{', '.join(s.aspects)} ≥ {s.threshold:g}",
    "relevance": lambda s: f"≥ {s.threshold:g} in windows of {s.window_size}",
    "any_of": _check_list,
    "all_of": _check_list,
    "none_of": _check_list,
    "must_contain": _texts,
    "must_contain_all": _texts,
    "must_contain_any": _texts,
    "must_not_contain": _texts,
    "output_contains": _text_set,
    "output_matches": _patterns,
    "turn_response_contains": _turn_contains,
    "turn_response_not_contains": lambda s: f"turn {s.turn}: {_texts(s.not_contains)}",
    "tool_called_in_turn": lambda s: f"turn {s.turn}: {_tool_count(s)}",
    "tool_not_called_in_turn": lambda s: f"turn {s.turn}: {show_match(s)}",
}
_NEGATED: dict[str, Callable[[Any], str]] = {
    "not_contains": _none_of,
    "must_not_contain": _none_of,
    "not_glob": lambda s: f"no match of {_texts(s)}",
    "tool_not_called": lambda s: f"no call of {show_match(s)}",
    "skill_not_used": lambda s: f"no use of {s}",
    "files_not_exist": lambda s: _none_of(s, listed),
    "none_of": lambda s: f"none of {_check_list(s)}",
    "turn_response_not_contains": lambda s: f"turn {s.turn}: {_none_of(s.not_contains)}",
    "tool_not_called_in_turn": lambda s: f"turn {s.turn}: no call of {show_match(s)}",
}


# A check and what it found, as one phrase that says nothing twice.

_OF_NO_ACCOUNT = (
    "a all and answer any are contain contains does found in is it match matches no none not of "
    "text the there was were ~"
)
_EMPTY = frozenset(_OF_NO_ACCOUNT.split())
"""Words that tell what came of a check, and not what it is about."""
_MARKS = "\"'“”‘’`,;:.()"


def in_words(name: str, found: str) -> str:
    """``contains "yes": not found``, where `found` is ``not found: "yes"``; by its first line.

    Where `found` is a sentence about all that `name` is about, it stands alone: of
    ``file_contains a.md ~ /x/`` that is ``/x/ is not in a.md``.
    """
    first = next(iter(found.strip().splitlines()), "")
    if not first:
        return name
    kind, _, wanted = name.partition(" ")
    about = _about(wanted) or _about(kind)
    if not about or _about(first) != about:
        return f"{name}: {first}"
    came_of_it = " ".join(takewhile(lambda word: not _about(word), first.split()))
    return f"{name}: {came_of_it.rstrip(':').removesuffix(' of')}" if came_of_it else first


def beside_found(found: str) -> str:
    """`found` for where the word stands before it already: ``"yes"``, of ``found "yes"``."""
    return found.removeprefix("found ")


def _about(text: str) -> set[str]:
    # Within quotation marks the same words are what it is about.
    parts = (part.strip("(),:;") for part in text.split())
    return {word for part in parts if part not in _EMPTY and (word := part.strip(_MARKS))}
