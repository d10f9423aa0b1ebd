"""Opening a file of another tool: YAML, JSON or JSON lines, each with places and a ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NoReturn, Protocol

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.notes import ImportNotes, Loc, Note, unused
from skillup.load.file_text import line_and_column, read_text, refuse
from skillup.load.yaml_reader import field_name, parse_yaml

# JSON with the place of every value; the standard library's reader keeps none.

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


JSON_LINES = {".jsonl", ".ndjson"}
_YAML = {".yaml", ".yml"}
_LIST_FOLLOWS = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n|---[ \t]*(?:#.*)?\r?\n)*[ \t]*(?:- |-\r?\n|\[)")
_MARKER = re.compile(r"^---[ \t]*(?=#|\r?$)", re.MULTILINE)
_WRAPPED = "items"


class _Locator(Protocol):
    def __call__(self, loc: Loc, *, key: bool = False) -> tuple[int, int]: ...


@dataclass(eq=False)
class SourceFile:
    """One file (or one line of a JSON lines file) of another tool."""

    path: Path
    data: Any
    locate: _Locator
    ledger: ImportNotes = field(default_factory=ImportNotes)
    prefix: Loc = ()
    """What stands before a place's name: the index of the line, for JSON lines."""
    related: dict[Path, list[SourceFile]] = field(default_factory=dict)
    """The files that this one names and that were read with it; shared with them."""

    def open_related(self, path: Path) -> list[SourceFile]:
        """A file that this one names; each is read once, and its notes belong to this one's."""
        if path not in self.related:
            self.related[path] = open_sources(path)
            for source in self.related[path]:
                source.related = self.related
        return self.related[path]

    def problem(self, loc: Loc, message: str, fix: str = "") -> Problem:
        """Something that makes the file impossible to convert."""
        line, column = self.locate(loc)
        return Problem(self.path, line, column, self.name_of(loc), message, fix)

    def name_of(self, loc: Loc) -> str:
        """`loc` as people write it."""
        return field_name((*self.prefix, *loc))

    def notes(self, explanations: dict[str, str]) -> Iterator[Note]:
        """All there is to say, in the file's order; `explanations` are by the name of a key."""
        found = [
            self._note(loc, what, instead, kind)
            for (loc, what), (instead, kind) in self.ledger.notes.items()
        ]
        for loc in unused(self.data, self.ledger.used):
            names = [part for part in reversed(loc) if isinstance(part, str)]
            name = "vars" if "vars" in names else next(iter(names), "")
            instead = explanations.get(name, "left out: there is no counterpart")
            found.append(self._note(loc, "not carried over", instead, "lost"))
        yield from sorted(found, key=lambda note: (note.line, note.column))

    def _note(self, loc: Loc, what: str, instead: str, kind: Any) -> Note:
        line, column = self.locate(loc, key=bool(loc) and isinstance(loc[-1], str))
        return Note(self.path, line, column, self.name_of(loc), what, instead, kind)


def open_sources(path: Path) -> list[SourceFile]:
    """The file's values: one, or one for each line. Raises InvalidFilesError for anything else."""
    suffix = path.suffix.lower()
    if suffix in JSON_LINES:
        return _json_lines(path)
    if suffix == ".json":
        value = JsonText(read_text(path), path)
        return [SourceFile(path, value.data, value.locate)]
    if suffix in _YAML:
        return [parse_source(read_text(path), path)]
    what = f"`{path.suffix or path.name}` files are not read"
    return refuse(path, what, "give a .yaml, .json or .jsonl file")


def parse_source(text: str, path: Path) -> SourceFile:
    """YAML whose top level is a mapping or a list."""
    if not _LIST_FOLLOWS.match(text):
        document = parse_yaml(text, path)
        return SourceFile(path, document.data, document.locate)
    # The YAML reader takes mappings only: the list becomes the value of a key on a line above.
    body = _MARKER.sub(lambda match: " " * len(match[0]), text, count=1)
    try:
        wrapped = parse_yaml(f"{_WRAPPED}:\n{body}", path)
    except InvalidFilesError as error:
        raise InvalidFilesError([_one_line_up(problem) for problem in error.problems]) from None

    def locate(loc: Loc, *, key: bool = False) -> tuple[int, int]:
        line, column = wrapped.locate((_WRAPPED, *loc), key=key and bool(loc))
        return max(1, line - 1), column

    return SourceFile(path, wrapped.data[_WRAPPED], locate)


def _one_line_up(problem: Problem) -> Problem:
    name = problem.field.removeprefix(_WRAPPED).removeprefix(".")
    return replace(problem, line=max(1, problem.line - 1), field=name)


def _json_lines(path: Path) -> list[SourceFile]:
    found: list[SourceFile] = []
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = JsonText(line, path, first_line=number)
        except InvalidFilesError as error:
            problems.extend(error.problems)
            continue
        found.append(SourceFile(path, value.data, value.locate, prefix=(len(found),)))
    if problems:
        raise InvalidFilesError(problems)
    if not found:
        refuse(path, "the file is empty")
    return found
