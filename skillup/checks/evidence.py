"""Excerpts and lists for people: short, on one line, harmless to a terminal."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]
"""Where a piece starts and ends in a text, in characters."""

_LONGEST = 300
_AROUND = 60
_START = 200

# Control characters become their pictures: a response must not steer the reader's terminal.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20)} | {
    0x0A: "⏎",
    0x0D: "",
    0x09: " ",
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "·"),
}


def one_line(text: str) -> str:
    """`text` with newlines shown as ⏎ and other control characters as pictures."""
    if text.isprintable():
        return text
    return text.translate(_VISIBLE)


def around(text: str, span: Span) -> str:
    """The piece at `span` with some 60 characters on either side; 300 at most."""
    start, end = span
    left = max(0, start - _AROUND)
    right = min(len(text), max(end, start) + _AROUND, left + _LONGEST - 2)
    before = "…" if left else ""
    after = "…" if right < len(text) else ""
    return before + one_line(text[left:right]) + after


def beginning(text: str, longest: int = _START) -> str:
    """The start of `text`."""
    text = text.strip()
    return one_line(text[:longest]) + ("…" if len(text) > longest else "")


def quoted(text: str, longest: int = 80) -> str:
    """`text` in quotes, shortened."""
    return f'"{beginning(text, longest)}"'


def listed(items: Iterable[str], *, nothing: str = "none", longest: int = _LONGEST) -> str:
    """The items with commas between; what does not fit is counted."""
    shown = list(items)
    room = longest
    for count, item in enumerate(shown):
        room -= len(item) + 2
        if room < 0:
            return ", ".join([*shown[:count], f"and {len(shown) - count} more"])
    return ", ".join(shown) or nothing
