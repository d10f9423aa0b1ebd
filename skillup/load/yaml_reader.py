"""Reading YAML: plain data, and where each value of it stands in the file.

The only place that reads with a YAML library. Scalars follow the core schema of YAML 1.2: only
``true`` and ``false`` are booleans, so ``on`` and ``yes`` are texts; there are no dates, no base-60
numbers (``1:30`` is text), no ``1_000``; ``0o17`` is octal, ``0x1F`` hexadecimal, ``0123`` is 123.
What YAML allows and a case must not have is refused with its place: duplicate keys, tags, several
documents, aliases that multiply, nesting without end.

It builds from the parser's events, for ``yaml.compose`` neither tells where an alias stands nor
allows an anchor to be defined again.
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
    SequenceStartEvent,
)

from skillup.errors import InvalidFilesError, Problem
from skillup.load.file_text import decode, line_and_column, read_text

try:
    from yaml._yaml import CParser
except ImportError:  # PyYAML without libyaml: many times slower, and refuses more tabs
    CParser = None  # type: ignore[assignment,misc]

HAS_LIBYAML = CParser is not None
MAX_DEPTH = 100
MAX_REPEATED = 1_000_000
"""So many characters of the file may aliases repeat, counted with those of aliases in them."""
_MAX_PROBLEMS = 100
_CORE_TAG = "tag:yaml.org,2002:"

Scalar = str | int | float | bool | None
Place = tuple[int, int, dict[Any, "Place"]]
"""Offsets in the text of a value's key and of the value, and the places of what is inside it."""
_NO_PLACES: dict[Any, Place] = {}
_NOWHERE: Place = (0, 0, _NO_PLACES)


@dataclass(frozen=True, eq=False)
class Document:
    """One YAML file as data, whose top level is a mapping; without a `place`, all is at 1:1."""

    path: Path
    text: str
    data: dict[Any, Any]
    place: Place = field(default=_NOWHERE, kw_only=True, repr=False)

    def as_written(self, loc: Sequence[str | int]) -> tuple[str | int, ...]:
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


def read_yaml(path: Path, *, libyaml: bool = HAS_LIBYAML) -> Document:
    """The YAML file at `path`. Raises InvalidFilesError with all that is wrong with it.

    It never waits (a pipe is refused) and reads at most 16 MB.
    """
    return parse_yaml(read_text(path), path, libyaml=libyaml)


def parse_yaml(text: str | bytes, path: Path, *, libyaml: bool = HAS_LIBYAML) -> Document:
    """As :func:`read_yaml`, from text, or from bytes in UTF-8; `path` is for the messages."""
    text = decode(text, path) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    builder = _Builder()
    try:
        parser = CParser(text) if libyaml and HAS_LIBYAML else SafeLoader(text)
        data, place = builder.document(parser.get_event)
    except _StopBuilding:
        data, place = {}, _NOWHERE
    except (YAMLError, ValueError, OverflowError) as error:  # also a character that is none
        at, message, fix = _explain(error, text)
        builder.found.append((at, "", message, fix, None))
    if builder.found:
        problems = []
        for at, where, message, fix, first_at in sorted(builder.found, key=lambda found: found[:4]):
            if first_at is not None:
                message += ", at line {}, column {}".format(*line_and_column(text, first_at))
            problems.append(Problem(path, *line_and_column(text, at), where, message, fix))
        raise InvalidFilesError(problems)
    return Document(path, text, data, place=place)


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
_NOT_TEXT = frozenset(["", *"~nNtTfF.-+0123456789"])
"""The first characters of everything that is not text; `""` stands for the empty scalar."""
_LONGEST_NUMBER = 1000  # Python needs quadratic time for long ones
_TAGGED: dict[str, Any] = {
    "tag:yaml.org,2002:int": int, "tag:yaml.org,2002:float": (int, float),
    "tag:yaml.org,2002:bool": bool, "tag:yaml.org,2002:null": type(None),
}  # fmt: skip


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


