"""Classes of data: values, which nobody changes, and what changes while something goes on."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from itertools import count
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_OFTEN = 20


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A dataclass with slots, of which the type checker sees to it that nobody changes it.

    ``dataclass(frozen=True)`` compiles seven methods a class: for ours a tenth of the time until
    the first agent starts. Here only a constructor that is called often is compiled.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__  # else a dataclass works out its signature
    made = dataclass(slots=True, init=False, eq=False, repr=False, match_args=False)(cls)
    for method in (_constructor(made), __eq__, __hash__, __repr__):
        if method.__name__ not in cls.__dict__:
            setattr(made, method.__name__, method)
    return made


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """The same, which may be changed, and so has no hash."""
    made: Any = frozen(cls)
    made.__hash__ = None
    return made  # type: ignore[no-any-return]


def _constructor(cls: type[Any]) -> Any:
    times = count()

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        own: dict[str, Any] = {one.name: one for one in fields(cls)}
        placed = dict(zip(own, args, strict=False))
        made = {n: f.default_factory() for n, f in own.items() if f.default_factory is not MISSING}
        given = {**{n: f.default for n, f in own.items()}, **made, **placed, **kwargs}
        wrong = len(placed) < len(args) or placed.keys() & kwargs.keys() or len(given) > len(own)
        if not wrong and next(times) < _OFTEN and all(v is not MISSING for v in given.values()):
            for name, value in given.items():
                setattr(self, name, value)
        else:  # which says what is missing, unknown or too much, too
            own["__annotations__"] = {name: one.type for name, one in own.items()}
            alike: Any = type(cls.__name__, (), own)
            cls.__init__ = dataclass(slots=True, eq=False, repr=False)(alike).__init__
            cls.__init__(self, *args, **kwargs)

    return __init__


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
