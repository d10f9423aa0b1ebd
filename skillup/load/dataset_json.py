"""The values of a JSON list or of JSON lines, each with the line that it begins on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from skillup.errors import InvalidFilesError, Problem
from skillup.load.file_text import line_and_column

_SPACE = re.compile(r"[\s,]*")


class _NotAValueError(Exception):
    """What begins at `offset` is no value that can be used."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def json_values(text: str, path: Path) -> list[tuple[int, Any]]:
    """The elements of a list, of an object's `items` or `data`, or the values one after another.

    Raises InvalidFilesError with the place where what is no JSON begins: what comes after it may
    be its end, or another value. Also for numbers and nesting without measure, NaN, and keys that
    an object has twice.
    """
    start = _SPACE.match(text)
    offset = start.end() if start else 0
    try:
        if text[offset : offset + 1] == "[":
            return list(_values(text, offset + 1, "]"))
        values = list(_values(text, 0, ""))
    except _NotAValueError as error:
        line, column = line_and_column(text, error.offset)
        fix = "an item is an object; a file holds a list of them, or one a line"
        problem = Problem(path, line, column, "", f"not JSON: {error}", fix)
        raise InvalidFilesError([problem]) from None
    if len(values) == 1 and isinstance(values[0][1], dict):
        listed = next((values[0][1].get(k) for k in ("items", "data") if k in values[0][1]), None)
        if isinstance(listed, list):
            return [(1, value) for value in listed]
    return values


def _values(text: str, offset: int, end: str) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_object)
    line, counted = 1, 0
    while True:
        space = _SPACE.match(text, offset)
        offset = space.end() if space else offset
        if offset >= len(text):
            if end:
                raise _NotAValueError("the list has no end", max(0, len(text) - 1))
            return
        if end and text[offset] == end:
            return
        line, counted = line + text.count("\n", counted, offset), offset
        try:
            value, following = decoder.raw_decode(text, offset)
        except json.JSONDecodeError as error:
            raise _NotAValueError(error.msg, offset) from None
        except RecursionError:
            raise _NotAValueError("nested too deeply", offset) from None
        except ValueError as error:  # also a whole number of thousands of digits
            raise _NotAValueError(str(error).partition(";")[0], offset) from None
        offset = following
        yield line, value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no value of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{twice}` is there twice")
    return made
