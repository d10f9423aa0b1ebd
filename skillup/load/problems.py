"""From pydantic's validation errors to problems with a place, a field and a way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from skillup.errors import Problem
from skillup.load.model_fields import (
    Loc,
    Walk,
    allowed_values,
    child_models,
    field_at,
    keys_of,
    model_named,
    near_miss,
    walk,
)
from skillup.load.yaml_reader import Document, field_name

# Pydantic's error types in plain words: what is wrong, and what would be right.

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


_MOST_PROBLEMS = 200
_MOST_ERRORS = 1000
_KEYS_LISTED = 12
_KEY_MARK = "[key]"


@dataclass(slots=True)
class _Found:
    """One of pydantic's errors, and where it is in the model and in the file."""

    details: Mapping[str, Any]
    loc: Loc
    walk: Walk
    path: tuple[Any, ...]
    """The part of `loc` that was written in the file, and below it a key that is missing."""
    on_key: bool = False
    kinds: tuple[str, ...] = ()
    """For a union none of whose branches fits: what each of them expected."""
    place: tuple[int, int] = (0, 0)

    @property
    def type(self) -> str:
        return str(self.details["type"])


def problems_from(
    error: ValidationError,
    document: Document,
    *,
    root: Loc = (),
    model: type[BaseModel] | None = None,
) -> list[Problem]:
    """The problems behind `error`, in the order of the file, each once.

    `root` is where in `document` the validated data stands. `model` is needed only where several
    models have the name that the error tells. Beyond 200 problems, the rest is only counted.
    """
    model = model or model_named(error.title)
    data: Any = document.data
    for part in root:
        data = data[part]
    errors = error.errors(include_url=False)
    found = [_find(dict(details), model, data) for details in errors[:_MOST_ERRORS]]
    found = _without_repeats(_one_branch_each(found))
    for one in found:
        one.place = _place(one, document, root, data)
    found.sort(key=lambda one: one.place)
    problems: dict[Problem, None] = {}
    for one in found:
        if len(problems) == _MOST_PROBLEMS:
            rest = f"there are more problems in this file ({len(errors)} in all)"
            problems[Problem(document.path, *one.place, "", rest)] = None
            break
        message, fix = _words(one)
        field = field_name((*root, *one.path))
        problems[Problem(document.path, *one.place, field, message, fix)] = None
    return list(problems)


def _find(details: Mapping[str, Any], model: type[BaseModel] | None, data: Any) -> _Found:
    loc: Loc = tuple(details["loc"])
    on_key = details["type"] in ("extra_forbidden", "invalid_key")
    if loc and loc[-1] == _KEY_MARK:
        loc, on_key = loc[:-1], True
    missing = details["type"] == "missing"
    path = _written(loc[:-1] if missing else loc, data)
    if missing and loc:
        path = (*path, loc[-1])
    return _Found(details, loc, walk(model, loc), path, on_key)


def _written(loc: Loc, data: Any) -> tuple[Any, ...]:
    """The parts of `loc` that lead somewhere in `data`.

    The others are labels of unions, and levels that a short spelling leaves out.
    """
    path: list[Any] = []
    for part in loc:
        if isinstance(data, dict):
            if part not in data:
                continue
        elif not (isinstance(data, list) and isinstance(part, int) and part < len(data)):
            continue
        path.append(part)
        data = data[part]
    return tuple(path)


def _place(one: _Found, document: Document, root: Loc, data: Any) -> tuple[int, int]:
    path = one.path
    if one.type == "missing":
        path = path[:-1]
    value = data
    for part in path:
        value = value[part]
    # A mapping's own first line says more about it than the first key inside.
    on_key = one.on_key or (isinstance(value, dict | list) and bool(path))
    return document.locate((*root, *path), key=on_key)


