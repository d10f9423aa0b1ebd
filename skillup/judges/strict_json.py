"""JSON that leaves no doubt: what decides over a pass is read strictly or not at all."""

from __future__ import annotations

import json
import re
from typing import Any

BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)```", re.S | re.I)
_OBJECT_START = re.compile(r"""\{\s*["']""")


class DoubtfulJsonError(ValueError):
    """The text is no JSON, or JSON that can be read in two ways; the message says what is wrong."""


def strict_json(text: str) -> Any:
    """The value that is all of `text`, spaces and a byte order mark around it aside.

    Raises DoubtfulJsonError, also for a key that an object has twice, for NaN and infinities, for
    nesting without end and for numbers of thousands of digits.
    """
    try:
        return json.loads(bare(text), object_pairs_hook=_unique_keys, parse_constant=_no_number)
    except DoubtfulJsonError:
        raise
    except RecursionError:
        raise DoubtfulJsonError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DoubtfulJsonError(f"it is not JSON: {error}") from None
    except ValueError:
        raise DoubtfulJsonError("it has a number that is too long") from None


def bare(text: str) -> str:
    """Without spaces and a byte order mark around it."""
    return text.strip().lstrip(BYTE_ORDER_MARK).strip()


def only_object(message: str) -> dict[str, Any]:
    """The object that is all of a message, fenced or not.

    An object beside other text, or another object, may be a quotation of what somebody else wrote.
    Raises DoubtfulJsonError.
    """
    text = bare(message)
    if (fenced := _FENCED.fullmatch(text)) is not None:
        text = fenced[1].strip()
    if not text.startswith("{"):
        what = "other text beside its" if _OBJECT_START.search(text) else "no"
        raise DoubtfulJsonError(f"the answer holds {what} JSON object")
    try:
        value: dict[str, Any] = strict_json(text)
    except DoubtfulJsonError as doubt:
        raise DoubtfulJsonError(f"the answer is not one JSON object: {doubt}") from None
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DoubtfulJsonError(f"it has the key {key!r:.100} twice")
        found[key] = value
    return found


def _no_number(name: str) -> Any:
    raise DoubtfulJsonError(f"{name} is no number")
