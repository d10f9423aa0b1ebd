"""A place in nested data, as people write it: ``input.turns[2].content``."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHOWN_LENGTH = 60


def field_name(loc: Iterable[object]) -> str:
    """`loc`, its keys joined by dots and its indexes (from 0) in brackets.

    A key that would not read as one word stands in brackets and quotes: ``files["notes.txt"]``.
    """
    text = ""
    for part in loc:
        if isinstance(part, str) and _BARE.fullmatch(part):
            text += f".{part}" if text else part
        elif isinstance(part, str):
            text += f'["{_shortened(part)}"]'
        else:
            text += f"[{_shortened(str(part))}]"
    return text


def _shortened(text: str) -> str:
    one_line = text if text.isprintable() else repr(text)[1:-1]
    return one_line if len(one_line) <= _SHOWN_LENGTH else one_line[: _SHOWN_LENGTH - 1] + "…"
