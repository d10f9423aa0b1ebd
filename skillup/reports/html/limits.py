"""How much of a text goes into the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Characters of texts, which are shortened in the middle; bytes of pictures."""

    tool: int
    """A tool's result, and each of its arguments."""
    text: int
    """A message, an answer, a diff."""
    image: int = 0
    """Bytes of a picture; a larger one is only named."""
    images: int = 0
    """Bytes of all pictures of a conversation."""


ORDINARY = PageLimits(tool=20_000, text=100_000, image=400_000, images=1_000_000)
WIDE = PageLimits(tool=400_000, text=1_000_000, image=5_000_000, images=20_000_000)
"""For a page that asks for one conversation at a time."""
TIGHTER = (
    PageLimits(ORDINARY.tool, ORDINARY.text, image=100_000, images=200_000),
    PageLimits(ORDINARY.tool, ORDINARY.text, image=20_000, images=40_000),
    PageLimits(ORDINARY.tool, ORDINARY.text),  # pictures go before a word does
    *(
        PageLimits(tool, 6 * tool)
        for tool in (8_000, 5_000, 3_000, 2_000, 1_200, 800, 500, 300, 150)
    ),
)
"""For a file that would be too large otherwise, one after the other."""


def shortened(text: str, limit: int) -> str:
    """`text`; of a longer one its beginning and its end, with a note of what is left out."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - head - tail
    note = f"\n… {left_out} characters left out; whole in the raw stream …\n"
    return text[:head] + note + text[-tail:]


def shortened_data(value: Any, limit: int) -> Any:
    """`value`, JSON, with every text in it shortened."""
    if isinstance(value, str):
        return shortened(value, limit)
    if isinstance(value, dict):
        return {str(key): shortened_data(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened_data(item, limit) for item in value]
    return value
