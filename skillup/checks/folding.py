"""Comparing text as people mean it: one Unicode form, one kind of line end, case folded."""

from __future__ import annotations

import re
import unicodedata

from skillup.checks.evidence import Span

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


class Haystack:
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
