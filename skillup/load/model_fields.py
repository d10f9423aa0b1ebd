"""Following a validation error's location through pydantic models, to know what was expected there.

A location names fields by alias, list items by index, dictionary values by key, and, where a union
was tried, the branch by a label (``dict[str,Price]``).
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

Loc = tuple[str | int, ...]
_UNIONS = (Union, types.UnionType)


@dataclass(frozen=True, slots=True)
class Walk:
    """The annotations along a location; ``annotations[n]`` is what stands at ``loc[:n]``.

    None stands for what could not be followed; `labels` are the indexes of union labels.
    """

    annotations: tuple[Any, ...]
    labels: tuple[int, ...]

    def model(self, depth: int) -> type[BaseModel] | None:
        """The model at ``loc[:depth]``, if it is one."""
        found = _bare(self.annotations[depth])
        return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def walk(model: type[BaseModel] | None, loc: Loc) -> Walk:
    """Follow `loc` from `model`."""
    annotations: list[Any] = [model]
    labels = []
    for index, part in enumerate(loc):
        here = _bare(annotations[-1])
        if get_origin(here) in _UNIONS:
            labels.append(index)
            annotations.append(_branch(here, str(part)))
        else:
            annotations.append(_inside(here, part))
    return Walk(tuple(annotations), tuple(labels))


def model_named(title: str) -> type[BaseModel] | None:
    """The model class that a ValidationError with this title comes from, if there is just one."""
    found = {cls for cls in _subclasses(BaseModel) if cls.__name__ == title}
    return found.pop() if len(found) == 1 else None


@cache
def keys_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Every key that `model` reads, as it is spelled in files."""
    keys: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        if isinstance(alias, AliasChoices):
            keys.update({choice: field for choice in alias.choices if isinstance(choice, str)})
        else:
            keys[alias if isinstance(alias, str) else name] = field
    return keys


def field_at(model: type[BaseModel], key: str) -> FieldInfo | None:
    """The field that `key` names, by alias or by name."""
    return keys_of(model).get(key) or model.model_fields.get(key)


def child_models(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The keys of `model` whose values are models themselves."""
    for key, field in keys_of(model).items():
        child = _bare(field.annotation)
        if isinstance(child, type) and issubclass(child, BaseModel):
            yield key, child


def allowed_values(annotation: Any) -> list[str]:
    """The values of a Literal, as they are written; nothing for any other annotation."""
    bare = _bare(annotation)
    return [str(value) for value in get_args(bare)] if get_origin(bare) is Literal else []


def _subclasses(cls: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _bare(annotation: Any) -> Any:
    """`annotation` without Annotated, and without the None of Optional."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in _UNIONS:
        branches = [branch for branch in get_args(annotation) if branch is not type(None)]
        if len(branches) == 1:
            return _bare(branches[0])
    return annotation


def _inside(annotation: Any, part: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = field_at(annotation, str(part))
        return None if field is None else field.annotation
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not isinstance(origin, type) or not arguments:
        return None
    if issubclass(origin, dict):
        return arguments[-1]
    return arguments[0] if issubclass(origin, Sequence | set | frozenset) else None


def _branch(union: Any, label: str) -> Any:
    """The branch of `union` that pydantic calls `label`."""
    for branch in get_args(union):
        bare = _bare(branch)
        origin = get_origin(bare)
        name = (origin or bare).__name__ if isinstance(origin or bare, type) else ""
        if name and (label == name or label.startswith(f"{name}[")):
            return branch
        if name and label.startswith("function-") and name in label:
            return branch
    return None


# What somebody may have meant who wrote a name that does not exist.

# Beyond this, a comparison costs more than a guess is worth.
_LONGEST = 80
_SIMILAR_ENOUGH = 0.7


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`; None if none is like it.

    Case, hyphens and blanks do not count: ``Max-Turns`` means ``max_turns``. A first word may stand
    for the only name that begins with it: ``timeout`` for ``timeout_seconds``.
    """
    if len(name) > _LONGEST:
        return None
    by_spelling: dict[str, str] = {}
    for candidate in known:
        by_spelling.setdefault(_plain(candidate), candidate)
    wanted = _plain(name)
    if wanted in by_spelling:
        return by_spelling[wanted]
    longer = [name for name in by_spelling if name.startswith(f"{wanted}_")]
    if len(longer) == 1:
        return by_spelling[longer[0]]
    from difflib import get_close_matches

    close = get_close_matches(wanted, by_spelling, n=1, cutoff=_SIMILAR_ENOUGH)
    return by_spelling[close[0]] if close else None


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")
