"""How much of texts and pictures goes into the page. SVG, which may hold scripts, is text."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import imagesize  # type: ignore[import-untyped]

from skillup.schema.record import FileState, TurnRecord


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Characters of texts, which are shortened in the middle; bytes of pictures."""

    tool: int  # A tool's result, and each of its arguments
    text: int  # A message, an answer, a diff
    image: int = 0  # Bytes of a picture; a larger one is only named
    images: int = 0  # Bytes of all pictures of a conversation


ORDINARY = PageLimits(tool=20_000, text=100_000, image=400_000, images=1_000_000)
WIDE = PageLimits(tool=400_000, text=1_000_000, image=5_000_000, images=20_000_000)
"""For a page that asks for one conversation at a time."""
TIGHTER = (
    PageLimits(ORDINARY.tool, ORDINARY.text),  # pictures go before a word does
    *(PageLimits(tool, 6 * tool) for tool in (8_000, 3_000, 1_200, 500, 150)),
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
    if isinstance(value, str):
        return shortened(value, limit)
    if isinstance(value, dict):
        return {str(key): shortened_data(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened_data(item, limit) for item in value]
    return value


Read = Callable[[FileState], bytes | None]
"""The content of a file as it was after a turn; None if it was not kept."""

_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"RIFF": "image/webp",
}
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MAX_PIXELS = 25_000_000  # A few bytes may stand for a picture that no browser can hold
_MAX_LISTED = 50


def add_images(
    turns: Iterable[Mapping[str, Any]], records: Iterable[TurnRecord], read: Read, limit: PageLimits
) -> None:
    """Put the pictures that an agent made or changed into the `changes` of the page's `turns`.

    ``images: [{path, size, type, width, height, data}]``; without `data` (base64) where it does not
    fit into what `limit` grants to a conversation, or is none that can be shown.
    """
    room = limit.images
    for turn, record in zip(turns, records, strict=True):
        for step, one in zip((turn, *turn["follow_ups"]), record.executed(), strict=True):
            if step["changes"] is None:
                continue
            images: list[dict[str, Any]] = []
            for path in (*step["changes"]["added"], *step["changes"]["modified"]):
                state = (one.files or {}).get(path)
                if not path.lower().endswith(_SUFFIXES) or state is None or state.link is not None:
                    continue
                if len(images) < _MAX_LISTED:
                    images.append(_image(path, state, read, min(room, limit.image)))
                    room -= state.size if "data" in images[-1] else 0
            step["changes"]["images"] = images


def shown_bytes(detail: Mapping[str, Any]) -> int:
    steps = (s for turn in detail.get("turns", ()) for s in (turn, *turn["follow_ups"]))
    changes = (step["changes"] for step in steps if step["changes"] is not None)
    return sum(one["size"] for c in changes for one in c["images"] if "data" in one)


def _image(path: str, state: FileState, read: Read, room: int) -> dict[str, Any]:
    named = {"path": path, "size": state.size}
    if state.size > room:
        return named
    try:
        data = read(state) or b""
        width, height = imagesize.get(BytesIO(data))
    except (OSError, ValueError, struct.error, IndexError):
        return named
    kind = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), None)
    if kind is None or width <= 0 or height <= 0 or width * height > _MAX_PIXELS:
        return named
    encoded = base64.b64encode(data).decode("ascii")
    return {**named, "type": kind, "width": width, "height": height, "data": encoded}
