"""What a YAML parser's complaint means to somebody who is writing a case.

libyaml and PyYAML word the same complaint differently; both come out the same here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NOT_PRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A parser's error: its two sentences, and where the parser gave up, as an offset.

    ``opened_at`` is where the construct begins that it was reading, on line ``opened_line``.
    """

    problem: str
    context: str
    at: int
    opened_at: int
    opened_line: int
    character: str
    """What stands at `at`; empty at the end."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What to say where `words` is in the complaint, which is one of `context` if that is given.

    `opens` puts the message where the construct begins instead of where the parser gave up.
    """

    words: tuple[str, ...]
    message: str
    fix: str
    context: str = ""
    opens: bool = False


_QUOTE_IT = "put the text in quotes"
_TAB = ("a tab where only blanks may indent", "indent with blanks")
_ESCAPE = (
    "an escape that YAML does not know in a double-quoted text",
    "put a regex or a Windows path in single quotes, or write \\\\ for each backslash",
)

_RULES = (
    _Rule(("",), "a line that begins with `%` is a directive",
          f"remove the line, or {_QUOTE_IT}", context="directive", opens=True),
    _Rule(("incompatible YAML",), "a version of YAML that is not known here", "remove the line"),
    _Rule(("mapping values are not allowed", "found unexpected ':'"), "`:` cannot stand here",
          "check the indentation, put a text that contains `: ` in quotes, and leave a blank after "
          "the `:` of a key"),
    _Rule(("could not find expected ':'",), "a key without `:`",
          "write `key: value`; a text that goes on must be indented deeper", opens=True),
    _Rule(("unexpected end of stream",), "this quote is never closed",
          "close it; in a single-quoted text, write '' for an apostrophe", opens=True),
    _Rule(("unexpected document",), "a document ends inside the quoted text that begins here",
          "close the quote", opens=True),
    _Rule(("',' or ']'",), "`,` or `]` is missing here", "the list begins at line {line}"),
    _Rule(("',' or '}'",), "`,` or `}` is missing here", "the mapping begins at line {line}"),
    _Rule(("unknown escape", "hexdecimal", "hexadecimal"), *_ESCAPE),
    _Rule(("invalid Unicode character escape",), "an escape for a character that does not exist",
          "put the text in single quotes, or write \\\\ for each backslash", opens=True),
    _Rule(("alphabetic or numeric",), "`*` begins an alias (`*name`), not a text", _QUOTE_IT,
          context="alias", opens=True),
    _Rule(("alphabetic or numeric",), "`&` begins an anchor (`&name`), not a text", _QUOTE_IT,
          context="anchor", opens=True),
    _Rule(("did not find URI", "expected URI", "tag URI", "tag handle", "expected '!'"),
          "`!` begins a tag, not a text", _QUOTE_IT, opens=True),
    _Rule((" tag",), "`!` begins a tag, not a text", _QUOTE_IT, context="tag", opens=True),
    _Rule(("comment or line break", "comment or a line break", "indentation indicator",
           "chomping"),
          "`|` and `>` begin a text on the lines below", "put a text that begins with them in "
          "quotes, or begin it on the next line", opens=True),
    _Rule(("sequence entries are not allowed",), "a list cannot begin here",
          "put each `- ` on a line of its own, or the text in quotes"),
    _Rule(("mapping keys are not allowed",), "`? ` begins a key, not a text", _QUOTE_IT),
    _Rule(("expected key", "<block end>"), "this does not continue what begins at line {line}",
          "line it up with the keys above; if a quote ended early, quote the whole text",
          context="block mapping"),
    _Rule(("'-' indicator", "<block end>"), "this does not continue the list of line {line}",
          "line it up with the other `- ` lines", context="block collection"),
    _Rule(("node content",), "a value is missing before this", f"write it, or {_QUOTE_IT}"),
    _Rule(("document start",), "this cannot stand after the end of a document",
          "keep one document in a file, without `...`"),
)  # fmt: skip


def explain(complaint: Complaint) -> tuple[int, str, str]:
    """Where to point (an offset in the text), what is wrong, and what would be right."""
    problem, at = complaint.problem, complaint.at
    if complaint.character == "\t" and ("start any token" in problem or "tab char" in problem):
        return at, *_TAB
    if "start any token" in problem:
        return at, f"a text cannot begin with `{complaint.character}`", _QUOTE_IT
    line = str(complaint.opened_line)
    for rule in _RULES:
        if rule.context in complaint.context and any(words in problem for words in rule.words):
            where = complaint.opened_at if rule.opens else at
            return where, rule.message.replace("{line}", line), rule.fix.replace("{line}", line)
    words = f"{complaint.context}: {problem}" if complaint.context else problem
    return at, f"this is not YAML ({words})", ""


def forbidden_character(text: str) -> tuple[int, str, str] | None:
    """The first character that may not be in a YAML file, as :func:`explain` says it."""
    match = _NOT_PRINTABLE.search(text)
    if match is None:
        return None
    code = ord(match[0])
    message = f"the character U+{code:04X} may not be in a YAML file"
    if code == 0:
        return match.start(), message, "is this UTF-16, or no text at all? save it as UTF-8 text"
    if code <= 0xFF:
        fix = f'remove it, or write "\\x{code:02X}" in a double-quoted text'
        return match.start(), message, fix
    return match.start(), message, "remove it"
