"""Reading YAML: the only place in skillup that knows a YAML library.

Plain data only, by the rules of YAML 1.2 (see :mod:`skillup.load.scalars`); merge keys work. What
YAML allows and a case must not have is refused with its place: duplicate keys, tags, several
documents, aliases that explode, nesting without end. The happy path keeps no positions; the first
question for one parses the text again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Protocol

from yaml import events
from yaml.error import MarkedYAMLError, YAMLError
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import ScalarToken

from skillup.errors import InvalidFilesError, Problem
from skillup.load import yaml_errors
from skillup.load.document import Document
from skillup.load.file_text import decode, line_and_column, read_text
from skillup.load.yaml_builder import Builder, EventKind, LookAgain, Places, StopBuilding

try:
    from yaml._yaml import CParser
except ImportError:  # PyYAML without libyaml is slower, and otherwise the same
    CParser = None  # type: ignore[assignment,misc]

__all__ = ["HAS_LIBYAML", "Document", "parse_yaml", "read_yaml"]

HAS_LIBYAML = CParser is not None

_KINDS: dict[type, EventKind] = {
    events.StreamStartEvent: EventKind.STREAM,
    events.StreamEndEvent: EventKind.STREAM_END,
    events.DocumentStartEvent: EventKind.DOCUMENT_START,
    events.DocumentEndEvent: EventKind.STREAM,
    events.ScalarEvent: EventKind.SCALAR,
    events.AliasEvent: EventKind.ALIAS,
    events.MappingStartEvent: EventKind.MAPPING_START,
    events.SequenceStartEvent: EventKind.SEQUENCE_START,
    events.MappingEndEvent: EventKind.END,
    events.SequenceEndEvent: EventKind.END,
}


def read_yaml(path: Path, *, libyaml: bool = HAS_LIBYAML) -> Document:
    """The YAML file at `path`. Raises InvalidFilesError with all that is wrong with it.

    It never waits (a pipe is refused) and reads at most 16 MB.
    """
    return parse_yaml(read_text(path), path, libyaml=libyaml)


def parse_yaml(text: str | bytes, path: Path, *, libyaml: bool = HAS_LIBYAML) -> Document:
    """As :func:`read_yaml`, from text, or from bytes in UTF-8; `path` is for the messages.

    Without `libyaml`, PyYAML's own parser reads it: the same result, many times slower.
    """
    text = decode(text, path) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    try:
        data = Builder(_parser(text, libyaml).get_event, _KINDS).build()
    except (LookAgain, YAMLError, UnicodeEncodeError):
        raise InvalidFilesError(_what_is_wrong(text, path, libyaml)) from None
    return Document(path, text, data, partial(_find_places, libyaml=libyaml))


def _find_places(text: str, *, libyaml: bool) -> Places:
    places = Places()
    Builder(_parser(text, libyaml).get_event, _KINDS, places).build()
    return places


def _what_is_wrong(text: str, path: Path, libyaml: bool) -> list[Problem]:
    """Everything that a second, careful look finds; the first error of syntax ends it."""
    places = Places()
    found: list[tuple[int, str, str, str]] = []
    try:
        Builder(_parser(text, libyaml).get_event, _KINDS, places).build()
    except StopBuilding:
        pass
    except (YAMLError, UnicodeEncodeError) as error:
        at, message, fix = _explain(error, text)
        found.append((at, "", message, fix))
    for finding in places.findings:
        first = "line {}, column {}".format(*line_and_column(text, finding.first_at or 0))
        message = finding.message.replace("{first}", first)
        found.append((finding.at, finding.field, message, finding.fix))
    problems = []
    for at, field, message, fix in sorted(found):
        line, column = line_and_column(text, at)
        problems.append(Problem(path, line, column, field, message, fix))
    return problems


def _explain(error: YAMLError | UnicodeEncodeError, text: str) -> tuple[int, str, str]:
    """An offset in `text`, what is wrong there, and what would be right."""
    if not isinstance(error, MarkedYAMLError):
        words = " ".join(str(error).split())
        return yaml_errors.forbidden_character(text) or (0, f"this is not YAML ({words})", "")
    # libyaml's last mark may lie behind the text.
    at = min(error.problem_mark.index if error.problem_mark else 0, len(text))
    if "escape" in (error.problem or "") and text[at - 1 : at] == "\\" != text[at : at + 1]:
        at -= 1  # PyYAML points behind the backslash, libyaml at it
    opened_at = error.context_mark.index if error.context_mark else at
    line = line_and_column(text, opened_at)[0]
    complaint = yaml_errors.Complaint(
        error.problem or "", error.context or "", at, opened_at, line, text[at : at + 1]
    )
    return yaml_errors.explain(complaint)


class _EventSource(Protocol):
    def get_event(self) -> events.Event | None: ...


def _parser(text: str, libyaml: bool) -> _EventSource:
    return CParser(text) if libyaml and HAS_LIBYAML else _PythonParser(text)


class _PythonParser(Reader, Scanner, Parser):
    """PyYAML's own parser, brought to accept what libyaml accepts."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        """Tabs may separate tokens, where they cannot be taken for indentation."""
        while True:
            while self.peek() == " " or (self.peek() == "\t" and self._tab_may_separate()):
                self.forward()
            if self.peek() == "#":
                while self.peek() not in "\0\r\n\x85\u2028\u2029":
                    self.forward()
            if not self.scan_line_break():  # type: ignore[no-untyped-call]
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def _tab_may_separate(self) -> bool:
        return bool(self.flow_level or not self.allow_simple_key)

    def scan_plain_spaces(self, indent: int, start_mark: Any) -> Any:
        """Tabs may stand within a plain text."""
        length = 0
        while self.peek(length) in " \t":
            length += 1
        blanks = self.prefix(length)
        if "\t" not in blanks:
            return super().scan_plain_spaces(indent, start_mark)
        self.forward(length)
        if self.peek() in "\r\n\x85\u2028\u2029":
            return super().scan_plain_spaces(indent, start_mark)
        return [blanks]

    def scan_flow_scalar(self, style: str) -> ScalarToken:
        r"""An escape such as ``\ud800`` or ``\UFFFFFFFF`` is no character."""
        start_mark = self.get_mark()
        try:
            token = super().scan_flow_scalar(style)
            token.value.encode()
        except (ValueError, OverflowError):
            problem = "found invalid Unicode character escape code"
            raise ScannerError(
                "while parsing a quoted scalar", start_mark, problem, start_mark
            ) from None
        return token
