"""JSON with the place of every value; the standard library's reader keeps none.

YAML is nearly a superset of JSON, but only nearly (surrogate pairs, tabs), and tools write JSON.
"""

from __future__ import annotations

import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NoReturn

from skillup.interop.report import Loc
from skillup.load.file_text import line_and_column, refuse

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_WORDS = {"true": True, "false": False, "null": None}
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DEEPEST = 100
_LONGEST_NUMBER = 1000


class JsonText:
    """One JSON value in a text; `offset` is where the text stands in its file.

    Raises InvalidFilesError, with the place, for what is not JSON.
    """

    def __init__(self, text: str, path: Path, *, first_line: int = 1) -> None:
        self._text = text
        self._path = path
        self._first_line = first_line
        self._places: dict[Loc, tuple[int, int]] = {}
        start = self._skip(0)
        self.data, end = self._value(start, (), start)
        if self._skip(end) != len(text):
            self._refuse(self._skip(end), "text after the end of the JSON value")

    def locate(self, loc: Loc, *, key: bool = False) -> tuple[int, int]:
        """Line and column of the value at `loc` (of its key), or of the nearest one around it."""
        while loc not in self._places:
            loc = loc[:-1]
        return self._position(self._places[loc][0 if key else 1])

    def _position(self, offset: int) -> tuple[int, int]:
        line, column = line_and_column(self._text, offset)
        return line + self._first_line - 1, column

    def _refuse(self, offset: int, message: str, fix: str = "") -> NoReturn:
        line, column = self._position(offset)
        refuse(self._path, f"this is not JSON: {message}", fix, line, column)

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self._text, at)
        return match.end() if match else at

    def _value(self, at: int, loc: Loc, key_at: int) -> tuple[Any, int]:
        self._places[loc] = (key_at, at)
        if len(loc) > _DEEPEST:
            self._refuse(at, f"nested deeper than {_DEEPEST}")
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, loc)
        if first == "[":
            return self._array(at, loc)
        if first == '"':
            return self._string(at)
        if match := _WORD.match(self._text, at):
            return _WORDS[match[0]], match.end()
        if match := _NUMBER.match(self._text, at):
            return self._number(match, at), match.end()
        what = f"`{first}` cannot stand here" if first else "it ends too early"
        return self._refuse(at, what)

    def _number(self, match: re.Match[str], at: int) -> int | float:
        if len(match[0]) > _LONGEST_NUMBER:
            self._refuse(at, f"a number of {len(match[0])} digits")
        return float(match[0]) if match[1] or match[2] else int(match[0])

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self._text, at + 1, True)
        except JSONDecodeError as error:
            self._refuse(error.pos, error.msg)
        if _LONE_SURROGATE.search(value):
            self._refuse(at, "half of a surrogate pair in a text", "write the whole character")
        return value, end

    def _object(self, at: int, loc: Loc) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                self._refuse(at, "a key in double quotes is missing here")
            key_at = at
            key, at = self._string(at)
            if key in found:
                self._refuse(key_at, f'the key "{key}" is here twice', "keep one of them")
            at = self._skip(at)
            if self._text[at : at + 1] != ":":
                self._refuse(at, "`:` is missing here")
            found[key], at = self._value(self._skip(at + 1), (*loc, key), key_at)
            at, closed = self._next(at, "}")
            if closed:
                return found, at

    def _array(self, at: int, loc: Loc) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "]":
            return found, at + 1
        while True:
            value, at = self._value(at, (*loc, len(found)), at)
            found.append(value)
            at, closed = self._next(at, "]")
            if closed:
                return found, at

    def _next(self, at: int, closing: str) -> tuple[int, bool]:
        """After a value: past the comma, or past the closing bracket."""
        at = self._skip(at)
        mark = self._text[at : at + 1]
        if mark == closing:
            return at + 1, True
        if mark != ",":
            self._refuse(at, f"`,` or `{closing}` is missing here")
        return self._skip(at + 1), False
