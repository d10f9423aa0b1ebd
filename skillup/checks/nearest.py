"""Where a text or pattern that was not found nearly stands, and what would have made it match."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from difflib import SequenceMatcher
from heapq import nlargest

from skillup.checks.context import Span, first_difference, one_line, plain
from skillup.dataclass import frozen
from skillup.schema.base import compiled_pattern
from skillup.schema.grade import EvidenceSpan, NearMatch, Relaxation

_SECONDS, _MOST_TEXT = 0.5, 50_000  # That patterns may take; the characters they look at
_MOST_PIECES, _LONGEST = 5, 200  # Texts that are looked for, characters of each
_LEAST = 3  # Characters that the beginning of a pattern matches, lest it is found anywhere
_LIKE = 0.6  # Ratio of difflib from which on two texts are alike
_BEFORE, _AFTER = 60, 100  # Characters of the line shown around the difference

LOOKALIKES: dict[Relaxation, dict[int, str]] = {
    "dash": dict.fromkeys(map(ord, "‐‑‒–—―−﹣－"), "-"),
    "quote": {
        **dict.fromkeys(map(ord, "‘’‚‛′ʼ`´"), "'"),
        **dict.fromkeys(map(ord, "“”„‟″«»"), '"'),
    },
}
# Those that explain least come first: they are the first to be left out where others suffice.
_OF_TEXTS: tuple[Relaxation, ...] = ("unicode", "space", "quote", "dash", "case")
_FLAGS: dict[Relaxation, str] = {"case": "(?i)", "(?m)": "(?m)", "(?s)": "(?s)"}
_WORDS: dict[Relaxation, str] = {
    "case": "letter case ignored",
    "dash": "the same dash",
    "quote": "the same quotation marks",
    "space": "the same white space",
    "unicode": "the same Unicode characters",
}


@frozen
class Missing:
    """What was not found, in which (plain) text, and how a span of that is one of the record."""

    text: str
    pieces: Sequence[str]
    span: Callable[[Span], Sequence[EvidenceSpan]]
    is_pattern: bool
    case_sensitive: bool
    deadline: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def nearest(self) -> NearMatch | None:
        """Of all pieces, the one that nearly matches; None: nothing is like any of them."""
        if not self.text.strip():
            return None
        found: list[tuple[bool, float, Span, int, str, list[Relaxation]]] = []
        nearly = self._of_pattern if self.is_pattern else self._of_text
        try:
            for piece in self.pieces[:_MOST_PIECES]:
                would = self._would_match(piece)
                if piece and (place := nearly(piece, would)) is not None:
                    matched, span = place
                    part = matched / max(1, len(piece))
                    found.append((bool(would), part, span, matched, piece, would))
        except TimeoutError:  # Of some pieces only, a grade would not be the same twice
            return None
        if not found:
            return None
        *_, (start, at), matched, piece, would = max(found)
        text, begin = self.text, self.text.rfind("\n", 0, at) + 1
        end = text.find("\n", at) if "\n" in text[at:] else len(text)
        left, right = max(begin, at - _BEFORE), min(end, at + _AFTER)
        stop = max(at, min(end, start + len(piece)))
        return NearMatch(
            wanted=piece,
            is_pattern=self.is_pattern,
            matched=matched,
            line="…" * (left > begin) + one_line(text[left:right]) + "…" * (right < end),
            at=at - left + (left > begin),
            spans=list(self.span((start, stop))),
            would_match=would,
        )

    def _would_match(self, piece: str) -> list[Relaxation]:
        """The fewest relaxations with which `piece` is found; none: not even all are enough."""
        kept: list[Relaxation] = [*_OF_TEXTS, *(("(?s)", "(?m)") if self.is_pattern else ())]
        if not self._found(piece, kept):
            return []
        for one in tuple(kept):
            if self._found(piece, fewer := [other for other in kept if other != one]):
                kept = fewer
        return kept

    def _found(self, piece: str, relaxed: Sequence[Relaxation]) -> bool:
        pattern, text = self._relaxed(piece, relaxed), self._relaxed(self.text, relaxed)
        if not self.is_pattern:
            pattern = re.escape(pattern)
        ignored = not (self.is_pattern or self.case_sensitive)
        flags = "(?i)" * ignored + "".join(_FLAGS.get(one, "") for one in relaxed)
        return self._search(flags + pattern, text) is not None

    def _relaxed(self, text: str, relaxed: Sequence[Relaxation]) -> str:
        if "unicode" in relaxed:
            text = compiled_pattern(r"\p{Cf}+", False).sub("", plain(text, "NFKC"))
        for name, same in LOOKALIKES.items():
            text = text.translate(same) if name in relaxed else text
        if "space" in relaxed:  # Lines are the pattern's own concern
            text = re.sub(r"[^\S\n]+" if self.is_pattern else r"\s+", " ", text)
        return text

    def _search(self, pattern: str, text: str, at: int | None = None) -> Span | None:
        """The first match, or the one at a place. Raises TimeoutError."""
        try:
            compiled = compiled_pattern(pattern, False)
        except ValueError:  # as of a beginning that ends within a group
            return None
        left = max(0.001, self.deadline - time.monotonic())
        find = compiled.search if at is None else compiled.match
        match = find(text[:_MOST_TEXT], at or 0, timeout=left)
        return None if match is None else match.span()

    def _of_pattern(self, pattern: str, would: Sequence[Relaxation]) -> tuple[int, Span] | None:
        """The longest beginning of it that matches; of alternatives each is one."""
        there = None  # Where it would match, if places in the text are the same then
        if would and all(one in _FLAGS for one in would):
            there = self._search("".join(_FLAGS[one] for one in would) + pattern, self.text)
        for size in range(min(len(pattern), _LONGEST), 0, -1):
            if pattern[size : size + 1] in tuple("{*+?"):  # which belongs to what stands before
                continue
            span = self._search(pattern[:size], self.text, there and there[0])
            if span is not None and (span[1] - span[0] >= _LEAST or there):
                return size, span
        if there is not None:
            return 0, (there[0], there[0])
        # Not even its beginning: the line most like its longest plain words
        words = re.findall(r"\w[\w ,:'-]{3,}", re.sub(r"\\.|\(\?[^)]*", "\n", pattern))
        near = self._of_text(max(words, key=len)) if words else None
        return None if near is None else (0, (near[1][0], near[1][0]))

    def _of_text(self, piece: str, would: Sequence[Relaxation] = ()) -> tuple[int, Span] | None:
        """By difflib, in the few pieces of the text that share most with `piece`."""
        text, piece = self.text, piece[:_LONGEST]
        if not self.case_sensitive and len(text.casefold()) == len(text):
            text, piece = text.casefold(), piece.casefold()
        size = max(2 * len(piece), 80)
        windows = [(n, text[n : n + size]) for n in range(0, len(text), size // 2)]
        grams = {piece[n : n + 3] for n in range(max(1, len(piece) - 2))}
        shared = [(sum([gram in window for gram in grams]), at) for at, window in windows]
        found = []
        for count, offset in nlargest(4, shared, key=lambda one: one[0]):
            if not (would or 5 * count >= len(grams)):  # too little to be alike
                break
            window = text[offset : offset + size]
            blocks = SequenceMatcher(None, window, piece, False).get_matching_blocks()
            for block in nlargest(5, blocks, key=lambda one: one.size):
                start = max(0, offset + block.a - block.b)
                there = text[start : start + len(piece)]
                same = first_difference(there, piece)
                alike = SequenceMatcher(None, there, piece, False)
                if alike.quick_ratio() >= _LIKE and (ratio := alike.ratio()) >= _LIKE:
                    found.append((ratio + same / len(piece), same, (start, start + same)))
        return max(found)[1:] if found else None


def near_words(near: NearMatch) -> str:
    """What was expected at the first difference, and with what it would match."""
    rest = one_line(near.wanted[near.matched :][:_LONGEST])
    wanted = f'expected "{rest}"' if rest else "nothing more is expected"
    differs = f"/{rest}/ does not match from here on" if near.is_pattern else wanted
    words = _WORDS | _FLAGS if near.is_pattern else _WORDS
    would = " and ".join(words[one] for one in near.would_match)
    return differs + (f"; it would match with {would}" if would else "")
