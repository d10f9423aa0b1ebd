r"""Templates in messages and files: ``<<name>>``, and ``{{name}}`` where the case defines `name`.

``\<<name>>`` is literal ``<<name>>``. ``{{name}}`` is skill-up's spelling; because prompts often
contain such braces for other reasons, it is replaced only if the case itself defines the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_TEMPLATE = re.compile(
    rf"(?P<escape>\\)?<<\s*(?P<name>{_NAME})\s*>>|\{{\{{\s*(?P<brace>{_NAME})\s*\}}\}}"
)


def names_in(text: str) -> list[str]:
    """The names that `text` needs: every unescaped ``<<name>>``, in order."""
    return [m["name"] for m in _TEMPLATE.finditer(text) if m["name"] and not m["escape"]]


def positions_in(text: str) -> list[tuple[str, int]]:
    """As :func:`names_in`, each with the character offset where it stands."""
    return [
        (m["name"], m.start()) for m in _TEMPLATE.finditer(text) if m["name"] and not m["escape"]
    ]


def escape(text: str) -> str:
    r"""`text` such that :func:`render` gives it back: ``<<name>>`` becomes ``\<<name>>``.

    Braces are left alone: they are replaced only by names that the case itself defines.
    """
    return _TEMPLATE.sub(lambda m: f"\\{m[0]}" if m["name"] else m[0], text)


class UnresolvedNameError(LookupError):
    """A template names what nothing has defined; ``name`` says which."""

    def __init__(self, name: str, known: Set[str]) -> None:
        self.name = name
        self.known = sorted(known)
        listed = ", ".join(self.known) or "none"
        super().__init__(f"<<{name}>> has no value (defined so far: {listed})")


def render(text: str, variables: Mapping[str, str]) -> str:
    """`text` with every name replaced. Raises UnresolvedNameError at the first unknown one.

    Values are inserted as they are: a ``<<…>>`` inside a value is not looked at again.
    """

    def value(match: re.Match[str]) -> str:
        if match["brace"] is not None:
            return variables.get(match["brace"], match[0])
        if match["escape"]:
            return match[0][1:]
        name = match["name"]
        if name not in variables:
            raise UnresolvedNameError(name, variables.keys())
        return variables[name]

    return _TEMPLATE.sub(value, text)


def pieces(text: str, variables: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """What :func:`render` gives, in pieces: each with the name of the variable that it came from.

    A name without a value stays as it is written.
    """
    found: list[tuple[str, str | None]] = []
    place = 0
    for match in _TEMPLATE.finditer(text):
        found.append((text[place : match.start()], None))
        name: str | None = None if match["escape"] else match["name"] or match["brace"]
        if name is not None and name in variables:
            found.append((variables[name], name))
        else:
            found.append((match[0][1:] if match["escape"] else match[0], None))
        place = match.end()
    return [*found, (text[place:], None)]
