"""From pydantic's validation errors to problems with a place, a field and a way out."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from skillup.errors import Problem
from skillup.load.yaml_reader import Document, Loc, field_name


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`, but for case, hyphens and blanks, if any is."""

    def plain(text: str) -> str:
        return text[:80].casefold().replace("-", "_").replace(" ", "_")

    by_spelling = {plain(candidate): candidate for candidate in reversed(list(known))}
    # The first words may stand for a whole name.
    longer = [spelling for spelling in by_spelling if spelling.startswith(f"{plain(name)}_")]
    close = get_close_matches(plain(name), by_spelling, n=1, cutoff=0.7)
    found = longer if len(longer) == 1 and plain(name) not in by_spelling else close
    return by_spelling[found[0]] if found else None


@cache
def keys_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    keys: dict[str, FieldInfo] = {}
    model.model_rebuild()  # those that name themselves are not whole before
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        spellings = alias.choices if isinstance(alias, AliasChoices) else [alias or name]
        keys.update({str(spelling): field for spelling in spellings})
    return keys


def _kinds(annotation: Any) -> Iterator[Any]:
    """What an annotation allows, without Annotated and unions."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, Union, types.UnionType):
        for branch in inner[:1] if origin is Annotated else inner:
            yield from _kinds(branch)
    else:
        yield annotation


def _models(annotation: Any) -> list[type[BaseModel]]:
    kinds = _kinds(annotation)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    here: list[Any] = [model]
    for part in loc:
        kinds = [kind for annotation in here for kind in _kinds(annotation)]
        inner = [get_args(kind)[-1] for kind in kinds if get_origin(kind) in (dict, list)]
        fields = [keys_of(model).get(str(part)) for one in here for model in _models(one)]
        here = inner + [field.annotation for field in fields if field] or here
    return next((model for annotation in here for model in _models(annotation)), None)


_MOST_LISTED = 12  # Beyond this, allowed values (or keys) are not listed


def problems_from(
    error: ValidationError, document: Document, model: type[BaseModel]
) -> list[Problem]:
    """The problems behind `error`, in the order of the file; what was validated is its data."""
    problems: dict[Problem, None] = {}
    misspelled = set()
    for one in sorted(error.errors(include_url=False), key=lambda one: one["type"] == "missing"):
        loc: Loc = tuple(part for part in one["loc"] if part != "[key]")
        path: Loc = ()
        value: Any = document.data
        for part in loc:  # but for the levels that a short form leaves out
            is_key = isinstance(value, dict) and part in value
            if is_key or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
                path, value = (*path, part), value[part]
        owner = _model_at(model, loc[:-1])
        keys, key = keys_of(owner) if owner else {}, str(loc[-1]) if loc else ""
        on_key = one["type"] in ("extra_forbidden", "invalid_key") or one["loc"][-1:] == ("[key]",)
        # A mapping's own first line says more about it than the first key inside.
        at_key = on_key or (isinstance(value, dict | list) and bool(path))
        if one["type"] == "extra_forbidden":
            guess = near_miss(key, keys)
            misspelled.add((path[:-1], id(keys[guess]) if guess else None))
            message, fix = _unknown_key(one, path, keys, guess)
        elif one["type"] == "missing":
            if (path, id(keys.get(key))) in misspelled:
                continue  # one mistake, one message
            about = (keys[key].description if key in keys else None) or "it is needed"
            message = f"`{key}` is missing"
            fix = f"add it ({about[:1].lower()}{about[1:].rstrip('.')})"
            path = (*path, key)
        else:
            message, fix = _words(one, on_key)
        problems[document.problem(path, message, fix, key=at_key)] = None
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


# Pydantic's error types in plain words: what is wrong, and what would be right.

_KINDS: Mapping[str, tuple[str, str]] = {  # by how the error type begins
    "string": ("a text", "write a text"),
    "int": ("a whole number", "write a number without quotes or a decimal point, such as 3"),
    "float": ("a number", "write a number without quotes, such as 3"),
    "bool": ("true or false", "write `true` or `false`"),
    "list": ("a list", "begin each item with `- ` on a line of its own, or write [one, other]"),
    "dict": ("a mapping", "write `key: value` lines below it"),
    "model": ("a mapping", "write `key: value` lines below it"),
}
_RANGES: Mapping[str, tuple[str, str]] = {
    "greater_than": ("{value} is out of range", "it must be above {gt:g}"),
    "greater_than_equal": ("{value} is out of range", "it must be at least {ge:g}"),
    "less_than": ("{value} is out of range", "it must be below {lt:g}"),
    "less_than_equal": ("{value} is out of range", "it must be at most {le:.12g}"),
    "string_too_short": ("the text is empty", "write a text, or remove the key"),
    "too_short": ("it is empty", "at least {min_length} item must be there"),
    "string_pattern_mismatch": ("{value} has not the right form", "it must match {pattern}"),
}


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return f"`{text}`" if len(text) <= 40 else f"`{text[:39]}…`"


def _words(one: Mapping[str, Any], on_key: bool) -> tuple[str, str]:
    kind, value, context = one["type"], _shown(one["input"]), one.get("ctx") or {}
    if on_key and not isinstance(one["input"], str):
        return f"the key {value} is not a text", f'put it in quotes: "{one["input"]}"'
    if kind == "value_error":
        message, _, fix = str(context.get("error", "")).partition(" || ")
        return message, fix
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        guess = near_miss(str(one["input"]), allowed)
        every = "allowed: " + ", ".join(f"`{name}`" for name in allowed)
        fix = f"did you mean `{guess}`? " if guess else ""
        fix += every if not guess or len(allowed) <= _MOST_LISTED else ""
        return f"{value} is not allowed here", fix.rstrip()
    if kind in _RANGES:
        message, fix = (text.format(value=value, **context) for text in _RANGES[kind])
        return f"the key {message}" if on_key else message, fix
    expected, fix = _KINDS.get(kind.partition("_")[0], ("right here", ""))
    if one["input"] is None:
        return "nothing is written here", f"write {expected}, or remove the key"
    return f"{value} is not {expected}", fix


def _unknown_key(
    one: Mapping[str, Any], path: Loc, keys: Mapping[str, FieldInfo], guess: str | None
) -> tuple[str, str]:
    key = str(path[-1])
    message = f"unknown key {_shown(key)}"
    if one["input"] is None and not key.isidentifier():
        # `{content: Great, thanks.}` is a mapping with the keys `content` and `thanks.`
        return message, "within braces a comma begins a new key: put the text in quotes"
    for name, field in keys.items():
        if any(key in keys_of(child) for child in _models(field.annotation)):
            inside = field_name((*path[:-1], name))
            return message, f"it belongs to `{inside}`: check the indentation"
    if guess is not None:
        return message, f"did you mean `{guess}`?"
    if 0 < len(keys) <= _MOST_LISTED:
        return message, "known here: " + ", ".join(f"`{name}`" for name in keys)
    return message, "`skillup schema` lists the keys that are known here"