_UNNAMED, _MERGE = object(), object()
"""For a name: of a key, or of the value of a key that was refused; of what `<<` brings."""
_NO_KEY = "a list or a mapping cannot be a key", "put the key in quotes if it is text"


class _Builder:
    """From a parser's events to data and places. What is odd is noted, and building goes on."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str, str, str, int | None]] = []
        """Offset, field, message, fix, and for a duplicate key the offset of the first one."""
        self._anchors: dict[str, list[Any]] = {}  # value, places, length; empty while open
        self._names: list[Any] = []  # of the containers around
        self._repeated = 0
        self._next_event: Callable[[], Any]

    def document(self, next_event: Callable[[], Any]) -> tuple[dict[Any, Any], Place]:
        """The one mapping in the file."""
        self._next_event = next_event
        next_event()  # the stream begins
        data, at, inside = None, 0, _NO_PLACES
        if next_event().__class__ is DocumentStartEvent:
            event = next_event()
            data, inside = self._value(event, _UNNAMED)
            at = event.start_mark.index if data is not None else 0
            next_event()  # the document ends
            event = next_event()
            second_at = event.start_mark.index
            if event.__class__ is DocumentStartEvent:
                self._stop(second_at, "a second document begins here",
                           "keep one document in each file")  # fmt: skip
        if data is None:
            self._stop(at, "the file is empty", "write `key: value` lines")
        if not isinstance(data, dict):
            what = "a list" if isinstance(data, list) else "a single value"
            self._stop(at, f"the file holds {what}, not a mapping", "write `key: value` lines")
        return data, (at, at, inside)

    def _value(self, event: Any, name: Any) -> tuple[Any, dict[Any, Place]]:
        """The value that begins with `event`, and the places inside it."""
        kind = event.__class__
        if kind is ScalarEvent:
            value = event.value
            if event.tag is not None or (not event.style and value[:1] in _NOT_TEXT):
                value = self._scalar(event, name)
            if event.anchor is not None:
                self._anchors[event.anchor] = [value, _NO_PLACES, len(event.value) + 1]
            return value, _NO_PLACES
        if kind is AliasEvent:
            return self._alias(event, name)
        is_map = kind is MappingStartEvent
        if event.tag not in (None, "!", _CORE_TAG + ("map" if is_map else "seq")):
            self._refuse_tag(event, name)
        if len(self._names) >= MAX_DEPTH:
            self._stop(event.start_mark.index, f"more than {MAX_DEPTH} levels of nesting",
                       "put a text that contains brackets in quotes")  # fmt: skip
        at, repeated = event.start_mark.index, self._repeated
        built: list[Any] = []
        if event.anchor is not None:
            self._anchors[event.anchor] = built
        self._names.append(name)
        data, inside, end = self._mapping() if is_map else self._sequence()
        self._names.pop()
        built += data, inside, end - at + self._repeated - repeated
        return data, inside

    def _sequence(self) -> tuple[list[Any], dict[Any, Place], int]:
        data: list[Any] = []
        inside: dict[Any, Place] = {}
        while (event := self._next_event()).__class__ is not SequenceEndEvent:
            at, number = event.start_mark.index, len(data)
            value, places = self._value(event, number)
            data.append(value)
            inside[number] = at, at, places
        return data, inside, event.end_mark.index  # type: ignore[union-attr]

    def _mapping(self) -> tuple[dict[Any, Any], dict[Any, Place], int]:
        data: dict[Any, Any] = {}
        inside: dict[Any, Place] = {}
        merge: tuple[int, Any, dict[Any, Place]] | None = None
        next_event = self._next_event
        while (event := next_event()).__class__ is not MappingEndEvent:
            key_at = event.start_mark.index
            key = event.value if event.__class__ is ScalarEvent else ""
            if key[:1] in _NOT_TEXT or key[0] == "<" or event.tag or event.anchor or key in inside:
                key = self._key(event, inside, merge is not None)
            event = next_event()
            at = event.start_mark.index
            value, places = self._value(event, key)
            if key is _MERGE:
                merge = at, value, places
            elif key is not _UNNAMED:
                data[key] = value
                if event.__class__ is ScalarEvent and not event.value and not event.style:
                    at = key_at  # an empty value has no place of its own
                inside[key] = key_at, at, places
        if merge is not None:
            self._merge(data, inside, *merge)
        return data, inside, event.end_mark.index  # type: ignore[union-attr]

    def _key(self, event: Any, inside: dict[Any, Place], merged: bool) -> Any:
        """The key that `event` is or begins; _UNNAMED if it is refused."""
        at = event.start_mark.index
        if event.__class__ in (MappingStartEvent, SequenceStartEvent):
            self._note(at, _UNNAMED, *_NO_KEY)
            self._value(event, _UNNAMED)
            return _UNNAMED
        key, _ = self._value(event, _UNNAMED)
        if isinstance(key, list | dict):
            self._note(at, _UNNAMED, *_NO_KEY)
        elif key == "<<" and event.__class__ is ScalarEvent and not event.style:
            if not merged:
                return _MERGE
            self._note(at, key, "a second `<<` in one mapping", "write `<<: [*one, *other]`")
        elif key in inside:
            written = getattr(event, "value", key)
            self._note(at, key, f"the key `{written}` was given already",
                       "keep one of the two", inside[key][0])  # fmt: skip
        else:
            return key
        return _UNNAMED

    def _merge(
        self, data: dict[Any, Any], inside: dict[Any, Place],
        at: int, merged: Any, places: dict[Any, Place],
    ) -> None:  # fmt: skip
        """Add what `<<` brought: explicit keys win, then whichever was merged first."""
        sources = [(merged, places)]
        if isinstance(merged, list):
            sources = [(source, places[number][2]) for number, source in enumerate(merged)]
        for source, source_places in sources:
            if isinstance(source, dict):
                for key in source:
                    if key not in data:
                        data[key], inside[key] = source[key], source_places[key]
            else:
                self._note(at, "<<", "`<<` takes a mapping, or a list of mappings",
                           'write `<<: *name`, or put the key "<<" in quotes')  # fmt: skip

    def _alias(self, event: Any, name: Any) -> tuple[Any, dict[Any, Place]]:
        at, shown = event.start_mark.index, f"the alias `*{event.anchor}`"
        if event.anchor not in self._anchors:
            self._note(at, name, f"no `&{event.anchor}` above for {shown}",
                       "put it in quotes if it is text")  # fmt: skip
            return None, _NO_PLACES
        if not self._anchors[event.anchor]:
            self._note(at, name, f"{shown} stands inside its own value", "remove it")
            return None, _NO_PLACES
        value, inside, length = self._anchors[event.anchor]
        self._repeated += length
        if self._repeated > MAX_REPEATED:
            self._stop(at, f"the aliases repeat more than {MAX_REPEATED} characters",
                       "write out what is meant")  # fmt: skip
        return value, inside

    def _scalar(self, event: Any, name: Any) -> Scalar:
        tag, text = event.tag, event.value
        if tag is not None and tag not in _TAGGED:
            if tag not in ("!", _CORE_TAG + "str"):
                self._refuse_tag(event, name)
            return str(text)
        try:
            value = resolve_plain(text)
            if tag is None:
                return value
            if not isinstance(value, _TAGGED[tag]) or ("bool" in tag) != isinstance(value, bool):
                shown = tag.removeprefix(_CORE_TAG)
                raise ValueError(
                    f"`{text[:60]}` is not what the tag !!{shown} says || remove the tag"
                )
            return float(value) if "float" in tag else value
        except (ValueError, OverflowError) as error:
            message, _, fix = str(error).partition(" || ")
            self._note(event.start_mark.index, name, message, fix)
            return None

    def _refuse_tag(self, event: Any, name: Any) -> None:
        tag = event.tag.replace(_CORE_TAG, "!!", 1)
        self._note(event.start_mark.index, name,
                   f"the tag `{tag[:60]}` is not allowed: a file holds plain data",
                   "remove it, or put a text that begins with `!` in quotes")  # fmt: skip

    def _note(
        self, at: int, name: Any, message: str, fix: str, first_at: int | None = None
    ) -> None:
        where = field_name(
            part for part in (*self._names, name) if part not in (None, _UNNAMED, _MERGE)
        )
        self.found.append((at, where, message, fix, first_at))
        if len(self.found) >= _MAX_PROBLEMS:
            raise _StopBuilding

    def _stop(self, at: int, message: str, fix: str) -> NoReturn:
        self.found.append((at, "", message, fix, None))
        raise _StopBuilding


# What a parser's complaint means to somebody who is writing a case: some words of it (libyaml and
# PyYAML differ) and of its context; then the message, and the fix. ``^`` before the message says
# that it is about where the construct begins, and not about where the parser gave up.
_QUOTE_IT = "put the text in quotes"
_COMPLAINTS: tuple[tuple[str, str, str, str], ...] = (
    ("mapping values are not allowed|found unexpected ':'", "", "`:` cannot stand here",
     "check the indentation, put a text with `: ` in quotes, leave a blank after a key's `:`"),
    ("", "directive", "^a line that begins with `%` is a directive",
     f"remove the line, or {_QUOTE_IT}"),
    ("could not find expected ':'", "", "^a key without `:`",
     "write `key: value`; a text that goes on must be indented deeper"),
    ("unexpected (end of stream|document)", "", "^this quote is never closed",
     "close it; in a single-quoted text, write '' for an apostrophe"),
    ("',' or ']'", "", "`,` or `]` is missing here", "the list begins at line {line}"),
    ("',' or '}'", "", "`,` or `}` is missing here", "the mapping begins at line {line}"),
    ("unknown escape|hexa?decimal|character escape", "",
     "an escape that YAML does not know in a double-quoted text",
     "put a regex or a Windows path in single quotes, or write \\\\ for each backslash"),
    ("alphabetic or numeric", "alias", "^`*` begins an alias (`*name`), not a text", _QUOTE_IT),
    ("alphabetic or numeric", "anchor", "^`&` begins an anchor (`&name`), not a text", _QUOTE_IT),
    ("URI|tag handle|expected '!'", "", "^`!` begins a tag, not a text", _QUOTE_IT),
    (" tag", "tag", "^`!` begins a tag, not a text", _QUOTE_IT),
    ("comment or (a )?line break|indentation indicator|chomping", "",
     "^`|` and `>` begin a text on the lines below",
     "put a text that begins with them in quotes, or begin it on the next line"),
    ("sequence entries are not allowed", "", "a list cannot begin here",
     "put each `- ` on a line of its own, or the text in quotes"),
    ("expected key|<block end>", "block mapping",
     "this does not continue what begins at line {line}",
     "line it up with the keys above; if a quote ended early, quote the whole text"),
    ("'-' indicator|<block end>", "block collection",
     "this does not continue the list of line {line}", "line it up with the other `- ` lines"),
    ("node content", "", "a value is missing before this", f"write it, or {_QUOTE_IT}"),
    ("document start", "", "this cannot stand after the end of a document",
     "keep one document in a file, without `...`"),
)  # fmt: skip
_NOT_PRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _explain(error: Exception, text: str) -> tuple[int, str, str]:
    """An offset in `text`, what is wrong there, and what would be right."""
    if not isinstance(error, MarkedYAMLError):
        match = _NOT_PRINTABLE.search(text)
        if match is None:
            return 0, f"this is not YAML ({' '.join(str(error).split())})", ""
        fix = (
            "remove it" if ord(match[0]) else "is this UTF-16, or no text at all? save it as UTF-8"
        )
        return match.start(), f"the character U+{ord(match[0]):04X} may not be in a YAML file", fix
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
