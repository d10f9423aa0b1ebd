"""A value of a source, where it stands, and the names that templates in it know.

Whoever reads a value through a SourceValue has used it; what nobody used is reported in the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from jinja2 import ChainableUndefined, TemplateError, Undefined
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.source import Kind, SourceFile
from skillup.load.yaml_reader import Loc
from skillup.schema.templates import escape


def as_text(value: Any) -> str:
    """A scalar as it would be written; a list or mapping as JSON; nothing as an empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return str(value)


def tidy(number: float) -> float | int:
    """A whole number as such; one that was spelled unusually (``0042``) as it counts."""
    return int(number) if number == int(number) else number + 0


@dataclass(frozen=True, eq=False)
class SourceValue:
    """One place in a source; false if nothing is there."""

    source: SourceFile
    loc: Loc
    value: Any
    scope: TemplateScope | None = None

    @classmethod
    def top(cls, source: SourceFile, scope: TemplateScope | None = None) -> SourceValue:
        """The source's whole value."""
        return cls(source, (), source.data, scope)

    def __bool__(self) -> bool:
        return self.value is not None

    def with_scope(self, scope: TemplateScope | None) -> SourceValue:
        """The same place, its templates filled in from `scope`."""
        return replace(self, scope=scope)

    def get(self, *names: str) -> SourceValue:
        """The value under the first of `names` that is there and not null; else a false one."""
        for name in names if isinstance(self.value, dict) else ():
            if name in self.value:
                if self.value[name] is not None:
                    return self._child(name)
                self.source.used.add((*self.loc, name))  # null: there is nothing to lose
        return replace(self, value=None)

    def items(self) -> Iterator[tuple[str, SourceValue]]:
        """The entries of a mapping; none of anything else."""
        for key in self.value if isinstance(self.value, dict) else ():
            yield str(key), self._child(key)

    def elements(self) -> list[SourceValue]:
        """The items of a list; a single value is a list of one."""
        if isinstance(self.value, list):
            if not self.value:
                self.use()
            return [self._child(index) for index in range(len(self.value))]
        return [self] if self else []

    def _child(self, part: Any) -> SourceValue:
        return replace(self, loc=(*self.loc, part), value=self.value[part])

    def use(self) -> None:
        """Everything in it has been converted."""
        if self:
            self.source.used.add(self.loc)

    def raw(self) -> Any:
        """The value, templates filled in as far as they can be now; see :meth:`finish`."""
        self.use()
        return self.value if self.scope is None else self.scope.fill(self.value, self)

    def finish(self, value: Any, *, live: bool = False) -> Any:
        """A value made of raw ones, for a place where names have no meaning.

        With `live`, for a message that is sent: ``<<name>>`` means something there.
        """
        if self.scope is None:
            return escape(value) if live else value
        return self.scope.finish(value, self, live=live)

    def take(self) -> Any:
        """The value, templates filled in, for a place where names have no meaning."""
        return self.finish(self.raw())

    def text(self) -> str:
        """The value as text, for such a place."""
        return as_text(self.take())

    def message(self) -> str:
        """The value as the text of a message that is sent."""
        return str(self.finish(as_text(self.raw()), live=True))

    def texts(self) -> list[str]:
        """The value as a list of texts."""
        value = self.take()
        listed = value if isinstance(value, list) else [] if value is None else [value]
        return [as_text(item) for item in listed]

    def number(self) -> float | int | None:
        """The value as a number; None (and a note) if it is none."""
        value = self.take()
        if isinstance(value, str):
            try:
                value = float(value) if "." in value else int(value)
            except ValueError:
                value = "?"
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self.lost("not a number")
            return None
        return tidy(value)

    def is_true(self) -> bool:
        """Whether it is a plain ``true``."""
        return self.take() is True

    def drop(self, what: str, instead: str = "left out") -> None:
        """Report that this is lost, with everything in it."""
        self.use()
        self.lost(what, instead)

    def lost(self, what: str, instead: str = "left out") -> None:
        """Report that something of this is lost; the rest of it is accounted for elsewhere."""
        self._remark(what, instead, "lost")

    def changed(self, what: str, instead: str) -> None:
        """Report that this was converted, but not exactly."""
        self._remark(what, instead, "changed")

    def _remark(self, what: str, instead: str, kind: Kind) -> None:
        self.source.remarks.setdefault((self.loc, what), (instead, kind))

    def problem(self, message: str, fix: str = "") -> Problem:
        """Something that makes the file impossible to convert."""
        return self.source.problem(self.loc, message, fix)

    def refuse(self, message: str, fix: str = "") -> InvalidFilesError:
        """The same, to be raised."""
        return InvalidFilesError([self.problem(message, fix)])


