"""Finding in a text what a check's excerpt shows: the matching piece itself, where it can be told.

An excerpt is the piece with some 60 characters on either side, on one line, ``…`` where it was cut
(`skillup/checks/evidence.py`). So where it was cut on the left, the piece begins 60 characters
later; where it was cut on the right and is not as long as excerpts get, it ends 60 before.
"""

from __future__ import annotations

import re

from skillup.checks.evidence import Span, around, one_line
from skillup.checks.finding import CannotEvaluateError
from skillup.checks.folding import Haystack
from skillup.checks.patterns import Searcher
from skillup.reports.page.offsets import Seen

_AROUND = 60
_CUT = "…"
_QUOTED = re.compile(r'found "(?P<piece>.*)"', re.DOTALL)
_PATTERN = re.compile(r"found /(?P<pattern>.*)/", re.DOTALL)


def piece_in(seen: Seen, excerpt: str, found: str) -> Span | None:
    """Where the piece is that `excerpt` shows, as a span of the text; None: it is not in it.

    `found` is what the check says it found. Where it does not tell the piece, all that may belong
    to it is meant.
    """
    if not excerpt.strip():
        return None
    span = _named(seen, excerpt, found) or _within(seen, excerpt)
    return None if span is None else seen.back(span)


def _named(seen: Seen, excerpt: str, found: str) -> Span | None:
    """The piece that `found` quotes, or that its pattern matches, if it has this very excerpt."""
    quoted = _QUOTED.fullmatch(found)
    if quoted is not None and not quoted["piece"].endswith(_CUT):
        return _of_piece(seen, excerpt, quoted["piece"])
    pattern = _PATTERN.fullmatch(found)
    if pattern is not None:
        return _of_pattern(seen, excerpt, pattern["pattern"])
    return None


def _of_piece(seen: Seen, excerpt: str, piece: str) -> Span | None:
    # Of a piece with white space at its ends, the quotation has none.
    span = Haystack(seen.shown, case_sensitive=True).find(piece)
    span = span or Haystack(seen.shown, case_sensitive=False).find(piece)
    while span is not None and span[1] > span[0]:
        if _shows(seen, excerpt, span):
            return span
        # What was looked for first need not be what the excerpt is about.
        rest = Haystack(seen.shown[span[0] + 1 :], case_sensitive=False).find(piece)
        span = None if rest is None else (rest[0] + span[0] + 1, rest[1] + span[0] + 1)
    return None


def _of_pattern(seen: Seen, excerpt: str, pattern: str) -> Span | None:
    try:
        match = Searcher().search(pattern, seen.plain)
    except CannotEvaluateError:
        return None
    if match is None or match.end() <= match.start() or not _shows(seen, excerpt, match.span()):
        return None
    return match.span()


def _shows(seen: Seen, excerpt: str, span: Span) -> bool:
    """Whether `excerpt` is what a check says of this span; spaces at its ends may be missing."""
    start, end = span
    widths = ((start, end), (max(0, start - 1), end), (start, end + 1))
    return any(around(seen.plain, width) == excerpt for width in widths)


def _within(seen: Seen, excerpt: str) -> Span | None:
    core = excerpt.removeprefix(_CUT) if len(excerpt) > 1 else excerpt
    cut_left = core != excerpt
    place = seen.shown.find(core)
    cut_right = False
    if place < 0 or core.endswith(_CUT):
        whole = core.removesuffix(_CUT)
        at = seen.shown.find(whole)
        if whole != core and whole and at >= 0:
            core, place, cut_right = whole, at, True
    if place < 0 or not core.strip():
        return None
    start, end = place, place + len(core)
    if cut_left and len(core) > _AROUND:
        start += _AROUND
    if cut_right and len(core) < _LONG and end - _AROUND > start:
        end -= _AROUND
    # Spaces around a piece are never what it is about.
    text = seen.shown[start:end]
    start += len(text) - len(text.lstrip())
    return (start, start + len(text.strip())) if text.strip() else None


_LONG = 298
"""Characters of an excerpt that was cut because it is long enough, not because the piece ends."""


def argument_pieces(excerpt: str) -> tuple[str, str] | None:
    """``Bash(command: …rm -rf…)`` → the tool's name and what is in the brackets."""
    match = re.fullmatch(r"(?P<name>[^()]+)\((?P<inside>.*)\)…?", one_line(excerpt), re.DOTALL)
    return None if match is None else (match["name"], match["inside"])
