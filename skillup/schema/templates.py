r"""Templates in messages, files and checks: ``<<name>>``, and ``{{name}}``, which means the same.

``\<<name>>`` and ``\{{name}}`` are literal. What only looks alike (``{{ a | b }}``, ``{% if %}``)
is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_TEMPLATE = re.compile(
    rf"(?P<escape>\\)?(?:<<\s*(?P<name>{_NAME})\s*>>|\{{\{{\s*(?P<brace>{_NAME})\s*\}}\}})"
)
_ANGLES = re.compile(rf"(?P<escape>\\)?<<\s*(?P<name>{_NAME})\s*>>(?P<brace>(?!))?")


def has_templates(text: str) -> bool:
    """Whether :func:`render` would change `text`, if only by taking out a backslash."""
    return _TEMPLATE.search(text) is not None


def written_in(text: str, *, braces: bool = True) -> dict[str, str]:
    """The names that `text` needs, in order, each as it is first written: ``{{ name }}``."""
    if "<<" not in text and "{{" not in text:
        return {}
    found: dict[str, str] = {}
    for match in (_TEMPLATE if braces else _ANGLES).finditer(text):
        if not match["escape"]:
            found.setdefault(match["name"] or match["brace"], match[0])
    return found


def escape(text: str) -> str:
    r"""`text` such that :func:`render` gives it back: ``<<name>>`` becomes ``\<<name>>``."""
    return _TEMPLATE.sub(lambda match: f"\\{match[0]}", text)


class UnresolvedNameError(LookupError):
    """A template names what nothing has defined."""


def render(
    text: str,
    variables: Mapping[str, str],
    *,
    braces: bool = True,
    quote: Callable[[str], str] | None = None,
) -> str:
    """`text` with every name replaced. Raises UnresolvedNameError at the first unknown one.

    Values are inserted as they are, or as `quote` gives them: a ``<<…>>`` inside a value is not
    looked at again. Without `braces`, ``{{name}}`` is left alone.
    """

    def value(match: re.Match[str]) -> str:
        if match["escape"]:
            return match[0][1:]
        name = match["name"] or match["brace"]
        if name not in variables:
            listed = ", ".join(sorted(variables)) or "none"
            raise UnresolvedNameError(f"{match[0]} has no value (defined so far: {listed})")
        return variables[name] if quote is None else quote(variables[name])

    return (_TEMPLATE if braces else _ANGLES).sub(value, text)


def pieces(text: str, variables: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """What :func:`render` gives, each piece with its variable; a name without a value stays."""
    found: list[tuple[str, str | None]] = []
    place = 0
    for match in _TEMPLATE.finditer(text):
        found.append((text[place : match.start()], None))
        name = "" if match["escape"] else match["name"] or match["brace"]
        left = match[0][1:] if match["escape"] else match[0]
        found.append((variables[name], name) if name in variables else (left, None))
        place = match.end()
    return [*found, (text[place:], None)]


def fill(key: str, spec: Any, variables: Mapping[str, str]) -> Any:
    """The arguments `spec` of the check `key` with every name replaced; raises as :func:`render`.

    A value always stands for itself: within a pattern or a glob its special characters are escaped.
    """

    def filled(text: str, sort: _Sort) -> str:
        new = render(text, variables, braces=sort != "prompt", quote=_QUOTES.get(sort))
        if text.strip() and not new.strip():  # Which stands in every answer
            raise UnresolvedNameError(f"{text} is empty, as its values are")
        return new

    return _changed(spec, filled, _SORTS.get(key, "text"))


def written_in_check(key: str, spec: Any) -> dict[str, str]:
    """As :func:`written_in`, of a check's texts; in a prompt ``{{name}}`` is the judge's."""
    found: dict[str, str] = {}

    def noted(text: str, sort: _Sort) -> str:
        found.update(written_in(text, braces=sort != "prompt") | found)
        return text

    _changed(spec, noted, _SORTS.get(key, "text"))
    return found


_Sort = Literal["text", "regex", "glob", "prompt"]
_SORTS: Mapping[str, _Sort] = {
    "matches": "regex",
    "output_matches": "regex",
    "glob": "glob",
    "not_glob": "glob",
    "files_exist": "glob",
    "files_not_exist": "glob",
    "prompt": "prompt",
    "FileContains.path": "glob",
    "UserAnswer.question": "regex",
}
"""What is no plain text, by a check's key or a field's name."""
_QUOTES: Mapping[str, Callable[[str], str]] = {
    "regex": re.escape,
    "glob": lambda value: re.sub(r"[*?\[{}]", r"[\g<0>]", value),
}


def _changed(value: Any, change: Callable[[str, _Sort], str], sort: _Sort) -> Any:
    if isinstance(value, str):
        return change(value, sort)
    if isinstance(value, list):
        return [_changed(item, change, sort) for item in value]
    if isinstance(value, dict):
        return {key: _changed(item, change, sort) for key, item in value.items()}
    if not isinstance(value, BaseModel):
        return value
    update = {}
    for name in value.model_fields_set:
        inner = _SORTS.get(f"{type(value).__name__}.{name}") or _SORTS.get(name, sort)
        old = getattr(value, name)
        if (new := _changed(old, change, inner)) != old:
            update[name] = new
    return value.model_copy(update=update) if update else value
