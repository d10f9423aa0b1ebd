"""Pydantic's error types in plain words: what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skillup.load.suggest import near_miss

Words = tuple[str, str]

_SHOWN_LENGTH = 40
_MOST_LISTED = 12
"""Beyond this, the values that are allowed are listed only if none of them was nearly written."""

EXPECTED: Mapping[str, str] = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "iterable_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "empty",
}
"""The error types that mean a value of the wrong kind, and the kind that was expected."""

_LIKE_TRUE = {"yes", "on", "y", "true", "1"}
_LIKE_FALSE = {"no", "off", "n", "false", "0"}


def describe(value: Any) -> str:
    """`value` as a message names it: a kind for lists and mappings, the value itself for others."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = str(value) if isinstance(value, str | int | float) else repr(value)
    if not text:
        return "an empty text"
    if not text.isprintable():
        text = repr(text)[1:-1]
    return f"`{text}`" if len(text) <= _SHOWN_LENGTH else f"`{text[: _SHOWN_LENGTH - 1]}…`"


def wrong_kind(value: Any, kinds: list[str]) -> Words:
    """Words for a value that is none of `kinds` (as in EXPECTED)."""
    expected = " or ".join(dict.fromkeys(kinds))
    if value is None:
        return "nothing is written here", f"write {expected}, or remove the key"
    return f"{describe(value)} is not {expected}", _right_kind(value, expected)


def words_for(details: Mapping[str, Any], allowed: list[str]) -> Words:
    """Words for one of pydantic's error details; `allowed` are a Literal's values, if it is one."""
    kind = str(details["type"])
    value = details["input"]
    context: Mapping[str, Any] = details.get("ctx") or {}
    if kind in EXPECTED:
        return wrong_kind(value, [EXPECTED[kind]])
    if kind in ("value_error", "assertion_error"):
        message, _, fix = str(context.get("error", details["msg"])).partition(" || ")
        return message, fix
    if kind in ("literal_error", "enum"):
        return _not_allowed(value, allowed, str(context.get("expected", "")))
    if kind in _BY_TYPE:
        return _BY_TYPE[kind](value, context)
    message = str(details["msg"])
    return f"{describe(value)} is not right here ({message[:1].lower()}{message[1:]})", ""


def key_words(details: Mapping[str, Any]) -> Words:
    """Words for an error about a key itself."""
    key = details["input"]
    if not isinstance(key, str):
        return f"the key {describe(key)} is not a text", f'put it in quotes: "{key}"'
    message, fix = words_for(details, [])
    return f"the key {message}", fix


def _right_kind(value: Any, expected: str) -> str:
    if expected == "true or false":
        word = str(value).casefold()
        if word in _LIKE_TRUE:
            return "write `true`"
        return "write `false`" if word in _LIKE_FALSE else "write `true` or `false`"
    if expected in ("a whole number", "a number") and isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return "write a number, such as 3"
        if expected == "a number" or number.is_integer():
            return f"write {value.strip()} without quotes"
        return "write a number without a decimal point"
    if expected == "a whole number" and isinstance(value, float):
        return "write a number without a decimal point"
    if expected == "a list":
        return "begin each item with `- ` on a line of its own, or write [one, other]"
    if expected == "a mapping":
        return "write `key: value` lines below it"
    if expected == "a text" and isinstance(value, bool | int | float):
        return "put it in quotes"
    return "remove it" if expected == "empty" else f"write {expected}"


def _not_allowed(value: Any, allowed: list[str], expected: str) -> Words:
    if not allowed:
        return f"{describe(value)} is not allowed here", f"allowed: {expected}" if expected else ""
    listed = ", ".join(f"`{name}`" for name in allowed)
    guess = near_miss(value, allowed) if isinstance(value, str) else None
    if len(allowed) == 1:
        return f"{describe(value)} is not allowed here", f"write {listed}"
    if guess and len(allowed) > _MOST_LISTED:
        return f"{describe(value)} is not allowed here", f"did you mean `{guess}`?"
    fix = f"did you mean `{guess}`? allowed: {listed}" if guess else f"allowed: {listed}"
    return f"{describe(value)} is not allowed here", fix


def _number(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _bound(words: str, key: str) -> Callable[[Any, Mapping[str, Any]], Words]:
    def say(value: Any, context: Mapping[str, Any]) -> Words:
        return f"{describe(value)} is out of range", f"it must be {words} {_number(context[key])}"

    return say


def _too_short_text(value: Any, context: Mapping[str, Any]) -> Words:
    least = context["min_length"]
    if not value:
        return "the text is empty", "write a text, or remove the key"
    return f"{describe(value)} is too short", f"at least {least} characters are needed"


def _too_long_text(value: Any, context: Mapping[str, Any]) -> Words:
    return f"{describe(value)} is too long", f"at most {context['max_length']} characters"


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"


def _too_short(_: Any, context: Mapping[str, Any]) -> Words:
    if not context["actual_length"]:
        return "it is empty", f"at least {_items(context['min_length'])} must be there"
    return (
        f"it has {_items(context['actual_length'])}",
        f"at least {_items(context['min_length'])} must be there",
    )


def _too_long(_: Any, context: Mapping[str, Any]) -> Words:
    most = _items(context["max_length"])
    return "it has too many items", f"at most {most} may be there"


def _pattern(value: Any, context: Mapping[str, Any]) -> Words:
    return f"{describe(value)} has not the right form", f"it must match {context['pattern']}"


_BY_TYPE: Mapping[str, Callable[[Any, Mapping[str, Any]], Words]] = {
    "greater_than": _bound("above", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("below", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "multiple_of": _bound("a multiple of", "multiple_of"),
    "string_too_short": _too_short_text,
    "string_too_long": _too_long_text,
    "too_short": _too_short,
    "too_long": _too_long,
    "string_pattern_mismatch": _pattern,
    "finite_number": lambda value, _: (f"{describe(value)} is not finite", "write a number"),
    "int_parsing_size": lambda value, _: (f"{describe(value)} is too large", ""),
    "recursion_loop": lambda *_: ("the value contains itself", "remove the alias"),
}
