"""Classes of values: what most of the data between two steps is."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A dataclass with slots, of which the type checker sees to it that nobody changes it.

    ``dataclass(frozen=True)`` compiles seven methods for each class: for all of ours together a
    tenth of the time until the first agent starts. Here only the constructor is made so.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__  # else a dataclass works out its signature
    made = dataclass(slots=True, eq=False, repr=False, match_args=False)(cls)
    for method in (__eq__, __hash__, __repr__):
        if method.__name__ not in cls.__dict__:
            setattr(made, method.__name__, method)
    return made


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, one.name) for one in fields(self) if one.compare)


def __eq__(self: Any, other: object) -> bool:  # noqa: N807
    if other.__class__ is self.__class__:
        return _values(self) == _values(other)
    return NotImplemented


def __hash__(self: Any) -> int:  # noqa: N807
    return hash(_values(self))


def __repr__(self: Any) -> str:  # noqa: N807
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
