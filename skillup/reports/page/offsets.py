"""Places in a text, from how checks see it to how the page's JavaScript counts.

Checks look at a text in normal form C with plain line ends, and excerpts show control characters
as pictures; the page has the text as it was, and counts in UTF-16 code units.
"""

from __future__ import annotations

import unicodedata

from skillup.checks.evidence import Span, one_line
from skillup.checks.folding import plain


def utf16(text: str, place: int) -> int:
    """The character offset `place` in UTF-16 code units."""
    head = text[:place]
    return len(head) if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2


class Seen:
    """A text as checks see it, and the way back from places in it to the text itself."""

    def __init__(self, text: str, *, normal: bool = True) -> None:
        """Not `normal`: as judges' quotations are looked for, in the text as it is."""
        self.text = text
        self.plain = plain(text) if normal else text.replace("\r", "")
        self.shown = one_line(self.plain)
        """As excerpts show it; `plain` has no character that this leaves out, so places agree."""
        self._starts: list[int] | None = None
        if self.plain != text:
            whole = _starts(text, len(self.plain)) if normal else None
            self._starts = whole or [i for i, c in enumerate(f"{text}$") if c != "\r"]

    def back(self, span: Span) -> Span:
        """A span of `plain` as a span of `text`."""
        if self._starts is None:
            return span
        start, end = span
        # What begins and ends within characters that were joined is all of them.
        while start < end < len(self._starts) - 1 and self._starts[end] <= self._starts[start]:
            end += 1
        return self._starts[start], self._starts[end]


def _starts(text: str, length: int) -> list[int]:
    """For each place in plain(`text`), and its end, where in `text` it comes from.

    Normal form C joins a character with the marks after it: what begins with a character that joins
    nothing before it is looked at as one piece.
    """
    found: list[int] = []
    place = 0
    while place < len(text):
        end = place + 1
        if text[place] == "\r" and text[end : end + 1] == "\n":
            end += 1
        while end < len(text) and _joins(text[end]):
            end += 1
        joined = len(plain(text[place:end]))
        same = joined == end - place
        found.extend(range(place, end) if same else [place] * joined)
        place = end
    if len(found) != length:  # a join that the above does not know: as near as can be
        found = [min(i, len(text)) for i in range(length)]
    found.append(len(text))
    return found


def _joins(character: str) -> bool:
    """Whether normal form C may join it with what is before it (marks, and Korean vowels)."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"
