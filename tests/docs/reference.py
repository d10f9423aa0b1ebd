"""The reference tables of the pages; ``python -m tests.docs.reference`` writes them.

A table under ``<!-- keys: MODEL … -->`` has a row for a key, or for several that belong together.
Its second column is generated from the fields' descriptions, values and defaults. Which keys a row
names, and the columns after it, are written by hand.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from skillup.schema.base import descriptions, spellings
from skillup.schema.case import Case
from skillup.schema.checks import CheckKeys
from skillup.schema.judge import JudgeScript
from skillup.schema.profile import Profile
from skillup.schema.suite import Suite
from tests.docs.blocks import PAGES, marker_of

_MOST_VALUES = 8
Key = tuple[FieldInfo, str]  # And what is said of it


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models_in(part)


def _reachable(*roots: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Every model that a file can hold, by name; `module.name` where two have the same."""
    found: list[type[BaseModel]] = [CheckKeys]
    waiting = list(roots)
    while waiting:
        model = waiting.pop()
        if model not in found:
            found.append(model)
            model.model_rebuild()
            for field in model.model_fields.values():
                waiting.extend(_models_in(field.annotation))
    names = [model.__name__ for model in found]
    return {
        name if names.count(name) == 1 else f"{model.__module__.rpartition('.')[2]}.{name}": model
        for name, model in zip(names, found, strict=True)
    }


MODELS = _reachable(Case, Suite, Profile, JudgeScript)


def keys_of(model: type[BaseModel]) -> dict[str, Key]:
    """The keys as written in YAML, by every name; those of checks count for CheckKeys only."""
    inherited = set(CheckKeys.model_fields) if model is not CheckKeys else set()
    texts, keys = descriptions(model), dict[str, Key]()
    for name, field in model.model_fields.items():
        if name not in inherited or not issubclass(model, CheckKeys):
            usual, *others = spellings(name, field)
            keys |= dict.fromkeys((usual, *others), (field, texts.get(usual, "")))
    return keys


def _values(annotation: Any) -> list[str]:
    """The texts that a field allows, if these are all that it allows besides null."""
    if typing.get_origin(annotation) is Literal:
        return [value for value in typing.get_args(annotation) if isinstance(value, str)]
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    return _values(parts[0]) if len(parts) == 1 else []


def about(key: Key) -> str:
    field, text = key[0], key[1].rstrip(".")
    values = [f"`{value}`" for value in _values(field.annotation)]
    if len(values) > 1 and len(values) <= _MOST_VALUES and not all(v in text for v in values):
        text += f" ({', '.join(values)})"
    default = field.default
    if field.is_required() and field.default is PydanticUndefined:
        text += "; required"
    elif isinstance(default, str | int | float) and default != "":
        shown = str(default).lower() if isinstance(default, bool) else f"{default}"
        text += f"; default `{shown}`"
    return text


def generated(names: list[str], models: list[str]) -> str:
    """What a row that names these keys of these models says of them.

    Nothing, where they have several descriptions: what they have in common is written by hand.
    """
    fields = [keys_of(MODELS[model]) for model in models]
    texts = {about(keys[name]) for name in names for keys in fields if name in keys}
    return texts.pop() if len(texts) == 1 else ""


def written(page: Path) -> str:
    """The page's text with its tables as the models have them."""
    lines = page.read_text("utf-8").splitlines()
    models: list[str] = []
    for number, line in enumerate(lines):
        if (marker := marker_of(line)) is not None:
            models = marker.value.split() if marker.action == "keys" else []
        elif line.startswith("|") and models:
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            names = [name.rpartition(".")[2] for name in re.findall(r"`([^`]+)`", cells[0])]
            if names and not lines[number + 1].startswith("|--"):
                cells[1] = f" {generated(names, models)} ".replace("  ", " ")
                lines[number] = f"|{'|'.join(cells)}|"
        elif line.strip() or (number and lines[number - 1].startswith("|")):
            models = []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(written(one), "utf-8")
