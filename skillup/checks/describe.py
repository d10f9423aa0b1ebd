"""A check in one line, for lists, reports and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillup.checks.context import listed, one_line, quoted
from skillup.checks.json_values import shown
from skillup.checks.tools import show_match
from skillup.schema.check_specs import JsonMatch, TextSet, ToolCount
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
    return "a follow-up" if spec is None else _one_line(_ARGUMENTS.get(key, str)(spec))


def wanted(key: str, spec: Any) -> str:
    """What is to be there for the check to pass: ``no "deleted"`` of a ``not_contains``.

    Beside the key :func:`expected` is enough; by itself it would mean the opposite.
    """
    negation = _NEGATED.get(key)
    return expected(key, spec) if negation is None else _one_line(negation(spec))


def _one_line(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _texts(texts: Sequence[str]) -> str:
    return listed(map(quoted, texts))


def _text_set(spec: TextSet, show: Callable[[Sequence[str]], str] = _texts) -> str:
    single = show is _texts and len(spec.any or ()) == 1
    parts = [show(spec.all)] if spec.all else []
    parts += [show(spec.any) if single else f"any of {show(spec.any)}"] if spec.any else []
    parts += [f"none of {show(spec.none)}"] if spec.none else []
    return "; ".join(parts)


def _tool_count(spec: ToolCount) -> str:
    least = f", min {spec.min}" if spec.min is not None else ""
    most = f", max {spec.max}" if spec.max is not None else ""
    return show_match(spec) + least + most


def _json(spec: JsonMatch) -> str:
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
    texts = TextSet.model_construct(all=spec.contains_all, any=spec.contains_any, none=None)
    return f"turn {spec.turn}: {_text_set(texts)}"


def _files(spec: Any) -> str:
    return "; ".join(
        f"{one.path} {quoted(one.content) if one.content is not None else f'~ /{one.matches}/'}"
        for one in spec
    )


def _none_of(items: Sequence[str], show: Callable[[Sequence[str]], str] = _texts) -> str:
    return f"no {show(items)}" if len(items) == 1 else f"none of {show(items)}"


def _check_list(spec: Sequence[Check]) -> str:
    return "[" + "; ".join(check.name or describe(check) for check in spec) + "]"


_ARGUMENTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("contains", "output_contains"), _text_set),
    **dict.fromkeys(
        ("matches", "output_matches"),
        lambda s: _text_set(s, lambda patterns: listed(f"/{one}/" for one in patterns)),
    ),
    **dict.fromkeys(("not_contains", "glob", "not_glob", "must_not_contain"), _texts),
    **dict.fromkeys(("must_contain", "must_contain_all", "must_contain_any"), _texts),
    **dict.fromkeys(("any_of", "all_of", "none_of"), _check_list),
    **dict.fromkeys(("files_exist", "files_not_exist"), listed),
    **dict.fromkeys(("equals", "expected_output"), quoted),
    "json": _json,
    "tool_called": _tool_count,
    "tool_not_called": show_match,
    "tool_sequence": lambda s: f"{s.mode}: {listed(map(show_match, s.calls))}",
    "file_contains": _files,
    "golden_file": lambda s: f"{s.file or 'the answer'} = {s.path}",
    "max_cost_usd": lambda s: f"${s:g}",
    "max_duration_seconds": lambda s: f"{s:g} s",
    "script": lambda s: s.path,
    "rubric": lambda s: listed(quoted(line.outcome) for line in s.criteria),
    "similar": lambda s: f"{quoted(s.to)} ≥ {s.threshold:g}",
    "answer_quality": lambda s: f"{', '.join(s.aspects)} ≥ {s.threshold:g}",
    "relevance": lambda s: f"≥ {s.threshold:g} in windows of {s.window_size}",
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


def in_words(name: str, found: str) -> str:
    """A check and the first line of what it found, which does not repeat what the name says.

    ``contains "yes": not found``, where `found` is ``not found: "yes"``.
    """
    first = next(iter(found.strip().splitlines()), "")
    short = first.removesuffix(f" {name.partition(' ')[2]}").rstrip(": ")
    return f"{name}: {short or first}" if first else name


def beside_found(found: str) -> str:
    """`found` for where the word stands before it already: ``"yes"``, of ``found "yes"``."""
    return found.removeprefix("found ")
