"""``${VAR}``, ``${VAR:-default}`` and ``${VAR?message}`` in profiles and suites."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(
    r"\$(?:(?P<escape>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"(?:(?P<operator>:-|-|:\?|\?)(?P<rest>[^}]*))?\})"
)


class MissingVariableError(LookupError):
    """A variable that is not set and has no default; the text says which, and the message given."""


def expand(text: str, environment: Mapping[str, str]) -> str:
    """`text` with every reference replaced, as a POSIX shell does. ``$$`` is a dollar sign.

    Raises MissingVariableError for a variable that is not set and has no default.
    """

    def value(match: re.Match[str]) -> str:
        if match["escape"]:
            return "$"
        name, operator, rest = match["name"], match["operator"], match["rest"]
        found = environment.get(name)
        if operator in (":-", ":?") and found == "":
            found = None
        if found is not None:
            return found
        if operator in (":-", "-"):
            return rest
        raise MissingVariableError(rest or f"the variable {name} is not set")

    return _REFERENCE.sub(value, text)
