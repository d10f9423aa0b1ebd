"""From pydantic's validation errors to problems with a place, a field and a way out."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from skillup.errors import Problem
from skillup.load.yaml_reader import Document, Loc, field_name

# What somebody may have meant who wrote a name that does not exist.


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`; None if none is like it.

    Case, hyphens and blanks do not count: ``Max-Turns`` means ``max_turns``. A first word may stand
    for the only name that begins with it: ``timeout`` for ``timeout_seconds``.
    """
    if len(name) > 80:  # a comparison costs more than a guess is worth
        return None
    by_spelling = {_plain(candidate): candidate for candidate in reversed(list(known))}
    plain = _plain(name)
    longer = [name for name in by_spelling if name.startswith(f"{plain}_")]
    if plain not in by_spelling and len(longer) == 1:
        return by_spelling[longer[0]]
    close = get_close_matches(plain, by_spelling, n=1, cutoff=0.7)
    return by_spelling[close[0]] if close else None


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


# Where in the models an error is.


@cache
def keys_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Every key that `model` reads, as it is spelled in files."""
    keys: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        spellings = alias.choices if isinstance(alias, AliasChoices) else [alias or name]
        keys.update({str(spelling): field for spelling in spellings})
    return keys


def _kinds(annotation: Any) -> Iterator[Any]:
    """What an annotation allows, without Annotated and unions."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for branch in get_args(annotation):
            yield from _kinds(branch)
    else:
        yield annotation


