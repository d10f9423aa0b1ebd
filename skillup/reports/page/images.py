"""Pictures that an agent made or changed, for the page: their bytes, where they are small enough.

Only formats of pixels. SVG is a document, which may hold scripts: it is shown as text, as a diff.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skillup.reports.page.limits import Limits
from skillup.schema.record import FileState, TurnRecord

Read = Callable[[FileState], bytes | None]
"""The content of a file as it was after a turn; None if it was not kept."""

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MOST_PIXELS = 25_000_000
"""A few bytes may stand for a picture that no browser can hold."""
_MOST_LISTED = 50


def add_images(
    turns: Iterable[Mapping[str, Any]], held: Iterable[TurnRecord], read: Read, limits: Limits
) -> None:
    """Put into the `changes` of the page's `turns`, which were `held`, their pictures.

    ``images: [{path, size, type, width, height, data}]``; without `data` (base64) where it does not
    fit into what `limits` grants to a conversation, or is none that can be shown.
    """
    room = limits.images
    for turn, record in zip(turns, held, strict=True):
        for step, one in zip((turn, *turn["follow_ups"]), record.executed(), strict=True):
            if step["changes"] is None:
                continue
            images: list[dict[str, Any]] = []
            for path in _wanted(step["changes"]):
                state = (one.files or {}).get(path)
                if state is not None and state.link is None and len(images) < _MOST_LISTED:
                    images.append(_image(path, state, read, min(room, limits.image)))
                    room -= state.size if "data" in images[-1] else 0
            step["changes"]["images"] = images


def shown_bytes(detail: Mapping[str, Any]) -> int:
    """Of all pictures that are in a conversation, as the page has it."""
    steps = (s for turn in detail.get("turns", ()) for s in (turn, *turn["follow_ups"]))
    changes = (step["changes"] for step in steps if step["changes"] is not None)
    return sum(one["size"] for c in changes for one in c["images"] if "data" in one)


def _wanted(changes: Mapping[str, Any]) -> list[str]:
    paths = [*changes["added"], *changes["modified"]]
    return [path for path in paths if path.lower().endswith(_ENDINGS)]


def _image(path: str, state: FileState, read: Read, room: int) -> dict[str, Any]:
    told = {"path": path, "size": state.size}
    if state.size > room:
        return told
    try:
        data = read(state)
    except OSError:
        return told
    found = kind_of(data or b"")
    if found is None or data is None:
        return told
    kind, width, height = found
    if not 0 < width * height <= _MOST_PIXELS:
        return told
    encoded = base64.b64encode(data).decode("ascii")
    return {**told, "type": kind, "width": width, "height": height, "data": encoded}


def kind_of(data: bytes) -> tuple[str, int, int] | None:
    """The media type of a picture, its width and height in pixels; None: it is none of ours.

    By its first bytes, whatever the file is called: PNG (RFC 2083), JPEG (ITU T.81), GIF (GIF89a),
    WebP (RFC 9649).
    """
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return ("image/png", *struct.unpack(">II", data[16:24]))
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return ("image/gif", *struct.unpack("<HH", data[6:10]))
        if data[:3] == b"\xff\xd8\xff":
            return ("image/jpeg", *_jpeg(data))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return ("image/webp", *_webp(data))
    except (struct.error, IndexError, ValueError):
        pass  # cut short, or none after all
    return None


def _jpeg(data: bytes) -> tuple[int, int]:
    """From its frame header, which is one of the segments before the first scan."""
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError("no marker where one must be")
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
            continue
        (length,) = struct.unpack(">H", data[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        if marker == 0xDA or length < 2:
            raise ValueError("a scan before any frame")
        at += 2 + length


def _webp(data: bytes) -> tuple[int, int]:
    kind, body = data[12:16], data[20:]
    if kind == b"VP8X":
        if len(body) < 10:
            raise ValueError("cut short")
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", body[1:5])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", body[6:10])
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no WebP that we know")
