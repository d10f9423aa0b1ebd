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
        return json.loads(
            text.strip().lstrip(BYTE_ORDER_MARK).strip(),
            object_pairs_hook=_once_each,
            parse_constant=_no_number,
        )
    except DoubtfulJsonError:
        raise
    except RecursionError:
        raise DoubtfulJsonError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DoubtfulJsonError(f"it is not JSON: {error}") from None
    except ValueError:
        raise DoubtfulJsonError("it has a number that is too long") from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DoubtfulJsonError(f"it has the key {key!r:.100} twice")
        found[key] = value
    return found


def _no_number(name: str) -> Any:
    raise DoubtfulJsonError(f"{name} is no number")


def only_object(message: str) -> dict[str, Any]:
    """The object that a message gives as its answer: the whole message, fenced or not.

    An object beside other text, or another object, may be a quotation of what somebody else wrote.

    Raises DoubtfulJsonError.
    """
    text = message.strip().lstrip(BYTE_ORDER_MARK).strip()
    fenced = _FENCED.fullmatch(text)
    if fenced is not None:
        text = fenced[1].strip()
    if not text.startswith("{"):
        has_one = _OBJECT_START.search(text) is not None
        raise DoubtfulJsonError(
            "the answer holds other text beside its JSON object"
            if has_one
            else "the answer holds no JSON object"
        )
    try:
        value = strict_json(text)
    except DoubtfulJsonError as doubt:
        raise DoubtfulJsonError(f"the answer is not one JSON object: {doubt}") from None
    if not isinstance(value, dict):
        raise DoubtfulJsonError("the answer holds no JSON object")
    return value
