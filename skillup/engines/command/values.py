"""Values in events by their paths, and texts with placeholders. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from skillup.engines.events import as_text
from skillup.schema.base import compiled_pattern
from skillup.schema.profile import Conditions, Matches

_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z_]+)(?::(?P<operator>[-+])(?P<rest>[^{}]*))?\}")
ABSENT: Any = object()
"""What stands for a text whose placeholder has no value."""
SEARCH_SECONDS = 0.5
"""How long a regex may search a text that an agent wrote; then TimeoutError is raised."""


def value_at(event: Any, path: str) -> Any:
    """The value at a path (see :data:`skillup.schema.profile.Path`); None if there is none."""
    for part in path.split("."):
        if isinstance(event, Mapping):
            event = event.get(part)
        elif isinstance(event, list) and part.lstrip("-").isdigit():
            number = int(part)
            event = event[number] if -len(event) <= number < len(event) else None
        else:
            return None
    return event


def holds(conditions: Conditions, event: Any) -> bool:
    """Whether all of them do. A number is not a boolean: 1 is not true. Raises TimeoutError."""
    return all(_is(wanted, value_at(event, path)) for path, wanted in conditions.items())


def _is(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, Matches):
        pattern, text = compiled_pattern(wanted.matches, False), as_text(value)
        return pattern.search(text, timeout=SEARCH_SECONDS) is not None
    options = wanted if isinstance(wanted, list) else [wanted]
    return any(type(one) is type(value) and one == value for one in options)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its values; ABSENT where one has none.

    A text that is one placeholder becomes its value, whatever type that has (with ``:-null`` also
    null); a list in a list is spliced. Of lists and mappings only what is absent is left out.
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole["operator"] is None:
            value = values.get(whole["name"])
            return ABSENT if value is None or value == "" else value
        if whole is not None and whole["rest"] == "null":
            return values.get(whole["name"])
        missing = False

        def one(match: re.Match[str]) -> str:
            nonlocal missing
            value, operator = values.get(match["name"]), match["operator"]
            is_there = value is not None and value != ""
            if operator == "-" and not is_there:
                return match["rest"]
            missing |= not is_there
            return match["rest"] if operator == "+" else as_text(value)

        text = _PLACEHOLDER.sub(one, template)
        return ABSENT if missing else text
    if isinstance(template, Mapping):
        made = {filled(key, values): filled(value, values) for key, value in template.items()}
        return {k: v for k, v in made.items() if k is not ABSENT and v is not ABSENT}
    if isinstance(template, list):
        parts: list[Any] = []
        for part in (filled(entry, values) for entry in template):
            parts += part if isinstance(part, list) else [part]
        return [part for part in parts if part is not ABSENT]
    return template


def filled_arguments(arguments: Iterable[str | list[str]], values: Mapping[str, Any]) -> list[str]:
    """The arguments; a list is left out as a whole, if one of its texts is."""
    made: list[str] = []
    for entry in arguments:
        texts = [filled(one, values) for one in ([entry] if isinstance(entry, str) else entry)]
        made += [] if ABSENT in texts else map(as_text, texts)
    return made


def names_in(template: Any) -> set[str]:
    """The placeholders that stand in a template."""
    return {match["name"] for match in _PLACEHOLDER.finditer(repr(template))}
