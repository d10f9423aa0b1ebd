"""Filling in other tools' templates (nunjucks) while importing.

What is known now (a test's vars) is filled in now. What is known only later stays a name: an
environment variable, a stored answer, a variable or secret that the other tool keeps. In a message
such a name becomes ``<<name>>``; in a check, which knows no names, its default or itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillup.schema.templates import escape, has_templates

if TYPE_CHECKING:
    from skillup.interop.node import Node

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
class Scope:
    """The names that the templates of one test know.

    `needed` gathers, by name, the :class:`Later` ones that messages have come to use: the case must
    define them (or capture them).
    """

    variables: Mapping[str, Node] = field(default_factory=dict)
    captured: frozenset[str] = frozenset()
    constants: Mapping[str, Any] = field(default_factory=dict)
    empties: bool = True
    """A name without a value is an empty text, as in nunjucks; else the text stays as it is."""
    needed: dict[str, Later] = field(default_factory=dict)
    _seen: dict[str, Later] = field(default_factory=dict)
    _missing: list[str] = field(default_factory=list)
    _depth: int = 0

    def fill(self, value: Any, node: Node) -> Any:
        """`value` with every template in it filled in; a text that is one placeholder keeps the
        type of what it stands for. Names that are known only later are marked; see :meth:`finish`.
        """
        filled = self._deep(value, node)
        for name in dict.fromkeys(self._missing):
            became = "it became an empty text" if self.empties else "the text is left as it is"
            node.changed(f"`{name}` has no value", f"{became}, as in the other tool")
        self._missing.clear()
        return filled

    def _deep(self, value: Any, node: Node) -> Any:
        if isinstance(value, str):
            return self._text(value, node)
        if isinstance(value, list):
            return [self._deep(item, node) for item in value]
        if isinstance(value, dict):
            return {key: self._deep(item, node) for key, item in value.items()}
        return value

    def _text(self, text: str, node: Node) -> Any:
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

        from skillup.interop.nunjucks import render

        try:
            return render(text, self)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UnreadableTemplateError(str(error).partition("\n")[0] or "?") from error

    def finish(self, value: Any, node: Node, *, live: bool) -> Any:
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

    def _live(self, name: str, node: Node) -> str:
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

    def _dead(self, name: str, node: Node) -> str:
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
