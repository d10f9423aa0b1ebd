"""Reading YAML: plain data, and where each value of it stands in the file.

The only place that reads with a YAML library. Scalars follow the core schema of YAML 1.2: only
``true`` and ``false`` are booleans, so ``on`` and ``yes`` are texts; there are no dates, no base-60
numbers (``1:30`` is text), no ``1_000``; ``0o17`` is octal, ``0x1F`` hexadecimal, ``0123`` is 123.
What YAML allows and a case must not have is refused with its place: duplicate keys, tags, several
documents, aliases that multiply, nesting without end (which ``yaml.compose`` would follow).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from yaml import SafeLoader
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from skillup.errors import InvalidFilesError, Problem
from skillup.load.file_text import decode, line_and_column, read_text

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML without libyaml: many times slower, and refuses more tabs
    _Parser = SafeLoader  # type: ignore[assignment,misc]

MAX_DEPTH = 100
MAX_REPEATED = 1_000_000
"""Characters that aliases may repeat, in all."""
_MAX_PROBLEMS = 100

Loc = tuple[str | int, ...]
Scalar = str | int | float | bool | None
Place = tuple[int, int, dict[Any, "Place"]]
"""Offsets in the text of a value's key and of the value, and the places of what is inside it."""


@dataclass(frozen=True, eq=False)
class Document:
    """One YAML file as data, whose top level is a mapping; without a `place`, all is at 1:1."""

    path: Path
    text: str
    data: dict[Any, Any]
    place: Place = field(default=(0, 0, {}), kw_only=True, repr=False)

    def as_written(self, loc: Sequence[str | int]) -> Loc:
        """Where in the file stands what the model has at `loc`: the same, but in branches."""
        return tuple(loc)

    def locate(self, loc: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value at `loc`; with `key`, of the key it stands under.

        Where nothing is at `loc`, the nearest value around it is meant. A value that was left
        empty stands where its key does, and an item of a list is its own key.
        """
        place = self.place
        for part in loc:
            if part not in place[2]:
                break
            place = place[2][part]
        return line_and_column(self.text, place[0] if key else place[1])

    def problem(
        self,
        loc: Sequence[str | int],
        message: str,
        fix: str = "",
        severity: str = "error",
        *,
        at: tuple[int, int] | None = None,
    ) -> Problem:
        """A problem with the value at `loc`; `at` outranks its place."""
        where = field_name(self.as_written(loc))
        return Problem(self.path, *(at or self.locate(loc)), where, message, fix, severity)


def field_name(loc: Iterable[object]) -> str:
    """A place in nested data, as people write it: ``input.turns[2]``, ``files["notes.txt"]``."""
    text = ""
    for part in loc:
        if isinstance(part, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", part):
            text += f".{part}" if text else part
            continue
        shown = str(part) if str(part).isprintable() else repr(str(part))[1:-1]
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        text += f'["{shown}"]' if isinstance(part, str) else f"[{shown}]"
    return text


def read_yaml(path: Path) -> Document:
    """The YAML file at `path`. Raises InvalidFilesError with all that is wrong with it.

    It never waits (a pipe is refused) and reads at most 16 MB.
    """
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str | bytes, path: Path) -> Document:
    """As :func:`read_yaml`, from text, or from bytes in UTF-8; `path` is for the messages."""
    text = decode(text, path) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    builder = _Builder(text)
    try:
        data, place = builder.document()
        if not builder.found:
            return Document(path, text, data, place=place)
    except _StopBuilding:
        pass
    except (YAMLError, ValueError, OverflowError) as error:  # also a character that is none
        builder.found.append(_explain(error, text))
    raise InvalidFilesError(
        [
            Problem(path, *line_and_column(text, at), "", message, fix)
            for at, message, fix in sorted(builder.found)
        ]
    )


class SpelledInt(int):
    """A whole number in an unusual spelling (``0042``, ``+7``, ``0x1F``): ``str()`` gives it back.

    Where a text is expected, ``0042`` has to stay ``0042``.
    """

    spelling: str

    def __str__(self) -> str:
        return self.spelling


_WORDS: dict[str, Scalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-")
       for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<decimal>[-+]?[0-9]+)|(?P<other_base>0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_LONGEST_NUMBER = 1000  # Python needs quadratic time for long ones


def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError (``what || fix``) if it is too long."""
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(
            f"a number of {len(text)} characters || the limit is {_LONGEST_NUMBER}; "
            "put it in quotes if it is text"
        )
    if number.lastgroup == "float":
        return float(text)
    value = SpelledInt(text, 10 if number.lastgroup == "decimal" else 0)
    if int.__repr__(value) == text:
        return int(value)
    value.spelling = text
    return value


class _StopBuilding(Exception):  # noqa: N818 - a signal, not an error of anybody
    """There is no point in going on; what was found says why."""


Built = tuple[Any, dict[Any, Place]]


def _start(event: Any) -> int:
    return int(event.start_mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


class _Builder:
    """From a parser's events to data and places. What is odd is noted, and building goes on."""

    def __init__(self, text: str) -> None:
        self.found: list[tuple[int, str, str]] = []
        """Offset, message, fix."""
        self._text = text
        self._next: Callable[[], Any] = lambda: None
        self._anchors: dict[str, tuple[Any, dict[Any, Place], int] | None] = {}  # None while open
        self._repeated = 0

    def document(self) -> tuple[dict[Any, Any], Place]:
        """The one mapping in the file."""
        self._next = _Parser(self._text).get_event
        self._next()  # the stream begins
        if not isinstance(self._next(), DocumentStartEvent):
            self._stop(0, "the file is empty", "write `key: value` lines")
        event = self._next()
        at = _start(event)
        data, inside = self._value(event, 0)
        if data is None:
            self._stop(0, "the file is empty", "write `key: value` lines")
        if not isinstance(data, dict):
            what = "a list" if isinstance(data, list) else "a single value"
            self._stop(at, f"the file holds {what}, not a mapping", "write `key: value` lines")
        self._next()  # the document ends
        event = self._next()
        if isinstance(event, DocumentStartEvent):
            fix = "keep one document in each file"
            self._stop(_start(event), "a second document begins here", fix)
        return data, (at, at, inside)

    def _value(self, event: Any, depth: int) -> Built:
        """The value that begins with `event`, and the places inside it."""
        at = _start(event)
        if isinstance(event, AliasEvent):
            return self._alias(str(event.anchor), at)
        value: Any
        inside: dict[Any, Place] = {}
        if isinstance(event, ScalarEvent):
            value, size = self._scalar(event), len(event.value) + 1
        else:
            self._check_tag(event, "!")
            if depth >= MAX_DEPTH:
                fix = "put a text that contains brackets in quotes"
                self._stop(at, f"more than {MAX_DEPTH} levels of nesting", fix)
            before = self._repeated
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            build = self._mapping if isinstance(event, MappingStartEvent) else self._sequence
            value, inside, end = build(depth + 1)
            size = end - at + self._repeated - before
        if event.anchor is not None:
            self._anchors[event.anchor] = value, inside, size
        return value, inside

    def _sequence(self, depth: int) -> tuple[list[Any], dict[Any, Place], int]:
        data: list[Any] = []
        inside: dict[Any, Place] = {}
        while not isinstance(event := self._next(), SequenceEndEvent):
            at = _start(event)
            value, places = self._value(event, depth)
            inside[len(data)] = at, at, places
            data.append(value)
        return data, inside, _end(event)

    def _mapping(self, depth: int) -> tuple[dict[Any, Any], dict[Any, Place], int]:
        data: dict[Any, Any] = {}
        inside: dict[Any, Place] = {}
        merges: list[tuple[int, Any, dict[Any, Place]]] = []
        while not isinstance(event := self._next(), MappingEndEvent):
            key_at = _start(event)
            merge = isinstance(event, ScalarEvent) and event.value == "<<" and not event.style
            key = None if merge else self._key(event, depth)
            event = self._next()
            at = _start(event)
            value, places = self._value(event, depth)
            if merge:
                merges.append((at, value, places))
            elif key in inside:
                first = "line {}, column {}".format(*line_and_column(self._text, inside[key][0]))
                message = f"the key `{key}` was given already, at {first}"
                self._note(key_at, message, "keep one of the two")
            else:
                data[key] = value
                if isinstance(event, ScalarEvent) and not event.value and not event.style:
                    at = key_at  # an empty value has no place of its own
                inside[key] = key_at, at, places
        for at, value, places in merges:
            self._merge(data, inside, at, value, places)
        return data, inside, _end(event)

    def _key(self, event: Any, depth: int) -> Any:
        key = self._value(event, depth)[0] if isinstance(event, ScalarEvent | AliasEvent) else []
        if isinstance(key, list | dict):
            message = "a list or a mapping cannot be a key"
            self._stop(_start(event), message, "put the key in quotes if it is text")
        return key

    def _merge(
        self, data: dict[Any, Any], inside: dict[Any, Place],
        at: int, merged: Any, places: dict[Any, Place],
    ) -> None:  # fmt: skip
        """Add what `<<` brought: explicit keys win, then whichever was merged first."""
        sources = [(merged, places)]
        if isinstance(merged, list):
            sources = [(source, places[number][2]) for number, source in enumerate(merged)]
        for source, source_places in sources:
            if source is None:
                continue  # an alias that leads nowhere, which is a problem of its own
            if not isinstance(source, dict):
                self._note(at, "`<<` takes a mapping, or a list of mappings",
                           'write `<<: *name`, or put the key "<<" in quotes')  # fmt: skip
                return
            for key in source.keys() - data.keys():
                data[key], inside[key] = source[key], source_places[key]

    def _alias(self, name: str, at: int) -> Built:
        found = self._anchors.get(name)
        if found is None:
            inner = name in self._anchors
            message = "stands inside its own value" if inner else f"has no `&{name}` above it"
            fix = "remove it" if inner else "put it in quotes if it is text"
            self._note(at, f"the alias `*{name}` {message}", fix)
            return None, {}
        value, inside, size = found
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            message = f"the aliases repeat more than {MAX_REPEATED} characters"
            self._stop(at, message, "write out what is meant")
        return value, inside

    def _scalar(self, event: Any) -> Scalar:
        if event.tag is None and not event.style:
            try:
                return resolve_plain(event.value)
            except ValueError as error:
                message, _, fix = str(error).partition(" || ")
                self._note(_start(event), message, fix)
        self._check_tag(event, "!", "tag:yaml.org,2002:str")
        return str(event.value)

    def _check_tag(self, event: Any, *allowed: str) -> None:
        if event.tag is not None and event.tag not in allowed:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)[:60]
            self._note(_start(event), f"the tag `{tag}` is not allowed: a file holds "
                       "plain data", "remove it, or quote a text that begins with `!`")  # fmt: skip

    def _note(self, at: int, message: str, fix: str) -> None:
        self.found.append((at, message, fix))
        if len(self.found) >= _MAX_PROBLEMS:
            raise _StopBuilding

    def _stop(self, at: int, message: str, fix: str) -> NoReturn:
        self.found.append((at, message, fix))
        raise _StopBuilding


# What a parser's complaint means to somebody who is writing a case: some words of it (libyaml and
# PyYAML differ) and of its context; then the message, and the fix. ``^`` before the message says
# that it is about where the construct begins, and not about where the parser gave up.
_QUOTE_IT = "put the text in quotes"
_COMPLAINTS: tuple[tuple[str, str, str, str], ...] = (
    ("mapping values are not allowed|found unexpected ':'", "", "`:` cannot stand here",
     "check the indentation, put a text with `: ` in quotes, leave a blank after a key's `:`"),
    ("could not find expected ':'", "", "^a key without `:`",
     "write `key: value`; a text that goes on must be indented deeper"),
    ("unexpected (end of stream|document)", "", "^this quote is never closed",
     "close it; in a single-quoted text, write '' for an apostrophe"),
    ("',' or '[]}]'", "", "`,` or the closing bracket is missing here",
     "what is open begins at line {line}"),
    ("unknown escape|hexa?decimal|character escape", "",
     "an escape that YAML does not know in a double-quoted text",
     "put a regex or a Windows path in single quotes, or write \\\\ for each backslash"),
    ("alphabetic or numeric", "alias", "^`*` begins an alias (`*name`), not a text", _QUOTE_IT),
    ("alphabetic or numeric", "anchor", "^`&` begins an anchor (`&name`), not a text", _QUOTE_IT),
    ("comment or (a )?line break|indentation indicator|chomping", "",
     "^`|` and `>` begin a text on the lines below", _QUOTE_IT),
    ("sequence entries are not allowed", "", "a list cannot begin here",
     "put each `- ` on a line of its own, or the text in quotes"),
    ("expected key|'-' indicator|<block end>", "block",
     "this does not continue what begins at line {line}",
     "line it up with the keys (or `- `) above; if a quote ended early, quote the whole text"),
    ("node content", "", "a value is missing before this", f"write it, or {_QUOTE_IT}"),
)  # fmt: skip
_NOT_PRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _explain(error: Exception, text: str) -> tuple[int, str, str]:
    """An offset in `text`, what is wrong there, and what would be right."""
    if not isinstance(error, MarkedYAMLError):
        match = _NOT_PRINTABLE.search(text)
        if match is None:
            return 0, f"this is not YAML ({' '.join(str(error).split())})", ""
        message = f"the character U+{ord(match[0]):04X} may not be in a YAML file"
        return match.start(), message, "remove it; is this UTF-16, or no text at all?"
    problem, context = error.problem or "", error.context or ""
    # libyaml's last mark may lie behind the text.
    at = min(error.problem_mark.index if error.problem_mark else 0, len(text))
    if text[at : at + 1] == "\t" and ("start any token" in problem or "tab char" in problem):
        return at, "a tab where only blanks may indent", "indent with blanks"
    if "start any token" in problem:
        return at, f"a text cannot begin with `{text[at : at + 1]}`", _QUOTE_IT
    opened_at = error.context_mark.index if error.context_mark else at
    for words, context_words, message, fix in _COMPLAINTS:
        if context_words in context and re.search(words, problem):
            line = str(line_and_column(text, opened_at)[0])
            where = opened_at if message.startswith("^") else at
            return where, message.lstrip("^").replace("{line}", line), fix.replace("{line}", line)
    return at, f"this is not YAML ({context + ': ' if context else ''}{problem})", ""
