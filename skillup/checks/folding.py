"""Comparing text as people mean it: one Unicode form, one kind of line end, case folded."""

from __future__ import annotations

import unicodedata

from skillup.checks.evidence import Span


def plain(text: str) -> str:
    r"""`text` in normal form C with ``\n`` line ends, so that equal-looking texts are equal."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


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