def _one_branch_each(found: Iterable[_Found], after: int = 0) -> list[_Found]:
    """Of each union that did not fit, one branch's errors: those of the branch that was meant."""
    kept: list[_Found] = []
    unions: dict[Loc, dict[Any, list[_Found]]] = {}
    for one in found:
        label = next((index for index in one.walk.labels if index >= after), None)
        if label is None:
            kept.append(one)
        else:
            branches = unions.setdefault(one.loc[:label], {})
            branches.setdefault(one.loc[label], []).append(one)
    for loc, branches in unions.items():
        depth = len(loc) + 1
        fitting = [
            errors
            for errors in branches.values()
            if not any(len(one.loc) == depth and one.type in EXPECTED for one in errors)
        ]
        if fitting:
            meant = min(fitting, key=_distance)
            kept.extend(_one_branch_each(meant, depth))
        else:
            wrong = [one for errors in branches.values() for one in errors if one.type in EXPECTED]
            wrong[0].kinds = tuple(EXPECTED[one.type] for one in wrong)
            kept.append(wrong[0])
    return kept


def _distance(errors: list[_Found]) -> tuple[int, int]:
    """How far what was written is from a branch."""
    return len(errors), sum(one.type in EXPECTED for one in errors)


def _without_repeats(found: list[_Found]) -> list[_Found]:
    """Without `missing` keys that were only misspelled: one mistake, one message."""
    misspelled: list[tuple[tuple[Any, ...], FieldInfo]] = []
    for one in found:
        model = one.walk.model(len(one.loc) - 1) if one.type == "extra_forbidden" else None
        guess = near_miss(str(one.loc[-1]), keys_of(model)) if model else None
        if model is not None and guess is not None:
            misspelled.append((one.path[:-1], keys_of(model)[guess]))

    def explained(one: _Found) -> bool:
        model = one.walk.model(len(one.loc) - 1) if one.type == "missing" else None
        field = field_at(model, str(one.loc[-1])) if model else None
        return any(place == one.path[:-1] and meant is field for place, meant in misspelled)

    return [one for one in found if not explained(one)]


def _words(one: _Found) -> tuple[str, str]:
    if one.type == "extra_forbidden":
        return _unknown_key(one)
    if one.type == "missing":
        return _missing(one)
    if one.kinds:
        return wrong_kind(one.details["input"], list(one.kinds))
    if one.on_key:
        return key_words(one.details)
    return words_for(one.details, allowed_values(one.walk.annotations[-1]))


def _missing(one: _Found) -> tuple[str, str]:
    key = str(one.loc[-1])
    model = one.walk.model(len(one.loc) - 1)
    field = field_at(model, key) if model else None
    about = field.description if field else None
    fix = f"add it ({about[:1].lower()}{about[1:].rstrip('.')})" if about else "add it"
    return f"`{key}` is missing", fix


def _unknown_key(one: _Found) -> tuple[str, str]:
    key = str(one.loc[-1])
    message = f"unknown key `{key}`" if len(key) <= 60 else f"unknown key `{key[:59]}…`"
    depth = len(one.loc) - 1
    model = one.walk.model(depth)
    if model is None:
        return message, "remove it"
    keys = keys_of(model)
    if one.details["input"] is None and not key.isidentifier():
        # `{content: Great, thanks.}` is a mapping with the keys `content` and `thanks.`
        return message, "within braces a comma begins a new key: put the text in quotes"
    elsewhere = _owner(key, one, model)
    if elsewhere is not None:
        return message, f"it belongs to {elsewhere}: check the indentation"
    guess = near_miss(key, keys)
    if guess is not None:
        return message, f"did you mean `{guess}`?"
    if len(keys) <= _KEYS_LISTED:
        return message, "known here: " + ", ".join(f"`{name}`" for name in keys)
    return message, "`skillup schema` lists the keys that are known here"


def _owner(key: str, one: _Found, model: type[BaseModel]) -> str | None:
    """Where near the place of an unknown key exactly this key is known."""
    for name, child in child_models(model):
        if key in keys_of(child):
            return f"`{field_name((*one.path[:-1], name))}`"
    for depth in range(len(one.loc) - 2, -1, -1):
        outer = one.walk.model(depth)
        if outer is not None and key in keys_of(outer):
            shown = field_name(_upto(one, depth))
            return f"`{shown}`" if shown else "the top level"
    return None


def _upto(one: _Found, depth: int) -> tuple[Any, ...]:
    """The written part of the first `depth` parts of an error's location."""
    wanted = list(one.loc[:depth])
    path: list[Any] = []
    for part in one.path:
        if part not in wanted:
            break
        wanted = wanted[wanted.index(part) + 1 :]
        path.append(part)
    return tuple(path)
