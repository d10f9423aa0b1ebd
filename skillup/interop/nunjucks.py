"""Nunjucks templates, by means of Jinja2, which nunjucks was modelled on.

A suite comes from anybody: templates see the data they are given and a short list of filters,
nothing of Python, and cannot multiply texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jinja2 import ChainableUndefined, Undefined
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from skillup.interop.templating import Later, Scope

_FILTERS = (
    "abs", "capitalize", "d", "default", "escape", "first", "float", "indent", "int", "join",
    "last", "length", "list", "lower", "replace", "reverse", "round", "safe", "sort", "string",
    "title", "trim", "upper",
)  # fmt: skip
_LONGEST = 1_000_000


class _Names(Mapping[str, Any]):
    """A mapping whose values are made when they are asked for."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope.variables)

    def __len__(self) -> int:
        return len(self._scope.variables)


class _VarNames(_Names):
    """``vars.name``"""

    def __getitem__(self, name: str) -> Any:
        return self._scope.lookup(name, [])

    def __contains__(self, name: object) -> bool:
        return name in self._scope.variables


class _EnvNames(_Names):
    """``env.NAME``: never read while importing, a value could be a secret."""

    def __getitem__(self, name: str) -> Any:
        return self._scope.later(name, f"{{{{ env.{name} }}}}")

    def __contains__(self, name: object) -> bool:
        return True


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*", "**", "%"])

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            return obj[attribute] if attribute in obj else self.undefined(name=attribute)
        if attribute == "length" and isinstance(obj, str | list):
            return len(obj)
        if _is_loop(obj):
            return super().getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping):
            return obj[argument] if argument in obj else self.undefined(name=str(argument))
        if isinstance(obj, str | list) and isinstance(argument, int | slice):
            try:
                return obj[argument]
            except IndexError:
                return self.undefined(name=str(argument))
        return self.getattr(obj, str(argument))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**" or not numbers:
            raise SecurityError(f"`{operator}` is not allowed here")
        return super().call_binop(context, operator, left, right)


def _is_loop(obj: Any) -> bool:
    from jinja2.runtime import LoopContext

    return isinstance(obj, LoopContext)


def render(text: str, scope: Scope) -> str:
    """The template `text` with the names of `scope`. Raises what Jinja2 and its filters raise."""
    made = _environment(scope)
    names = find_undeclared_variables(made.parse(text))
    result = ""
    for piece in made.from_string(text).generate({n: _value(n, scope, made) for n in names}):
        result += piece
        if len(result) > _LONGEST:
            raise SecurityError(f"it becomes longer than {_LONGEST} characters")
    return result


def _environment(scope: Scope) -> _Environment:
    class Missing(ChainableUndefined):
        def __str__(self) -> str:
            scope.missing(self._undefined_name or "?")
            return ""

    made = _Environment(undefined=Missing, keep_trailing_newline=True, autoescape=False)
    made.globals.clear()
    made.filters = {name: made.filters[name] for name in _FILTERS}
    made.filters["dump"] = _dump
    made.filters["default"] = made.filters["d"] = _default(scope)
    made.filters["length"] = _length
    return made


def _dump(value: Any, indent: int | None = None) -> str:
    plain = str(value) if isinstance(value, Later) else value
    return json.dumps(plain, ensure_ascii=False, indent=indent, default=str)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _default(scope: Scope) -> Callable[..., Any]:
    def default(value: Any, otherwise: Any = "", falsy: bool = False) -> Any:
        if isinstance(value, Later):
            return scope.later(value.name, value.original, str(otherwise))
        if value is None or isinstance(value, Undefined) or (falsy and not value):
            return otherwise
        return value

    return default


def _value(name: str, scope: Scope, made: _Environment) -> Any:
    """What a name means at the top of a template."""
    if name in scope.captured:
        return scope.later(name, f"{{{{ {name} }}}}")
    if name in scope.variables:
        return scope.lookup(name, [])
    if name in scope.constants:
        return scope.constants[name]
    if name == "vars":
        return _VarNames(scope)
    if name == "env":
        return _EnvNames(scope)
    if name in ("var", "secret"):
        return lambda key: scope.later(str(key), f"{{{{{name}('{key}')}}}}")
    return made.undefined(name=name)
