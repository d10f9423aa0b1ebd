"""Checks of what the agent answered: texts, regexes, globs."""

from __future__ import annotations

import fnmatch
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    Span,
    around,
    beginning,
    listed,
    quoted,
)
from skillup.schema.check_specs import TextSet, TurnContains, TurnNotContains
from skillup.schema.patterns import compiled_pattern

if TYPE_CHECKING:
    import regex


# Comparing text as people mean it: one Unicode form, one kind of line end, case folded.

# With what stands before it, as accents are composed with their letter. In pieces, because the time
# that normalizing takes grows with the square of the length of a run of combining characters.
_NOT_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,1000}")


def plain(text: str) -> str:
    r"""`text` in normal form C with ``\n`` line ends, so that equal-looking texts are equal."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    return _NOT_ASCII.sub(lambda piece: unicodedata.normalize("NFC", piece[0]), text)


def folded(text: str, *, case_sensitive: bool) -> str:
    """`text`, plain, and without case unless it matters."""
    return plain(text) if case_sensitive else plain(plain(text).casefold())


class TextSearch:
    """A text that pieces are looked for in."""

    __slots__ = ("_folded", "case_sensitive", "text")

    def __init__(self, text: str, *, case_sensitive: bool) -> None:
        self.text = plain(text)
        self.case_sensitive = case_sensitive
        self._folded = self.text if case_sensitive else self.text.casefold()

    def find(self, piece: str) -> Span | None:
        """Where `piece` stands in `text` first."""
        wanted = plain(piece)
        if not self.case_sensitive:
            wanted = wanted.casefold()
        start = self._folded.find(wanted)
        return None if start < 0 else self._unfolded(start, start + len(wanted))

    def _unfolded(self, start: int, end: int) -> Span:
        """A place in the folded text, as a place in `text`: folding can lengthen (ß → ss)."""
        if len(self._folded) == len(self.text):
            return start, end
        place = 0
        first = len(self.text)
        for index, character in enumerate(self.text):
            after = place + len(character.casefold())
            if after > start:
                first = min(first, index)
            if after >= end:
                return first, index + 1
            place = after
        return first, len(self.text)


# Regexes of case files, searched for with a time limit.

_PER_SEARCH = 1.0
_PER_CHECK = 2.0


class Searcher:
    """Searches within one check, which together may take two seconds.

    They respect case, whatever `case_sensitive` says: `(?i)` in the pattern ignores it.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _PER_CHECK

    def search(self, pattern: str, text: str) -> regex.Match[str] | None:
        """The first match. Raises CannotEvaluateError: no regex, or it took too long."""
        try:
            compiled = compiled_pattern(pattern, False)
        except ValueError as trouble:
            raise CannotEvaluateError(str(trouble)) from None
        started = time.monotonic()
        try:
            return compiled.search(text, timeout=min(_PER_SEARCH, self._left))
        except TimeoutError:
            message = f"the pattern /{pattern}/ took too long; write it without nested repetition"
            raise CannotEvaluateError(message) from None
        finally:
            self._left = max(0.001, self._left - (time.monotonic() - started))


Find = Callable[[str], Span | None]


def look(
    text: str,
    find: Find,
    *,
    all_of: Sequence[str] | None = None,
    any_of: Sequence[str] | None = None,
    none_of: Sequence[str] | None = None,
    show: Callable[[str], str] = quoted,
) -> Finding:
    """Look for texts (or patterns) with `find`; all three conditions hold at once."""
    first: Span | None = None
    for unwanted in none_of or ():
        span = find(unwanted)
        if span is not None:
            return Finding(False, f"found {show(unwanted)}", around(text, span))
    missing = []
    for wanted in all_of or ():
        span = find(wanted)
        if span is None:
            missing.append(wanted)
        first = first or span
    if missing:
        return Finding(False, f"not found: {listed(map(show, missing))}", _closest(text, first))
    if any_of:
        spans = (span for wanted in any_of if (span := find(wanted)) is not None)
        hit = next(spans, None)
        if hit is None:
            return Finding(False, f"found none of {listed(map(show, any_of))}", beginning(text))
        first = first or hit
    if first is None:
        return Finding(True, f"found none of {listed(map(show, none_of or ()))}", beginning(text))
    start, end = first
    return Finding(True, f"found {quoted(text[start:end])}", around(text, first))