def _models(annotation: Any) -> list[type[BaseModel]]:
    kinds = _kinds(annotation)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """The model at `loc`, whose parts are keys, indexes, and labels of unions' branches."""
    here: list[Any] = [model]
    for part in loc:
        inner = []
        for kind in (kind for annotation in here for kind in _kinds(annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                field = keys_of(kind).get(str(part)) or kind.model_fields.get(str(part))
                inner += [field.annotation] if field else []
            elif get_origin(kind) in (dict, list):
                inner += [get_args(kind)[-1]]
        here = inner or here
    return next((model for annotation in here for model in _models(annotation)), None)


@dataclass(frozen=True, slots=True)
class _Error:
    """One of pydantic's errors, and where it is in the model and in the file."""

    type: str
    input: Any
    context: Mapping[str, Any]
    loc: Loc
    path: Loc
    """The part of `loc` that was written in the file, and below it a key that is missing."""
    on_key: bool
    labels: tuple[int, ...]
    """Indexes in `loc` of what is not in the file: branches of unions, levels left out."""


_MOST_PROBLEMS = 200


def problems_from(
    error: ValidationError, document: Document, model: type[BaseModel]
) -> list[Problem]:
    """The problems behind `error`, in the order of the file; what was validated is its data."""
    found = _one_branch_each([_read(details, document.data) for details in _details(error)])
    misspelled = {
        (one.path[:-1], id(meant))
        for one in found
        if one.type == "extra_forbidden" and (meant := _meant(model, one)) is not None
    }
    problems: dict[Problem, None] = {}
    for one in found:
        owner = _model_at(model, one.loc[:-1])
        field = keys_of(owner).get(str(one.loc[-1])) if owner and one.loc else None
        if one.type == "missing" and (one.path[:-1], id(field)) in misspelled:
            continue  # it was only misspelled: one mistake, one message
        message, fix = _words(one, model, field)
        place = _place(one, document)
        problems[document.problem(one.path, message, fix, at=place)] = None
    listed = sorted(problems, key=lambda problem: (problem.line, problem.column))
    if len(listed) > _MOST_PROBLEMS:
        rest = f"there are more problems in this file ({len(listed)} in all)"
        listed[_MOST_PROBLEMS:] = [document.problem((), rest)]
    return listed


def _details(error: ValidationError) -> Iterable[Mapping[str, Any]]:
    return error.errors(include_url=False)


def _meant(model: type[BaseModel], one: _Error) -> FieldInfo | None:
    owner = _model_at(model, one.loc[:-1])
    guess = near_miss(str(one.loc[-1]), keys_of(owner)) if owner else None
    return keys_of(owner)[guess] if owner and guess else None


def _read(details: Mapping[str, Any], data: Any) -> _Error:
    loc: Loc = tuple(details["loc"])
    kind = details["type"]
    on_key = kind in ("extra_forbidden", "invalid_key") or loc[-1:] == ("[key]",)
    loc = loc[:-1] if loc[-1:] == ("[key]",) else loc
    path: list[Any] = []
    labels = []
    for index, part in enumerate(loc):
        if kind == "missing" and index == len(loc) - 1:
            path.append(part)
        elif (isinstance(data, dict) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        ):
            path.append(part)
            data = data[part]  # type: ignore[index]
        else:
            labels.append(index)
    context = details.get("ctx") or {}
    return _Error(kind, details["input"], context, loc, tuple(path), on_key, tuple(labels))


def _place(one: _Error, document: Document) -> tuple[int, int]:
    path = one.path[:-1] if one.type == "missing" else one.path
    value: Any = document.data
    for part in path:
        value = value[part]
    # A mapping's own first line says more about it than the first key inside.
    on_key = one.on_key or (isinstance(value, dict | list) and bool(path))
    return document.locate(path, key=on_key)


def _one_branch_each(found: list[_Error], after: int = 0) -> list[_Error]:
    """Of each union that did not fit, one branch's errors: those of the branch that was meant."""
    kept: list[_Error] = []
    unions: dict[Loc, dict[Any, list[_Error]]] = {}
    for one in found:
        label = next((index for index in one.labels if index >= after), None)
        if label is None:
            kept.append(one)
        else:
            unions.setdefault(one.loc[:label], {}).setdefault(one.loc[label], []).append(one)
    for loc, branches in unions.items():
        depth = len(loc) + 1
        # A branch that expects another kind of value is the last that was meant.
        meant = min(
            branches.values(),
            key=lambda errors: (
                any(len(one.loc) == depth and one.type in _EXPECTED for one in errors),
                len(errors),
                sum(one.type in _EXPECTED for one in errors),
            ),
        )
        kept += _one_branch_each(meant, depth)
    return kept


# Pydantic's error types in plain words: what is wrong, and what would be right.

_SHOWN_LENGTH = 40
_MOST_LISTED = 12
"""Beyond this, allowed values (or keys) are not listed."""
_EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(("string_type",), "a text"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "iterable_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "a mapping"),
    "model_attributes_type": "a mapping",
}
"""The error types that mean a value of the wrong kind, and the kind that was expected."""
_WORDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("{value} is out of range", "it must be above {gt:g}"),
    "greater_than_equal": ("{value} is out of range", "it must be at least {ge:g}"),
    "less_than": ("{value} is out of range", "it must be below {lt:g}"),
    "less_than_equal": ("{value} is out of range", "it must be at most {le:.12g}"),
    "string_too_short": ("the text is empty", "write a text, or remove the key"),
    "too_short": ("it is empty", "at least {min_length} item must be there"),
    "string_pattern_mismatch": ("{value} has not the right form", "it must match {pattern}"),
    "finite_number": ("{value} is not finite", "write a number"),
    "int_parsing_size": ("{value} is too large", ""),
}


def describe(value: Any) -> str:
    """`value` as a message names it: a kind for lists and mappings, the value itself for others."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return f"`{text}`" if len(text) <= _SHOWN_LENGTH else f"`{text[: _SHOWN_LENGTH - 1]}…`"


def _words(one: _Error, model: type[BaseModel], field: FieldInfo | None) -> tuple[str, str]:
    key = str(one.loc[-1]) if one.loc else ""
    if one.type == "extra_forbidden":
        return _unknown_key(one, key, model)
    if one.type == "missing":
        about = field.description if field else None
        fix = f"add it ({about[:1].lower()}{about[1:].rstrip('.')})" if about else "add it"
        return f"`{key}` is missing", fix
    if one.on_key and not isinstance(one.input, str):
        return f"the key {describe(one.input)} is not a text", f'put it in quotes: "{one.input}"'
    value = describe(one.input)
    if one.type in _EXPECTED:
        return _wrong_kind(one.input, value, _EXPECTED[one.type])
    if one.type == "value_error":
        message, _, fix = str(one.context.get("error", "")).partition(" || ")
        return message, fix
    if one.type == "literal_error":
        allowed = re.findall(r"'([^']*)'", str(one.context["expected"]))
        guess = near_miss(one.input, allowed) if isinstance(one.input, str) else None
        listed = "allowed: " + ", ".join(f"`{name}`" for name in allowed)
        listed = "" if guess and len(allowed) > _MOST_LISTED else listed
        fix = f"did you mean `{guess}`? {listed}".rstrip() if guess else listed
        fix = f"write `{allowed[0]}`" if len(allowed) == 1 else fix
        return f"{value} is not allowed here", fix
    message, fix = _WORDS.get(one.type, (f"{value} is not right here ({one.type})", ""))
    message, fix = message.format(value=value), fix.format(**one.context) if fix else ""
    return f"the key {message}" if one.on_key else message, fix


def _wrong_kind(value: Any, shown: str, expected: str) -> tuple[str, str]:
    if value is None:
        return "nothing is written here", f"write {expected}, or remove the key"
    fix = f"write {expected}"
    if expected == "true or false":
        fix = "write `true` or `false`"
        words = {"yes": "true", "on": "true", "no": "false", "off": "false"}
        fix = f"write `{words[value.casefold()]}`" if str(value).casefold() in words else fix
    elif isinstance(value, float):
        fix = "write a number without a decimal point"
    elif "number" in expected:
        try:
            fix = f"write {float(value):g} without quotes"
        except (TypeError, ValueError):
            fix = "write a number, such as 3"
    elif expected == "a list":
        fix = "begin each item with `- ` on a line of its own, or write [one, other]"
    elif expected == "a mapping":
        fix = "write `key: value` lines below it"
    return f"{shown} is not {expected}", fix


def _unknown_key(one: _Error, key: str, model: type[BaseModel]) -> tuple[str, str]:
    message = f"unknown key `{key}`" if len(key) <= 60 else f"unknown key `{key[:59]}…`"
    owner = _model_at(model, one.loc[:-1])
    if owner is None:
        return message, "remove it"
    if one.input is None and not key.isidentifier():
        # `{content: Great, thanks.}` is a mapping with the keys `content` and `thanks.`
        return message, "within braces a comma begins a new key: put the text in quotes"
    for name, field in keys_of(owner).items():
        if any(key in keys_of(child) for child in _models(field.annotation)):
            inside = field_name((*one.path[:-1], name))
            return message, f"it belongs to `{inside}`: check the indentation"
    for depth in reversed(range(len(one.path) - 1)):
        outer = _model_at(model, one.path[:depth])
        if outer is not None and outer is not owner and key in keys_of(outer):
            where = f"`{field_name(one.path[:depth])}`" if depth else "the top level"
            return message, f"it belongs to {where}: check the indentation"
    keys = keys_of(owner)
    guess = near_miss(key, keys)
    if guess is not None:
        return message, f"did you mean `{guess}`?"
    if len(keys) <= _MOST_LISTED:
        return message, "known here: " + ", ".join(f"`{name}`" for name in keys)
    return message, "`skillup schema` lists the keys that are known here"
