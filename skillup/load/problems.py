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


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`; None if none is like it.

    Case, hyphens and blanks do not count: ``Max-Turns`` means ``max_turns``. A first word may stand
    for the only name that begins with it: ``timeout`` for ``timeout_seconds``.
    """
    if len(name) > 80:  # a comparison costs more than a guess is worth
        return None

    def plain(text: str) -> str:
        return text.casefold().replace("-", "_").replace(" ", "_")

    by_spelling = {plain(candidate): candidate for candidate in reversed(list(known))}
    longer = [one for one in by_spelling if one.startswith(f"{plain(name)}_")]
    if plain(name) not in by_spelling and len(longer) == 1:
        return by_spelling[longer[0]]
    close = get_close_matches(plain(name), by_spelling, n=1, cutoff=0.7)
    return by_spelling[close[0]] if close else None


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


def kinds_of(annotation: Any) -> Iterator[Any]:
    """What an annotation allows, without Annotated and unions."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from kinds_of(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for branch in get_args(annotation):
            yield from kinds_of(branch)
    else:
        yield annotation


def _models(annotation: Any) -> list[type[BaseModel]]:
    kinds = kinds_of(annotation)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """The model at `loc`, whose parts are keys, indexes, and labels of unions' branches."""
    here: list[Any] = [model]
    for part in loc:
        inner = []
        for kind in (kind for annotation in here for kind in kinds_of(annotation)):
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

    kind: str
    input: Any
    context: Mapping[str, Any]
    loc: Loc
    path: Loc
    """The part of `loc` that was written in the file, and below it a key that is missing."""
    on_key: bool
    labels: tuple[int, ...]
    """Indexes in `loc` of what is not in the file: branches of unions, levels left out."""
    owner: type[BaseModel] | None
    """The model that has, or lacks, the last key of `loc`."""

    @property
    def key(self) -> str:
        return str(self.loc[-1]) if self.loc else ""

    @property
    def guess(self) -> str | None:
        return near_miss(self.key, keys_of(self.owner)) if self.owner else None


_MOST_PROBLEMS = 200


def problems_from(
    error: ValidationError, document: Document, model: type[BaseModel]
) -> list[Problem]:
    """The problems behind `error`, in the order of the file; what was validated is its data."""
    details = error.errors(include_url=False)
    found = _one_branch_each([_read(one, document.data, model) for one in details])
    misspelled = {
        (one.path[:-1], id(keys_of(one.owner)[one.guess]))
        for one in found
        if one.kind == "extra_forbidden" and one.owner and one.guess
    }
    problems: dict[Problem, None] = {}
    for one in found:
        field = keys_of(one.owner).get(one.key) if one.owner else None
        if one.kind == "missing" and (one.path[:-1], id(field)) in misspelled:
            continue  # it was only misspelled: one mistake, one message
        path = one.path[:-1] if one.kind == "missing" else one.path
        value: Any = document.data
        for part in path:
            value = value[part]
        # A mapping's own first line says more about it than the first key inside.
        on_key = one.on_key or (isinstance(value, dict | list) and bool(path))
        place = document.locate(path, key=on_key)
        problems[document.problem(one.path, *_words(one, model, field), at=place)] = None
    listed = sorted(problems, key=lambda problem: (problem.line, problem.column))
    if len(listed) > _MOST_PROBLEMS:
        rest = f"there are more problems in this file ({len(listed)} in all)"
        listed[_MOST_PROBLEMS:] = [document.problem((), rest)]
    return listed


def _read(details: Mapping[str, Any], data: Any, model: type[BaseModel]) -> _Error:
    loc: Loc = tuple(details["loc"])
    kind = details["type"]
    on_key = kind in ("extra_forbidden", "invalid_key") or loc[-1:] == ("[key]",)
    loc = loc[:-1] if loc[-1:] == ("[key]",) else loc
    path: list[Any] = []
    labels = []
    for index, part in enumerate(loc):
        is_there = (isinstance(data, dict) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        )
        if is_there:
            data = data[part]
        if is_there or (kind == "missing" and index == len(loc) - 1):
            path.append(part)
        else:
            labels.append(index)
    context = details.get("ctx") or {}
    owner = _model_at(model, loc[:-1]) if loc else None
    return _Error(kind, details["input"], context, loc, tuple(path), on_key, tuple(labels), owner)


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
        def unlikely(errors: list[_Error], depth: int = depth) -> tuple[bool, int, int]:
            other_kind = [one for one in errors if one.kind in _EXPECTED]
            return any(len(e.loc) == depth for e in other_kind), len(errors), len(other_kind)

        kept += _one_branch_each(min(branches.values(), key=unlikely), depth)
    return kept


# Pydantic's error types in plain words: what is wrong, and what would be right.

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


def _shown(value: Any) -> str:
    """`value` as a message names it: a kind for lists and mappings, the value itself for others."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return f"`{text}`" if len(text) <= 40 else f"`{text[:39]}…`"


def _words(one: _Error, model: type[BaseModel], field: FieldInfo | None) -> tuple[str, str]:
    if one.kind == "extra_forbidden":
        return _unknown_key(one, model)
    if one.kind == "missing":
        about = field.description if field else None
        fix = f"add it ({about[:1].lower()}{about[1:].rstrip('.')})" if about else "add it"
        return f"`{one.key}` is missing", fix
    value = _shown(one.input)
    if one.on_key and not isinstance(one.input, str):
        return f"the key {value} is not a text", f'put it in quotes: "{one.input}"'
    if one.kind in _EXPECTED:
        return _wrong_kind(one.input, _EXPECTED[one.kind])
    if one.kind == "value_error":
        message, _, fix = str(one.context.get("error", "")).partition(" || ")
        return message, fix
    if one.kind == "literal_error":
        expected = str(one.context["expected"])
        allowed = re.findall(r"'([^']*)'", expected) or [expected]
        guess = near_miss(one.input, allowed) if isinstance(one.input, str) else None
        fix = "allowed: " + ", ".join(f"`{name}`" for name in allowed)
        if guess:
            fix = f"did you mean `{guess}`? {fix if len(allowed) <= _MOST_LISTED else ''}".rstrip()
        return f"{value} is not allowed here", f"write `{allowed[0]}`" if not allowed[1:] else fix
    message, fix = _WORDS.get(one.kind, (f"{value} is not right here ({one.kind})", ""))
    message, fix = message.format(value=value), fix.format(**one.context) if fix else ""
    return f"the key {message}" if one.on_key else message, fix


def _wrong_kind(value: Any, expected: str) -> tuple[str, str]:
    if value is None:
        return "nothing is written here", f"write {expected}, or remove the key"
    fix = f"write {expected}"
    if expected == "true or false":
        words = {"yes": "true", "on": "true", "no": "false", "off": "false"}
        fix = f"write `{words.get(str(value).casefold(), 'true` or `false')}`"
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
    return f"{_shown(value)} is not {expected}", fix


def _unknown_key(one: _Error, model: type[BaseModel]) -> tuple[str, str]:
    key, owner = one.key, one.owner
    message = f"unknown key `{key}`" if len(key) <= 60 else f"unknown key `{key[:59]}…`"
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
    if one.guess is not None:
        return message, f"did you mean `{one.guess}`?"
    if len(keys_of(owner)) <= _MOST_LISTED:
        return message, "known here: " + ", ".join(f"`{name}`" for name in keys_of(owner))
    return message, "`skillup schema` lists the keys that are known here"