# Templates of other tools (nunjucks), filled in with Jinja2, which nunjucks was modelled on.

_PATH = re.compile(r"\s*\{\{-?\s*(?:vars\.)?([A-Za-z_]\w*)((?:\.\w+|\[\d+\])*)\s*-?\}\}\s*")
_MARKED = re.compile("\ue000([^\ue001]*)\ue001")
_BAD_IN_NAME = re.compile(r"^(?=[^A-Za-z_])|[^A-Za-z0-9_.-]")
_MOST_NESTED = 8
_LONGEST = 1_000_000


@dataclass
class Later:
    """A name whose value is known only when the case is run."""

    name: str
    original: str
    default: str | None = None

    def __str__(self) -> str:
        return f"\ue000{self.name}\ue001"


@dataclass
class TemplateScope:
    """The names that the templates of one test know.

    `needed` gathers those that messages use and that get a value when the case is run: the case
    must define them (or capture them).
    """

    variables: Mapping[str, SourceValue] = field(default_factory=dict)
    captured: frozenset[str] = frozenset()
    constants: Mapping[str, Any] = field(default_factory=dict)
    empties: bool = True
    """A name without a value is an empty text, as in nunjucks; else the text stays as it is."""
    needed: dict[str, Later] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _seen: dict[str, Later] = field(default_factory=dict)
    _depth: int = 0

    def fill(self, value: Any, node: SourceValue) -> Any:
        """`value` with every template in it filled in; a text that is one placeholder keeps the
        type of its value. Names that are known only later are marked; see :meth:`finish`.
        """
        filled = self._deep(value, node)
        became = "it became an empty text" if self.empties else "the text is left as it is"
        for name in self.missing:
            node.changed(f"`{name}` has no value", f"{became}, as in the other tool")
        self.missing.clear()
        return filled

    def _deep(self, value: Any, node: SourceValue) -> Any:
        return _mapped(value, lambda text: self._text(text, node))

    def _text(self, text: str, node: SourceValue) -> Any:
        if "{{" not in text and "{%" not in text:
            return text
        if self._depth > _MOST_NESTED:
            node.changed("templates that name each other", "left as it is")
            return text
        self._depth += 1
        try:
            whole = _PATH.fullmatch(text)
            if whole and whole[1] in self.variables and whole[1] not in self.captured:
                found = self.lookup(whole[1], re.findall(r"\w+", whole[2]))
                if found is not None:
                    return found
            known = len(self.missing)
            made = _render(text, self)
            return made if self.empties or len(self.missing) == known else text
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            why = str(error).partition("\n")[0] or "?"
            node.changed(f"a template that cannot be filled in ({why})", "left as it is")
            return text
        finally:
            self._depth -= 1

    def lookup(self, name: str, steps: list[str]) -> Any:
        """The variable's value, or what `steps` lead to in it; None if there is no such thing."""
        if name not in self.variables:
            return None
        node = self.variables[name]
        node.use()
        value = self._deep(node.value, node)
        for step in steps:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value

    def later(self, name: str, original: str, default: str | None = None) -> Later:
        """A name that is known only when the case runs."""
        clean = _BAD_IN_NAME.sub("_", name)
        later = self._seen.setdefault(clean, Later(clean, original))
        if default is not None:
            later.default = default
        return later

    def finish(self, value: Any, node: SourceValue, *, live: bool) -> Any:
        """`value` without marks. In a message that will be sent (`live`) they become ``<<name>>``,
        and what looked like that before is escaped; elsewhere names have no meaning.
        """
        use = self._live if live else self._dead
        return _mapped(
            value,
            lambda text: _MARKED.sub(
                lambda match: use(self._seen[match[1]], node), escape(text) if live else text
            ),
        )

    def _live(self, later: Later, node: SourceValue) -> str:
        name = later.name
        if name not in self.captured and name not in self.needed:
            self.needed[name] = later
            known = f"`{later.default}`" if later.default is not None else "not known here"
            node.changed(
                f"{later.original} is filled in when the case is run",
                f"give its value with --var {name}=…, or write it under the case's `vars` "
                f"(now: {known})",
            )
        return f"<<{name}>>"

    def _dead(self, later: Later, node: SourceValue) -> str:
        where = f"{later.original} stands outside of a message"
        if later.default is not None:
            node.changed(where, f"became `{later.default}`")
            return later.default
        node.lost(
            f"{where}, where there are no variables", "left as it is: write the value in its place"
        )
        return later.original


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """`value` with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value


_FILTERS = (
    "abs", "capitalize", "escape", "first", "float", "indent", "int", "join", "last", "list",
    "lower", "replace", "reverse", "round", "safe", "sort", "string", "title", "trim", "upper",
)  # fmt: skip


class _Names(dict[str, Any]):
    """A mapping whose values are made when they are read."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, name: str) -> Any:
        return self._find(name)


