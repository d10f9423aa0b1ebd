"""Opening a file of another tool: YAML, JSON or JSON lines, each with places and a ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from skillup.errors import InvalidFilesError, Problem
from skillup.interop.json_text import JsonText
from skillup.interop.report import Ledger, Loc, Note, unused
from skillup.load.file_text import read_text, refuse
from skillup.load.yaml_reader import field_name, parse_yaml

JSON_LINES = {".jsonl", ".ndjson"}
_YAML = {".yaml", ".yml"}
_LIST_FOLLOWS = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n|---[ \t]*(?:#.*)?\r?\n)*[ \t]*(?:- |-\r?\n|\[)")
_MARKER = re.compile(r"^---[ \t]*(?=#|\r?$)", re.MULTILINE)
_WRAPPED = "items"


class _Locator(Protocol):
    def __call__(self, loc: Loc, *, key: bool = False) -> tuple[int, int]: ...


@dataclass(eq=False)
class Source:
    """One file (or one line of a JSON lines file) of another tool."""

    path: Path
    data: Any
    locate: _Locator
    ledger: Ledger = field(default_factory=Ledger)
    prefix: Loc = ()
    """What stands before a place's name: the index of the line, for JSON lines."""
    related: dict[Path, list[Source]] = field(default_factory=dict)
    """The files that this one names and that were read with it; shared with them."""

    def open_related(self, path: Path) -> list[Source]:
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


def open_sources(path: Path) -> list[Source]:
    """The file's values: one, or one for each line. Raises InvalidFilesError for anything else."""
    suffix = path.suffix.lower()
    if suffix in JSON_LINES:
        return _json_lines(path)
    if suffix == ".json":
        value = JsonText(read_text(path), path)
        return [Source(path, value.data, value.locate)]
    if suffix in _YAML:
        return [parse_source(read_text(path), path)]
    what = f"`{path.suffix or path.name}` files are not read"
    return refuse(path, what, "give a .yaml, .json or .jsonl file")


def parse_source(text: str, path: Path) -> Source:
    """YAML whose top level is a mapping or a list."""
    if not _LIST_FOLLOWS.match(text):
        document = parse_yaml(text, path)
        return Source(path, document.data, document.locate)
    # The YAML reader takes mappings only: the list becomes the value of a key on a line above.
    body = _MARKER.sub(lambda match: " " * len(match[0]), text, count=1)
    try:
        wrapped = parse_yaml(f"{_WRAPPED}:\n{body}", path)
    except InvalidFilesError as error:
        raise InvalidFilesError([_one_line_up(problem) for problem in error.problems]) from None

    def locate(loc: Loc, *, key: bool = False) -> tuple[int, int]:
        line, column = wrapped.locate((_WRAPPED, *loc), key=key and bool(loc))
        return max(1, line - 1), column

    return Source(path, wrapped.data[_WRAPPED], locate)


def _one_line_up(problem: Problem) -> Problem:
    name = problem.field.removeprefix(_WRAPPED).removeprefix(".")
    return replace(problem, line=max(1, problem.line - 1), field=name)


def _json_lines(path: Path) -> list[Source]:
    found: list[Source] = []
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = JsonText(line, path, first_line=number)
        except InvalidFilesError as error:
            problems.extend(error.problems)
            continue
        found.append(Source(path, value.data, value.locate, prefix=(len(found),)))
    if problems:
        raise InvalidFilesError(problems)
    if not found:
        refuse(path, "the file is empty")
    return found
