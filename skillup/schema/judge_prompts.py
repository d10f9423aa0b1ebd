"""Judge prompts of the user's own: ``{{input}}``, ``{{output}}`` and the like are filled in."""

from __future__ import annotations

import re
from collections.abc import Callable

PROMPT_VARIABLES = ("input", "output", "criteria", "expected_output")
"""What may stand between double braces in the `prompt` of a check that a model reads."""

_VARIABLE = re.compile(r"\{\{\s*(?P<name>[^{}]*?)\s*\}\}")


def unknown_variables(prompt: str) -> list[str]:
    """What stands between double braces in `prompt` and means nothing, in order, each once."""
    names = (match["name"] for match in _VARIABLE.finditer(prompt))
    return list(dict.fromkeys(name for name in names if name not in PROMPT_VARIABLES))


def uses(prompt: str, name: str) -> bool:
    """Whether `prompt` has the variable `name`."""
    return any(match["name"] == name for match in _VARIABLE.finditer(prompt))


def fill(prompt: str, value: Callable[[str], str]) -> str:
    """`prompt` with each variable replaced by its `value`; braces inside values stay as they are.

    What is no variable stays too: :func:`unknown_variables` has it refused when the case is loaded.
    """

    def filled(match: re.Match[str]) -> str:
        return value(match["name"]) if match["name"] in PROMPT_VARIABLES else match[0]

    return _VARIABLE.sub(filled, prompt)
