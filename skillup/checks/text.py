"""Checks of what the agent answered: texts, regexes, globs."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    Span,
    around,
    beginning,
    listed,
    plain,
    quoted,
)
from skillup.schema.check_specs import TextSet
from skillup.schema.patterns import compiled_pattern

if TYPE_CHECKING:
    import regex


def folded(text: str, *, case_sensitive: bool) -> str:
    """`text`, plain, and without case unless it matters."""
    return plain(text) if case_sensitive else plain(plain(text).casefold())


class TextSearch:
    """A text that pieces are looked for in."""

    __slots__ = ("_folded", "_origins", "case_sensitive", "text")

    def __init__(self, text: str, *, case_sensitive: bool) -> None:
        self.text = plain(text)
        self.case_sensitive = case_sensitive
        self._folded = self.text if case_sensitive else self.text.casefold()
        self._origins: list[int] | None = None

    def find(self, piece: str) -> Span | None:
        """Where `piece` stands in `text` first."""
        return next(self.find_all(piece), None)

    def find_all(self, piece: str) -> Iterator[Span]:
        """Each place where `piece` stands in `text`; those of one do not overlap."""
        wanted = plain(piece)
        if not self.case_sensitive:
            wanted = wanted.casefold()
        start = self._folded.find(wanted)
        while start >= 0:
            end = start + len(wanted)
            yield self._unfolded(start, end)
            start = self._folded.find(wanted, end) if wanted else -1

    def _unfolded(self, start: int, end: int) -> Span:
        """A place in the folded text, as a place in `text`: folding can lengthen (ß → ss)."""
        if len(self._folded) == len(self.text) or start == end:
            return start, end
        if self._origins is None:  # of each character of the folded text, its place in `text`
            self._origins = [i for i, one in enumerate(self.text) for _ in one.casefold()]
        return self._origins[start], self._origins[end - 1] + 1


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
FindAll = Callable[[str], Iterable[Span]]

_MOST_SPANS = 50
"""Of a piece that an answer is full of, so many places are told."""


def look(
    subject: CheckSubject,
    text: str,
    find_all: FindAll,
    *,
    all_of: Sequence[str] | None = None,
    any_of: Sequence[str] | None = None,
    none_of: Sequence[str] | None = None,
    show: Callable[[str], str] = quoted,
) -> Finding:
    """Look for texts (or patterns) in the plain answer `text`; all conditions hold at once."""

    def find(piece: str) -> list[Span]:
        return list(islice(find_all(piece), _MOST_SPANS))

    def failed(found: str, *spans: Span, near: Span | None = None) -> Finding:
        shown = next(iter(spans), near)
        excerpt = beginning(text) if shown is None else around(text, shown)
        return Finding(False, found, excerpt, spans=subject.in_answer(*spans))

    for unwanted in none_of or ():
        if spans := find(unwanted):
            return failed(f"found {show(unwanted)}", *spans)
    found_of = {wanted: find(wanted) for wanted in all_of or ()}
    hits = [span for spans in found_of.values() for span in spans]
    if not all(found_of.values()):
        missing = listed(show(wanted) for wanted, spans in found_of.items() if not spans)
        return failed(f"not found: {missing}", near=next(iter(hits), None))
    if any_of:
        more = next((spans for wanted in any_of if (spans := find(wanted))), None)
        if more is None:
            return failed(f"found none of {listed(map(show, any_of))}")
        hits += more
    if not hits:
        return Finding(True, f"found none of {listed(map(show, none_of or ()))}", beginning(text))
    start, end = hits[0]
    found, excerpt = f"found {quoted(text[start:end])}", around(text, hits[0])
    return Finding(True, found, excerpt, spans=subject.in_answer(*hits))


def searching(text: str) -> tuple[str, Find]:
    """A text, and how to find where a pattern matches in it."""
    searcher, text = Searcher(), plain(text)

    def find(pattern: str) -> Span | None:
        match = searcher.search(pattern, text)
        return None if match is None else match.span()

    return text, find


def contains(subject: CheckSubject, **wanted: Any) -> Finding:
    """The answer contains texts: `all_of`, `any_of` and `none_of` as in :func:`look`."""
    search = TextSearch(subject.answer, case_sensitive=subject.case_sensitive)
    return look(subject, search.text, search.find_all, **wanted)


def matches(spec: TextSet, subject: CheckSubject) -> Finding:
    """The answer matches regexes, which tell upper and lower case apart."""
    text, find = searching(subject.answer)
    return look(
        subject,
        text,
        lambda pattern: [span for span in [find(pattern)] if span is not None],
        all_of=spec.all,
        any_of=spec.any,
        none_of=spec.none,
        show="/{}/".format,
    )


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
