"""A value of a source, where it stands, and the names that templates in it know.

Whoever reads a value through a node has used it; what nobody used is reported in the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from jinja2 import ChainableUndefined, Undefined
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.notes import Loc
from skillup.importers.source import SourceFile
from skillup.schema.templates import escape, has_templates

# Filling in other tools' templates (nunjucks) while importing.

_PATH = re.compile(r"\s*\{\{-?\s*(?:vars\.)?([A-Za-z_]\w*)((?:\.\w+|\[\d+\])*)\s*-?\}\}\s*")
_OLD_ENV = re.compile(r"\$\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_STEP = re.compile(r"\w+")
_MARKED = re.compile("\ue000([^\ue001]*)\ue001")
_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_DEEPEST = 8
_CHECK_LISTS = ("any_of", "all_of", "none_of", "assertions")


class UnreadableTemplateError(ValueError):
    """A template that cannot be filled in; the text says why."""


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

    `needed` gathers, by name, the :class:`Later` ones that messages have come to use: the case must
    define them (or capture them).
    """

    variables: Mapping[str, SourceValue] = field(default_factory=dict)
    captured: frozenset[str] = frozenset()
    constants: Mapping[str, Any] = field(default_factory=dict)
    empties: bool = True
    """A name without a value is an empty text, as in nunjucks; else the text stays as it is."""
    needed: dict[str, Later] = field(default_factory=dict)
    _seen: dict[str, Later] = field(default_factory=dict)
    _missing: list[str] = field(default_factory=list)
    _depth: int = 0

    def fill(self, value: Any, node: SourceValue) -> Any:
        """`value` with every template in it filled in; a text that is one placeholder keeps the
        type of what it stands for. Names that are known only later are marked; see :meth:`finish`.
        """
        filled = self._deep(value, node)
        for name in dict.fromkeys(self._missing):
            became = "it became an empty text" if self.empties else "the text is left as it is"
            node.changed(f"`{name}` has no value", f"{became}, as in the other tool")
        self._missing.clear()
        return filled

    def _deep(self, value: Any, node: SourceValue) -> Any:
        if isinstance(value, str):
            return self._text(value, node)
        if isinstance(value, list):
            return [self._deep(item, node) for item in value]
        if isinstance(value, dict):
            return {key: self._deep(item, node) for key, item in value.items()}
        return value

    def _text(self, text: str, node: SourceValue) -> Any:
        if "{{" not in text and "{%" not in text:
            return text
        text = _OLD_ENV.sub(r"{{ env.\1 }}", text)
        if self._depth > _DEEPEST:
            node.changed("templates that name each other", "left as it is")
            return text
        self._depth += 1
        try:
            whole = _PATH.fullmatch(text)
            if whole and whole[1] in self.variables and whole[1] not in self.captured:
                found = self.lookup(whole[1], _STEP.findall(whole[2]))
                if found is not None:
                    return found
            asked = len(self._missing)
            made = self._render(text)
            return made if self.empties or len(self._missing) == asked else text
        except UnreadableTemplateError as error:
            node.changed(f"a template that cannot be filled in ({error})", "left as it is")
            return text
        finally:
            self._depth -= 1

    def lookup(self, name: str, steps: list[str]) -> Any:
        """The variable's value, or what `steps` lead to in it; None if there is no such thing."""
        node = self.variables.get(name)
        if node is None:
            return None
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
        clean = clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"
        later = self._seen.setdefault(clean, Later(clean, original))
        if default is not None:
            later.default = default
        return later

    def missing(self, name: str) -> None:
        """A template asked for what nothing defines."""
        self._missing.append(name)

    def _render(self, text: str) -> str:
        from jinja2 import TemplateError

        try:
            return render(text, self)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UnreadableTemplateError(str(error).partition("\n")[0] or "?") from error

    def finish(self, value: Any, node: SourceValue, *, live: bool) -> Any:
        """`value` without marks. In a message that will be sent (`live`) they become ``<<name>>``,
        and what looked like that before is escaped; elsewhere names have no meaning.
        """
        if isinstance(value, list):
            return [self.finish(item, node, live=live) for item in value]
        if isinstance(value, dict):
            return {key: self.finish(item, node, live=live) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        if live:
            return _MARKED.sub(lambda match: self._live(match[1], node), escape(value))
        return _MARKED.sub(lambda match: self._dead(match[1], node), value)

    def _live(self, name: str, node: SourceValue) -> str:
        later = self._seen[name]
        if name not in self.captured and name not in self.needed:
            self.needed[name] = later
            known = f"`{later.default}`" if later.default is not None else "not known here"
            node.changed(
                f"{later.original} is filled in when the case is run",
                f"give its value with --var {name}=…, or write it under the case's `vars` "
                f"(now: {known})",
            )
        return f"<<{name}>>"

    def _dead(self, name: str, node: SourceValue) -> str:
        later = self._seen[name]
        if later.default is not None:
            node.changed(
                f"{later.original} stands outside of a message", f"became `{later.default}`"
            )
            return later.default
        node.lost(
            f"{later.original} stands outside of a message, where there are no variables",
            "left as it is: write the value in its place",
        )
        return later.original


def made_literal(case: dict[str, Any]) -> None:
    """Have the texts of a case that no name of ours stands in be no templates, in place.

    Messages are left out: :meth:`Scope.finish` looks after them.
    """
    given = case.get("input", {})
    for message in given.get("history", ()):
        _mark(message, message.get("content"))
    if (context := case.get("context")) is not None:
        _mark(context, context.get("files"))
    turns = [turn for turn in given.get("turns", ()) if isinstance(turn, dict)]
    for owner, key in (
        (given, "system"),
        *((place, "expected_output") for place in (case, *turns)),
    ):
        if isinstance(owner.get(key), str):
            owner[key] = escape(owner[key])
    for place in (case, *turns, *case.get("judges", ()), case.get("judge", {})):
        for key in ("assertions", "success", "failure", "expect", "post_condition"):
            if key in place:
                place[key] = literal_checks(place[key])


def literal_checks(checks: Any) -> Any:
    """A check, or a list of checks, as they are written, whose texts are no templates."""
    if isinstance(checks, str):
        return escape(checks)
    if isinstance(checks, list):
        return [literal_checks(check) for check in checks]
    inner = {k: literal_checks(checks[k]) for k in _CHECK_LISTS if k in checks}
    own = {key: value for key, value in checks.items() if key not in inner}
    # The message of a follow-up has the names of ours that it needs.
    _mark(own, {key: text for key, text in own.items() if key != "prompt" or "rubric" in own})
    return {**own, **inner}


def _mark(owner: dict[str, Any], texts: Any) -> None:
    if _has_templates(texts):
        owner["literal"] = True


def _has_templates(value: Any, key: str = "") -> bool:
    if isinstance(value, str):
        return has_templates(value, braces=key != "prompt")  # there they are the judge's
    if isinstance(value, dict):
        return any(_has_templates(item, name) for name, item in value.items())
    return isinstance(value, list) and any(_has_templates(item) for item in value)


def as_text(value: Any) -> str:
    """A scalar as it would be written; a list or mapping as JSON; nothing as an empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return str(value)


def tidy(number: float) -> float | int:
    """A whole number as such; one that was spelled unusually (``0042``) as it counts."""
    return int(number) if number == int(number) else number + 0


@dataclass(frozen=True, eq=False)
class SourceValue:
    """One place in a source."""

    source: SourceFile
    loc: Loc
    value: Any
    scope: TemplateScope | None = None

    @classmethod
    def top(cls, source: SourceFile, scope: TemplateScope | None = None) -> SourceValue:
        """The source's whole value."""
        return cls(source, (), source.data, scope)

    def with_scope(self, scope: TemplateScope | None) -> SourceValue:
        """The same place, its templates filled in from `scope`."""
        return SourceValue(self.source, self.loc, self.value, scope)

    def get(self, *names: str) -> SourceValue | None:
        """The value under the first of `names` that is there and not null."""
        if isinstance(self.value, dict):
            for name in names:
                if self.value.get(name) is not None:
                    return self._child(name)
                if name in self.value:
                    self.source.ledger.use((*self.loc, name))  # null: there is nothing to lose
        return None

    def items(self) -> Iterator[tuple[str, SourceValue]]:
        """The entries of a mapping; none of anything else."""
        if isinstance(self.value, dict):
            for key in self.value:
                yield str(key), self._child(key)

    def elements(self) -> list[SourceValue]:
        """The items of a list; a single value is a list of one."""
        if isinstance(self.value, list):
            if not self.value:
                self.use()
            return [self._child(index) for index in range(len(self.value))]
        return [self]

    def _child(self, part: Any) -> SourceValue:
        return SourceValue(self.source, (*self.loc, part), self.value[part], self.scope)

    def use(self) -> None:
        """Everything in it has come over."""
        self.source.ledger.use(self.loc)

    def raw(self) -> Any:
        """The value, templates filled in as far as they can be now; see :meth:`finish`."""
        self.use()
        return self.value if self.scope is None else self.scope.fill(self.value, self)

    def finish(self, text: str, *, live: bool = False) -> str:
        """A text made of raw values, for a place where names have no meaning.

        With `live`, for a message that is sent: ``<<name>>`` means something there.
        """
        if self.scope is None:
            return escape(text) if live else text
        return str(self.scope.finish(text, self, live=live))

    def take(self) -> Any:
        """The value, templates filled in, for a place where names have no meaning."""
        value = self.raw()
        return value if self.scope is None else self.scope.finish(value, self, live=False)

    def text(self) -> str:
        """The value as text, for such a place."""
        return as_text(self.take())

    def message(self) -> str:
        """The value as the text of a message that is sent."""
        return self.finish(as_text(self.raw()), live=True)

    def number(self) -> float | int | None:
        """The value as a number; None (and a note) if it is none."""
        value = self.take()
        if isinstance(value, str):
            try:
                value = float(value) if "." in value else int(value)
            except ValueError:
                value = None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self.note("not a number", "left out")
            return None
        return tidy(value)

    def texts(self) -> list[str]:
        """The value as a list of texts."""
        value = self.take()
        return [as_text(item) for item in value] if isinstance(value, list) else [as_text(value)]

    def note(self, what: str, instead: str) -> None:
        """Report that this is lost, with everything in it."""
        self.use()
        self.lost(what, instead)

    def lost(self, what: str, instead: str) -> None:
        """Report that something of this is lost; the rest of it is accounted for elsewhere."""
        self.source.ledger.note(self.loc, what, instead, "lost")

    def changed(self, what: str, instead: str) -> None:
        """Report that this came over, but not quite as it was."""
        self.source.ledger.note(self.loc, what, instead, "changed")

    def problem(self, message: str, fix: str = "") -> Problem:
        """Something that makes the file impossible to convert."""
        return self.source.problem(self.loc, message, fix)

    def refuse(self, message: str, fix: str = "") -> InvalidFilesError:
        """The same, to be raised."""
        return InvalidFilesError([self.problem(message, fix)])


# Nunjucks templates, by means of Jinja2, which nunjucks was modelled on.

_FILTERS = (
    "abs", "capitalize", "d", "default", "escape", "first", "float", "indent", "int", "join",
    "last", "length", "list", "lower", "replace", "reverse", "round", "safe", "sort", "string",
    "title", "trim", "upper",
)  # fmt: skip
_LONGEST = 1_000_000


class _Names(Mapping[str, Any]):
    """A mapping whose values are made when they are asked for."""

    def __init__(self, scope: TemplateScope) -> None:
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


def render(text: str, scope: TemplateScope) -> str:
    """The template `text` with the names of `scope`. Raises what Jinja2 and its filters raise."""
    made = _environment(scope)
    names = find_undeclared_variables(made.parse(text))
    result = ""
    for piece in made.from_string(text).generate({n: _value(n, scope, made) for n in names}):
        result += piece
        if len(result) > _LONGEST:
            raise SecurityError(f"it becomes longer than {_LONGEST} characters")
    return result


def _environment(scope: TemplateScope) -> _Environment:
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


def _default(scope: TemplateScope) -> Callable[..., Any]:
    def default(value: Any, otherwise: Any = "", falsy: bool = False) -> Any:
        if isinstance(value, Later):
            return scope.later(value.name, value.original, str(otherwise))
        if value is None or isinstance(value, Undefined) or (falsy and not value):
            return otherwise
        return value

    return default


def _value(name: str, scope: TemplateScope, made: _Environment) -> Any:
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
