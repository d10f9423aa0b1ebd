"""JSON as this project writes it: UTF-8, masked, and valid whatever an agent came up with."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from skillup.schema.record import ON_DISK

Mask = Callable[[str], str]
"""Returns the text with secrets replaced."""

# DEL and C1 controls; separators that some take for line ends; marks of direction. C0 controls are
# escaped by every JSON writer.
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def no_mask(text: str) -> str:
    """The mask where there are no secrets."""
    return text


def to_json(value: BaseModel | Mapping[str, Any], mask: Mask, *, indent: int | None) -> bytes:
    """``value`` as JSON text with a final newline.

    Every text in it, keys too, goes through ``mask``. That is done before quoting, so that a secret
    with a quotation mark or a newline is found, and a secret that looks like a number cannot break
    the syntax. Lone surrogates become U+FFFD, because no JSON reader need accept them; NaN and
    infinities become null. Characters that a terminal would obey or that turn the order of text are
    written as JSON's escapes, which read the same.
    """
    if isinstance(value, BaseModel):
        # Not model_dump_json: it refuses lone surrogates.
        value = value.model_dump(mode="json", by_alias=True, context=ON_DISK)
    separators = (",", ":") if indent is None else None
    clean = _clean(value, mask)
    text = json.dumps(
        clean, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )
    return _OBEYED.sub(_escaped, text).encode() + b"\n"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _clean(value: Any, mask: Mask) -> Any:
    if isinstance(value, str):
        return _encodable(mask(value))
    if isinstance(value, Mapping):
        return {_encodable(mask(str(key))): _clean(item, mask) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, mask) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _encodable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, so that a pair of surrogates becomes the character it stands for.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
