"""Checks of what the agent answered: texts, regexes, globs."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence

from skillup.checks.context import Subject
from skillup.checks.evidence import Span, around, beginning, listed, quoted
from skillup.checks.finding import Finding
from skillup.checks.folding import Haystack, folded, plain
from skillup.checks.patterns import Searcher
from skillup.schema.check_specs import TextSet, TurnContains, TurnNotContains

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


def _finder(subject: Subject) -> tuple[str, Find]:
    haystack = Haystack(subject.answer, case_sensitive=subject.case_sensitive)
    return haystack.text, haystack.find


def searching(text: str) -> tuple[str, Find]:
    """A text, and how to find where a pattern matches in it."""
    searcher, text = Searcher(), plain(text)

    def find(pattern: str) -> Span | None:
        match = searcher.search(pattern, text)
        return None if match is None else match.span()

    return text, find


def contains(spec: TextSet, subject: Subject) -> Finding:
    """The answer contains texts."""
    return look(*_finder(subject), all_of=spec.all, any_of=spec.any, none_of=spec.none)


def contains_all(spec: Sequence[str], subject: Subject) -> Finding:
    """The answer contains every one of the texts."""
    return look(*_finder(subject), all_of=spec)


def contains_any(spec: Sequence[str], subject: Subject) -> Finding:
    """The answer contains at least one of the texts."""
    return look(*_finder(subject), any_of=spec)


def contains_none(spec: Sequence[str], subject: Subject) -> Finding:
    """The answer contains none of the texts."""
    return look(*_finder(subject), none_of=spec)


def turn_contains(spec: TurnContains, subject: Subject) -> Finding:
    """skill-up's spelling for one turn's answer."""
    return look(*_finder(subject), all_of=spec.contains_all, any_of=spec.contains_any)


def turn_not_contains(spec: TurnNotContains, subject: Subject) -> Finding:
    """skill-up's spelling for one turn's answer."""
    return look(*_finder(subject), none_of=spec.not_contains)


def matches(spec: TextSet, subject: Subject) -> Finding:
    """The answer matches regexes, which tell upper and lower case apart."""
    text, find = searching(subject.answer)
    return look(text, find, all_of=spec.all, any_of=spec.any, none_of=spec.none, show="/{}/".format)


def equals(spec: str, subject: Subject) -> Finding:
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


def glob(spec: Sequence[str], subject: Subject) -> Finding:
    """The whole answer matches every glob; ``*`` stands for newlines too."""
    missed = [pattern for pattern in spec if not _whole(pattern, subject)]
    start = beginning(subject.answer)
    if missed:
        return Finding(False, f"the answer does not match {listed(map(quoted, missed))}", start)
    return Finding(True, "the answer matches", start)


def not_glob(spec: Sequence[str], subject: Subject) -> Finding:
    """The whole answer matches none of the globs."""
    hit = next((pattern for pattern in spec if _whole(pattern, subject)), None)
    start = beginning(subject.answer)
    if hit is not None:
        return Finding(False, f"the answer matches {quoted(hit)}", start)
    return Finding(True, "the answer matches none of them", start)


def _whole(pattern: str, subject: Subject) -> bool:
    answer = folded(subject.answer, case_sensitive=subject.case_sensitive).strip()
    wanted = folded(pattern, case_sensitive=subject.case_sensitive).strip()
    return fnmatch.fnmatchcase(answer, wanted)
