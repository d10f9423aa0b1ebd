"""``${VAR}``, ``${VAR:-default}`` and ``${VAR?message}`` in profiles and suites."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(
    r"\$(?:(?P<escape>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"(?:(?P<operator>:-|-|:\?|\?)(?P<rest>[^}]*))?\}|(?P<bad>\{))"
)


class MissingVariableError(LookupError):
    """A variable that is not set and has no default; the text says which, and the message given."""

    fix = "set it, or give a default: ${VAR:-default}"


class BadReferenceError(MissingVariableError):
    """``${`` that begins no reference known here: left as it is, it would reach the agent."""

    fix = "write ${VAR}, ${VAR:-default} or ${VAR?message}; for the text itself, write $${"


def expand(text: str, environment: Mapping[str, str]) -> str:
    """`text` with every reference replaced, as a POSIX shell does. ``$$`` is a dollar sign.

    Raises MissingVariableError for a variable that is not set and has no default, and
    BadReferenceError (one of these) for what only looks like a reference.
    """

    def value(match: re.Match[str]) -> str:
        if match["escape"]:
            return "$"
        name, operator, rest = match["name"], match["operator"], match["rest"]
        # What was written is not repeated: somebody may have pasted a key there.
        if match["bad"] is not None:
            raise BadReferenceError("`${` begins no reference to a variable here")
        if "${" in (rest or ""):
            raise BadReferenceError(f"a reference within the reference to {name}")
        found = environment.get(name)
        if operator in (":-", ":?") and found == "":
            found = None
        if found is not None:
            return found
        if operator in (":-", "-"):
            return rest
        raise MissingVariableError(rest or f"the variable {name} is not set")

    return _REFERENCE.sub(value, text)
