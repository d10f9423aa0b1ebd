"""Checks of what the agent answered: texts, regexes, globs."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

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

_PER_SEARCH, _PER_CHECK = 1.0, 2.0
"""Seconds that patterns of case files may take."""
_MOST_SPANS = 50
"""Of a piece that an answer is full of, so many places are named."""


def folded(text: str, *, case_sensitive: bool) -> str:
    """`text`, plain, and without case unless it matters."""
    return plain(text) if case_sensitive else plain(plain(text).casefold())


def find_all(text: str, piece: str, *, case_sensitive: bool) -> Iterator[Span]:
    """Each place where `piece` stands in the plain form of `text`; they do not overlap."""
    text, wanted = plain(text), plain(piece)
    folded = text if case_sensitive else text.casefold()
    wanted = wanted if case_sensitive else wanted.casefold()
    places: Sequence[int] = range(len(text) + 1)  # of each folded character, its place in `text`
    if len(folded) != len(text):  # folding can lengthen (ß → ss)
        places = [i for i, one in enumerate(text) for _ in one.casefold()]
    start = folded.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        yield (places[start], places[end - 1] + 1) if wanted else (0, 0)
        start = folded.find(wanted, end) if wanted else -1


def find_text(text: str, piece: str, *, case_sensitive: bool) -> Span | None:
    return next(find_all(text, piece, case_sensitive=case_sensitive), None)


class Searcher:
    """Searches within one check, which together may take two seconds.

    They respect case, whatever `case_sensitive` says: `(?i)` in the pattern ignores it.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _PER_CHECK

    def search(self, pattern: str, text: str) -> regex.Match[str] | None:
        """The first match. Raises CannotEvaluateError: no regex, or it took too long."""
        started = time.monotonic()
        try:
            compiled = compiled_pattern(pattern, False)
            return compiled.search(text, timeout=min(_PER_SEARCH, self._left))
        except ValueError as trouble:
            raise CannotEvaluateError(str(trouble)) from None
        except TimeoutError:
            message = f"the pattern /{pattern}/ took too long; write it without nested repetition"
            raise CannotEvaluateError(message) from None
        finally:
            self._left = max(0.001, self._left - (time.monotonic() - started))

    def find(self, pattern: str, text: str) -> Span | None:
        match = self.search(pattern, text)
        return None if match is None else match.span()


def look(
    subject: CheckSubject,
    text: str,
    find_all: Callable[[str], Iterable[Span]],
    wanted: TextSet,
    show: Callable[[str], str] = quoted,
) -> Finding:
    """Look for texts (or patterns) in the plain answer `text`; all conditions hold at once."""

    def find(piece: str) -> list[Span]:
        return list(islice(find_all(piece), _MOST_SPANS))

    def failed(found: str, *spans: Span, near: Span | None = None) -> Finding:
        shown = next(iter(spans), near)
        excerpt = beginning(text) if shown is None else around(text, shown)
        return Finding(False, found, excerpt, spans=subject.in_answer(*spans))

    for unwanted in wanted.none or ():
        if spans := find(unwanted):
            return failed(f"found {show(unwanted)}", *spans)
    found_of = {piece: find(piece) for piece in wanted.all or ()}
    hits = [span for spans in found_of.values() for span in spans]
    if not all(found_of.values()):
        missing = listed(show(piece) for piece, spans in found_of.items() if not spans)
        return failed(f"not found: {missing}", near=next(iter(hits), None))
    if wanted.any:
        more = next((spans for piece in wanted.any if (spans := find(piece))), None)
        if more is None:
            return failed(f"found none of {listed(map(show, wanted.any))}")
        hits += more
    if not hits:
        return Finding(
            True, f"found none of {listed(map(show, wanted.none or ()))}", beginning(text)
        )
    start, end = hits[0]
    found, excerpt = f"found {quoted(text[start:end])}", around(text, hits[0])
    return Finding(True, found, excerpt, spans=subject.in_answer(*hits))


def contains(spec: TextSet, subject: CheckSubject) -> Finding:
    find = partial(find_all, subject.answer, case_sensitive=subject.case_sensitive)
    return look(subject, plain(subject.answer), find, spec)


def matches(spec: TextSet, subject: CheckSubject) -> Finding:
    """The answer matches regexes, which tell upper and lower case apart."""
    searcher, text = Searcher(), plain(subject.answer)

    def find(pattern: str) -> list[Span]:
        span = searcher.find(pattern, text)
        return [] if span is None else [span]

    return look(subject, text, find, spec, show="/{}/".format)


def equals(spec: str, subject: CheckSubject) -> Finding:
    """The answer is this text; white space at the ends does not matter."""
    wanted = folded(spec, case_sensitive=subject.case_sensitive).strip()
    actual = folded(subject.answer, case_sensitive=subject.case_sensitive).strip()
    start = beginning(subject.answer)
    if wanted == actual:
        return Finding(True, "the answer is the same text", start)
    if not actual:
        return Finding(False, "the answer is empty", start)
    at = first_difference(wanted, actual)
    here = quoted(actual[at : at + 20]) if actual[at:] else "it ends there"
    return Finding(False, f"differs from character {at + 1} on: {here}", start)


def first_difference(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def glob(spec: Sequence[str], subject: CheckSubject, *, wanted: bool = True) -> Finding:
    """The whole answer matches every glob, or none; ``*`` stands for newlines too."""
    fold = {"case_sensitive": subject.case_sensitive}
    answer, start = folded(subject.answer, **fold).strip(), beginning(subject.answer)
    wrong = [
        pattern
        for pattern in spec
        if fnmatch.fnmatchcase(answer, folded(pattern, **fold).strip()) is not wanted
    ]
    if not wrong:
        return Finding(True, f"the answer matches{'' if wanted else ' none of them'}", start)
    how, which = ("does not match", wrong) if wanted else ("matches", wrong[:1])
    return Finding(False, f"the answer {how} {listed(map(quoted, which))}", start)
