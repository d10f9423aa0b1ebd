"""Other tools' files: YAML, JSON or JSON lines, with the place of every value and its use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from skillup.errors import InvalidFilesError, Problem
from skillup.load.datasets import no_constant
from skillup.load.yaml_reader import Loc, field_name, parse_yaml, read_text, refuse

Kind = Literal["lost", "changed"]
JSON_LINES = {".jsonl", ".ndjson"}
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF = re.compile(r"[\ud800-\udfff]")


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
        return f"{self.file}:{self.line}:{self.column}:{field} {self.what}; {self.instead}"


@dataclass(eq=False)
class SourceFile:
    """One file (or one line of a JSON lines file) of another tool."""

    path: Path
    data: Any
    locate: Callable[..., tuple[int, int]]
    """Line and column of the value at a place (with `key=True`, of its key), or of the nearest."""
    prefix: Loc = ()  # What comes before a place's name: the index of the line, for JSON lines
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
        yield loc
    elif isinstance(data, dict | list):
        for part, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _unused(value, (*loc, part), used, inner)


def open_sources(path: Path) -> list[SourceFile]:
    """The file's values: one, or one for each line. Raises InvalidFilesError for anything else."""
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return [parse_source(read_text(path), path)]
    if suffix == ".json":
        return [parse_json(read_text(path), path)]
    if suffix not in JSON_LINES:
        what = f"`{path.suffix or path.name}` files are not read"
        refuse(path, what, "give a .yaml, .json or .jsonl file")
    lines = enumerate(read_text(path).split("\n"), start=1)
    found = [parse_json(line, path, number) for number, line in lines if line.strip()]
    if not found:
        refuse(path, "the file is empty")
    return [replace(source, prefix=(index,)) for index, source in enumerate(found)]


def parse_source(text: str, path: Path, first_line: int = 1) -> SourceFile:
    """YAML whose top level is a mapping or a list. Raises InvalidFilesError."""
    try:
        document = parse_yaml(text, path, lists=True)
    except InvalidFilesError as error:
        found = [replace(p, line=p.line + first_line - 1) for p in error.problems]
        raise InvalidFilesError(found) from None

    def locate(loc: Loc, **more: bool) -> tuple[int, int]:
        line, column = document.locate(loc, **more)
        return line + first_line - 1, column

    return SourceFile(path, document.data, locate)


def parse_json(text: str, path: Path, first_line: int = 1) -> SourceFile:
    """One JSON value. Raises InvalidFilesError with the place of what is no JSON."""
    message, line, column = "", 1, 1
    try:
        data = json.loads(text, parse_constant=no_constant)
        if "\\u" in text and _HALF.search(json.dumps(data, ensure_ascii=False)):
            message = "half of a surrogate pair in a text"
    except json.JSONDecodeError as error:
        message, line, column = error.msg, error.lineno, error.colno
    except (ValueError, RecursionError) as error:
        message = str(error).partition(";")[0]
    if message:
        refuse(path, f"this is not JSON: {message}", "", line + first_line - 1, column)
    # JSON is YAML but for a few characters and escapes: that is how its values are found again.
    pairs = _PAIR.sub(lambda pair: json.loads(f'"{pair[0]}"'), text)
    try:
        return replace(parse_source(pairs, path, first_line), data=data)
    except InvalidFilesError as error:
        if any(words in error.problems[0].message for words in ("already", "nesting")):
            raise
        return SourceFile(path, data, lambda *_, **__: (first_line, 1))