def _closest(text: str, span: Span | None) -> str:
    return beginning(text) if span is None else around(text, span)


def _finder(subject: CheckSubject) -> tuple[str, Find]:
    haystack = TextSearch(subject.answer, case_sensitive=subject.case_sensitive)
    return haystack.text, haystack.find


def searching(text: str) -> tuple[str, Find]:
    """A text, and how to find where a pattern matches in it."""
    searcher, text = Searcher(), plain(text)

    def find(pattern: str) -> Span | None:
        match = searcher.search(pattern, text)
        return None if match is None else match.span()

    return text, find


def contains(spec: TextSet, subject: CheckSubject) -> Finding:
    """The answer contains texts."""
    return look(*_finder(subject), all_of=spec.all, any_of=spec.any, none_of=spec.none)


def contains_all(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """The answer contains every one of the texts."""
    return look(*_finder(subject), all_of=spec)


def contains_any(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """The answer contains at least one of the texts."""
    return look(*_finder(subject), any_of=spec)


def contains_none(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """The answer contains none of the texts."""
    return look(*_finder(subject), none_of=spec)


def turn_contains(spec: TurnContains, subject: CheckSubject) -> Finding:
    """skill-up's spelling for one turn's answer."""
    return look(*_finder(subject), all_of=spec.contains_all, any_of=spec.contains_any)


def turn_not_contains(spec: TurnNotContains, subject: CheckSubject) -> Finding:
    """skill-up's spelling for one turn's answer."""
    return look(*_finder(subject), none_of=spec.not_contains)


def matches(spec: TextSet, subject: CheckSubject) -> Finding:
    """The answer matches regexes, which tell upper and lower case apart."""
    text, find = searching(subject.answer)
    return look(text, find, all_of=spec.all, any_of=spec.any, none_of=spec.none, show="/{}/".format)


def equals(spec: str, subject: CheckSubject) -> Finding:
    """The answer is this text; white space at the ends does not matter."""
    wanted = folded(spec, case_sensitive=subject.case_sensitive).strip()
    actual = folded(subject.answer, case_sensitive=subject.case_sensitive).strip()
    if wanted == actual:
        return Finding(True, "the answer is the same text", beginning(subject.answer))
    return Finding(False, _first_difference(wanted, actual), beginning(subject.answer))


def _first_difference(wanted: str, actual: str) -> str:
    if not actual:
        return "the answer is empty"
    at = next(
        (i for i, (a, b) in enumerate(zip(wanted, actual, strict=False)) if a != b),
        min(len(wanted), len(actual)),
    )
    here = actual[at : at + 20]
    return f"differs from character {at + 1} on: " + (quoted(here) if here else "it ends there")


def glob(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """The whole answer matches every glob; ``*`` stands for newlines too."""
    missed = [pattern for pattern in spec if not _whole(pattern, subject)]
    start = beginning(subject.answer)
    if missed:
        return Finding(False, f"the answer does not match {listed(map(quoted, missed))}", start)
    return Finding(True, "the answer matches", start)


def not_glob(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """The whole answer matches none of the globs."""
    hit = next((pattern for pattern in spec if _whole(pattern, subject)), None)
    start = beginning(subject.answer)
    if hit is not None:
        return Finding(False, f"the answer matches {quoted(hit)}", start)
    return Finding(True, "the answer matches none of them", start)


def _whole(pattern: str, subject: CheckSubject) -> bool:
    answer = folded(subject.answer, case_sensitive=subject.case_sensitive).strip()
    wanted = folded(pattern, case_sensitive=subject.case_sensitive).strip()
    return fnmatch.fnmatchcase(answer, wanted)
