"""Reading YAML: the only place in skillup that knows a YAML library.

Plain data only, by the rules of YAML 1.2 (see :mod:`skillup.load.scalars`); merge keys work. What
YAML allows and a case must not have is refused with its place: duplicate keys, tags, several
documents, aliases that explode, nesting without end. The happy path keeps no positions; the first
question for one parses the text again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import Event
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import ScalarToken

from skillup.errors import InvalidFilesError, Problem
from skillup.load import yaml_errors
from skillup.load.file_text import decode, line_and_column, read_text
from skillup.load.yaml_builder import Builder, LookAgain, Places, StopBuilding

try:
    from yaml.cyaml import CParser
except ImportError:  # PyYAML without libyaml: slower, otherwise the same
    CParser = None

HAS_LIBYAML = CParser is not None


class _Events(Protocol):
    def get_event(self) -> Event | None: ...


@dataclass(frozen=True)
class Document:
    """One YAML file as data; it can say where each value stands."""

    path: Path
    text: str
    data: dict[Any, Any]
    libyaml: bool = HAS_LIBYAML

    def locate(self, loc: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value at `loc`, or of its key.

        What is not there is looked for in vain; then it is the nearest value around it. A value
        that was left empty stands where its key does.
        """
        places = self._places
        value, found = places.data, (places.start, places.start)
        for part in loc:
            inside = places.inside(value, part)
            if inside is None:
                break
            value, found = value[part], inside
        return self._line_and_column(found[0] if key else found[1])

    @cached_property
    def _places(self) -> Places:
        places = Places()
        Builder(_parser(self.text, libyaml=self.libyaml).get_event, places).build()
        return places

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        text = self.text
        for offset, character in enumerate(text):
            if character == "\n" or (character == "\r" and text[offset + 1 : offset + 2] != "\n"):
                starts.append(offset + 1)
        return starts

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def read_yaml(path: Path, *, libyaml: bool = HAS_LIBYAML) -> Document:
    """The YAML file at `path`. Raises InvalidFilesError with all that is wrong with it.

    It never waits (a pipe is refused) and reads at most 16 MB.
    """
    return parse_yaml(read_text(path), path, libyaml=libyaml)


def parse_yaml(text: str | bytes, path: Path, *, libyaml: bool = HAS_LIBYAML) -> Document:
    """As :func:`read_yaml`, from text, or from bytes in UTF-8; `path` is for the messages.

    Without `libyaml`, PyYAML's own parser reads it: the same result, about twenty times slower.
    """
    text = decode(text, path) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    try:
        data = Builder(_parser(text, libyaml=libyaml).get_event).build()
    except (LookAgain, StopBuilding, YAMLError, UnicodeEncodeError):
        raise InvalidFilesError(_what_is_wrong(text, path, libyaml)) from None
    return Document(path, text, data, libyaml)


def _what_is_wrong(text: str, path: Path, libyaml: bool) -> list[Problem]:
    """Everything that a second, careful look finds."""
    found: list[tuple[int, str, str, str]] = []
    places = Places()
    try:
        builder = Builder(_parser(text, libyaml=libyaml).get_event, places)
        builder.build()
    except (StopBuilding, LookAgain):
        pass
    except (YAMLError, UnicodeEncodeError) as error:
        offset, message, fix = _explain(error, text)
        found.append((offset, "", message, fix))
    found.extend((f.at, f.field, f.message, f.fix) for f in places.findings)
    problems = []
    for offset, field, message, fix in sorted(found):
        line, column = line_and_column(text, min(offset, len(text)))
        problems.append(Problem(path, line, column, field, message, fix))
    return problems


def _explain(error: YAMLError | UnicodeEncodeError, text: str) -> tuple[int, str, str]:
    forbidden = yaml_errors.forbidden_character(text)
    if not isinstance(error, MarkedYAMLError):
        return forbidden or (0, f"this is not YAML ({error})", "")
    at = min(error.problem_mark.index if error.problem_mark else 0, len(text))
    context_at = error.context_mark.index if error.context_mark else None
    lines = {} if context_at is None else {context_at: line_and_column(text, context_at)[0]}
    complaint = yaml_errors.Complaint(error.problem or "", error.context or "", at, context_at)
    return yaml_errors.explain(complaint, text, lines)


def _parser(text: str, *, libyaml: bool) -> _Events:
    return CParser(text) if libyaml and CParser is not None else _PurePythonParser(text)
