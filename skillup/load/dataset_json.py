"""The values of a JSON list or of JSON lines, each with the line that it begins on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.load.file_text import line_and_column

_SPACE = re.compile(r"[\s,]*")


def json_values(text: str, path: Path) -> list[tuple[int, Any]]:
    """The elements of a list, of an object's `items` or `data`, or the values one after another.

    Raises InvalidFilesError with a place for what is no JSON.
    """
    start = _SPACE.match(text)
    offset = start.end() if start else 0
    try:
        if text[offset : offset + 1] == "[":
            return list(_values(text, offset + 1, "]"))
        values = list(_values(text, 0, ""))
    except json.JSONDecodeError as error:
        line, column = line_and_column(text, error.pos)
        fix = "an item is an object; a file holds a list of them, or one a line"
        problem = Problem(path, line, column, "", f"not JSON: {error.msg}", fix)
        raise InvalidFilesError([problem]) from None
    if len(values) == 1 and isinstance(values[0][1], dict):
        listed = next((values[0][1].get(k) for k in ("items", "data") if k in values[0][1]), None)
        if isinstance(listed, list):
            return [(1, value) for value in listed]
    return values


def _values(text: str, offset: int, end: str) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder()
    line, counted = 1, 0
    while True:
        space = _SPACE.match(text, offset)
        offset = space.end() if space else offset
        if offset >= len(text):
            if end:
                raise json.JSONDecodeError("the list has no end", text, len(text))
            return
        if end and text[offset] == end:
            return
        line, counted = line + text.count("\n", counted, offset), offset
        value, offset = decoder.raw_decode(text, offset)
        yield line, value
