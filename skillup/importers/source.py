"""Other tools' files: YAML, JSON or JSON lines, with the place of every value and its use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import field_name, line_and_column, parse_yaml, read_text, refuse

Loc = tuple[str | int, ...]
Kind = Literal["lost", "changed"]
JSON_LINES = {".jsonl", ".ndjson"}


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was not converted, or not exactly. Lines and columns count from 1."""

    file: Path
    line: int
    column: int
    field: str
    what: str
    instead: str
    kind: Kind = "lost"

    def __str__(self) -> str:
        field = f" {self.field}:" if self.field else ""
        instead = f"; {self.instead}" if self.instead else ""
        return f"{self.file}:{self.line}:{self.column}:{field} {self.what}{instead}"

    def as_dict(self, shown: str) -> dict[str, Any]:
        """For ``--json``; `shown` is the file's name for the user."""
        names = ("line", "column", "field", "kind", "what", "instead")
        return {"file": shown, **{name: getattr(self, name) for name in names}}


class Locator(Protocol):
    """Line and column of the value (or of its key) at a place, or of the nearest one around it."""

    def __call__(self, loc: Loc, *, key: bool = False) -> tuple[int, int]: ...


@dataclass(eq=False)
class SourceFile:
    """One file (or one line of a JSON lines file) of another tool."""

    path: Path
    data: Any
    locate: Locator
    prefix: Loc = ()
    """What comes before a place's name: the index of the line, for JSON lines."""
    used: set[Loc] = field(default_factory=set)
    """Everything at and below these places has been converted."""
    remarks: dict[tuple[Loc, str], tuple[str, Kind]] = field(default_factory=dict)
    related: dict[Path, list[SourceFile]] = field(default_factory=dict)
    """The files that were read because this one names them; shared with them."""

    def open_related(self, path: Path) -> list[SourceFile]:
        """A file that this one names, read once; its notes belong to this one's."""
        if path not in self.related:
            self.related[path] = open_sources(path)
            for source in self.related[path]:
                source.related = self.related
        return self.related[path]

    def problem(self, loc: Loc, message: str, fix: str = "") -> Problem:
        """Something that makes the file impossible to convert."""
        return Problem(self.path, *self.locate(loc), self._name(loc), message, fix)

    def notes(self, explanations: dict[str, str]) -> list[Note]:
        """All notes in the file's order; `explanations` say why a key is not converted."""
        found = [self._note(loc, what, *about) for (loc, what), about in self.remarks.items()]
        for loc in unused(self.data, self.used):
            names = [part for part in reversed(loc) if isinstance(part, str)]
            name = "vars" if "vars" in names else next(iter(names), "")
            instead = explanations.get(name, "left out: there is no counterpart")
            found.append(self._note(loc, "not carried over", instead, "lost"))
        return sorted(found, key=lambda note: (note.line, note.column))

    def _note(self, loc: Loc, what: str, instead: str, kind: Kind) -> Note:
        line, column = self.locate(loc, key=bool(loc) and isinstance(loc[-1], str))
        return Note(self.path, line, column, self._name(loc), what, instead, kind)

    def _name(self, loc: Loc) -> str:
        return field_name((*self.prefix, *loc))


def unused(data: Any, used: set[Loc]) -> Iterator[Loc]:
    """The highest places in `data` below which nothing was used, in the data's order.

    The data as a whole is never such a place: then each of its keys is.
    """
    inner = {loc[:length] for loc in used for length in range(len(loc))}
    yield from _unused(data, (), used, inner)


def _unused(data: Any, loc: Loc, used: set[Loc], inner: set[Loc]) -> Iterator[Loc]:
    if loc in used:
        return
    if loc and loc not in inner:
        # The only thing in a mapping says more than the mapping.
        while isinstance(data, dict) and len(data) == 1:
            key, data = next(iter(data.items()))
            loc = (*loc, key)
        yield loc
    elif isinstance(data, dict | list):
        for part, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _unused(value, (*loc, part), used, inner)


def open_sources(path: Path) -> list[SourceFile]:
    """The file's values: one, or one for each line. Raises InvalidFilesError for anything else."""
    suffix = path.suffix.lower()
    if suffix in JSON_LINES:
        return _json_lines(path)
    if suffix == ".json":
        return [parse_json(read_text(path), path)]
    if suffix in (".yaml", ".yml"):
        return [parse_source(read_text(path), path)]
    what = f"`{path.suffix or path.name}` files are not read"
    return refuse(path, what, "give a .yaml, .json or .jsonl file")


