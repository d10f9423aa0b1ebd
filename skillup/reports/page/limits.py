"""How much of a text goes into the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """Characters; what is longer is shortened in the middle."""

    tool: int
    """A tool's result, and each of its arguments."""
    text: int
    """A message, an answer, a diff."""


ORDINARY = Limits(tool=20_000, text=100_000)
WIDE = Limits(tool=400_000, text=1_000_000)
"""For a page that asks for one conversation at a time."""
TIGHTER = tuple(
    Limits(tool, 6 * tool) for tool in (8_000, 5_000, 3_000, 2_000, 1_200, 800, 500, 300, 150)
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