class _Environment(ImmutableSandboxedEnvironment):
    """Only data can be reached, and nothing can be made that is much longer than the template."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def getattr(self, obj: Any, attribute: str) -> Any:
        if attribute == "length" and isinstance(obj, str | list):
            return len(obj)
        if isinstance(obj, LoopContext):
            return super().getattr(obj, attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        indexed = isinstance(obj, str | list) and isinstance(argument, int | slice)
        try:
            found = obj[argument] if indexed or isinstance(obj, dict) else None
        except LookupError:
            found = None
        return self.undefined(name=str(argument)) if found is None else found

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
            raise SecurityError(f"`{operator}` is not allowed here")
        return super().call_binop(context, operator, left, right)


def _render(text: str, scope: TemplateScope) -> str:
    """The template `text` with the names of `scope`. Raises what Jinja2 and its filters raise."""

    class Missing(ChainableUndefined):
        def __str__(self) -> str:
            scope.missing.append(self._undefined_name or "?")
            return ""

    def default(value: Any, otherwise: Any = "", falsy: bool = False) -> Any:
        if isinstance(value, Later):
            return scope.later(value.name, value.original, str(otherwise))
        absent = value is None or isinstance(value, Undefined) or (falsy and not value)
        return otherwise if absent else value

    def dump(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)

    made = _Environment(undefined=Missing, keep_trailing_newline=True, autoescape=False)
    made.globals.clear()
    made.filters = {name: made.filters[name] for name in _FILTERS}
    made.filters |= {"dump": dump, "default": default, "d": default}
    made.filters["length"] = lambda value: len(value) if isinstance(value, str | list | dict) else 0
    names = find_undeclared_variables(made.parse(text))
    result = ""
    values = {name: value for name in names if (value := _value(name, scope)) is not None}
    for piece in made.from_string(text).generate(values):
        result += piece
        if len(result) > _LONGEST:
            raise SecurityError(f"it becomes longer than {_LONGEST} characters")
    return result


def _value(name: str, scope: TemplateScope) -> Any:
    """What a name means at the top of a template; the environment is never read: it has secrets."""
    if name in scope.captured:
        return scope.later(name, f"{{{{ {name} }}}}")
    if name in scope.variables:
        return scope.lookup(name, [])
    if name in scope.constants:
        return scope.constants[name]
    if name == "vars":
        return _Names(lambda key: scope.lookup(key, []))
    if name == "env":
        return _Names(lambda key: scope.later(key, f"{{{{ env.{key} }}}}"))
    if name in ("var", "secret"):
        return lambda key: scope.later(str(key), f"{{{{{name}('{key}')}}}}")
    return None