def _json_lines(path: Path) -> list[SourceFile]:
    found: list[SourceFile] = []
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                found.append(replace(parse_json(line, path, number), prefix=(len(found),)))
            except InvalidFilesError as error:
                problems.extend(error.problems)
    if problems:
        raise InvalidFilesError(problems)
    return found or refuse(path, "the file is empty")


_LIST_FOLLOWS = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n|---[ \t]*(?:#.*)?\r?\n)*[ \t]*(?:- |-\r?\n|\[)")
_MARKER = re.compile(r"^---[ \t]*(?=#|\r?$)", re.MULTILINE)
_WRAPPED = "items"


def _line_up(text: str) -> str:
    return re.sub(r"\bline (\d+)", lambda match: f"line {int(match[1]) - 1}", text)


def parse_source(text: str, path: Path) -> SourceFile:
    """YAML whose top level is a mapping or a list. Raises InvalidFilesError."""
    if not _LIST_FOLLOWS.match(text):
        document = parse_yaml(text, path)
        return SourceFile(path, document.data, document.locate)
    # The YAML reader takes mappings only: the list becomes the value of a key on a line above.
    body = _MARKER.sub(lambda match: " " * len(match[0]), text, count=1)
    try:
        wrapped = parse_yaml(f"{_WRAPPED}:\n{body}", path)
    except InvalidFilesError as error:
        found = [
            replace(p, line=max(1, p.line - 1), message=_line_up(p.message), fix=_line_up(p.fix))
            for p in error.problems
        ]
        raise InvalidFilesError(found) from None

    def locate(loc: Loc, *, key: bool = False) -> tuple[int, int]:
        line, column = wrapped.locate((_WRAPPED, *loc), key=key and bool(loc))
        return max(1, line - 1), column

    return SourceFile(path, wrapped.data[_WRAPPED], locate)


_TOKEN = re.compile(r'[\s,:]*("(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s,:\[\]{}"]+)')
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DEEPEST = 100


def parse_json(text: str, path: Path, first_line: int = 1) -> SourceFile:
    """One JSON value. Raises InvalidFilesError with the place of what is no JSON."""

    def wrong(message: str, line: int, column: int) -> NoReturn:
        refuse(path, f"this is not JSON: {message}", "", line + first_line - 1, column)

    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        wrong(error.msg, error.lineno, error.colno)
    except (RecursionError, ValueError):
        wrong("a number is too long, or it is nested too deeply", 1, 1)
    places: dict[Loc, tuple[int, int]] = {}
    tokens = _TOKEN.finditer(text)
    for at, message in _json_problems(tokens, next(tokens), (), 0, places):
        wrong(message, *line_and_column(text, at))

    def locate(loc: Loc, *, key: bool = False) -> tuple[int, int]:
        while loc not in places:
            loc = loc[:-1]
        line, column = line_and_column(text, places[loc][0 if key else 1])
        return line + first_line - 1, column

    return SourceFile(path, data, locate)


def _json_problems(
    tokens: Iterator[re.Match[str]],
    token: re.Match[str],
    loc: Loc,
    key_at: int,
    places: dict[Loc, tuple[int, int]],
) -> Iterator[tuple[int, str]]:
    """Fill `places` with the offsets of keys and values; what Python's reader lets pass."""
    at, opening = token.start(1), token[1]
    places[loc] = key_at, at
    if opening in ("NaN", "Infinity", "-Infinity"):
        yield at, f"`{opening}` is no number"
    if opening[0] == '"' and _LONE_SURROGATE.search(json.loads(opening)):
        yield at, "half of a surrogate pair in a text"
    if opening not in ("{", "["):
        return
    if len(loc) >= _DEEPEST:
        yield at, f"nested deeper than {_DEEPEST}"
    number = 0
    while (token := next(tokens))[1] not in ("}", "]"):
        key, inner_at = (json.loads(token[1]) if opening == "{" else number), token.start(1)
        if (*loc, key) in places:
            yield inner_at, f"the key {token[1]} is given twice"
        token = token if opening == "[" else next(tokens)
        yield from _json_problems(tokens, token, (*loc, key), inner_at, places)
        number += 1
