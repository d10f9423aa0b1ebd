"""Pictures that an agent made or changed, for the page: their bytes, where they are small enough.

Only formats of pixels. SVG is a document, which may hold scripts: it is shown as text, as a diff.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from skillup.reports.html.limits import PageLimits
from skillup.schema.record import FileState, TurnRecord

# How large a picture will be once a browser has unpacked it: a few bytes may ask for gigabytes.

_PNG = b"\x89PNG\r\n\x1a\n"
# All but stuffed bytes and restarts. Before one there may be any number of ``ff``: a search that
# began anew with each of them would take hours where there is nothing else.
_JPEG_MARKER = re.compile(rb"\xff++([^\x00\xd0-\xd7])")
_NEXT_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


class Picture(NamedTuple):
    """A picture that is whole, as far as can be seen without unpacking it."""

    kind: str
    """Its media type."""
    width: int
    """Pixels; so wide and so high that every frame has its place."""
    height: int
    passes: int = 1
    """How often its pixels are gone over: the frames of an animation, the scans of a JPEG."""


def kind_of(data: bytes) -> Picture | None:
    """What the picture is, by its bytes, whatever the file is called; None: it is none of ours."""
    try:
        if data.startswith(_PNG):
            return _png(data)
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return _gif(data)
        if data[:3] == b"\xff\xd8\xff":
            return _jpeg(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp(data)
    except (struct.error, IndexError, ValueError):
        pass  # cut short, or none after all
    return None


def _png(data: bytes) -> Picture:
    width, height = struct.unpack(">II", data[16:24])
    at, frames, pixels = len(_PNG), 0, False
    while True:
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if (at == len(_PNG)) != (kind == b"IHDR"):
            raise ValueError("it has not one header, at its beginning")
        end = at + 8 + length
        (check,) = struct.unpack(">I", data[end : end + 4])
        # Of what may be missing, browsers do without what is damaged.
        if kind[:1].isupper() and zlib.crc32(data[at + 4 : end]) != check:
            raise ValueError("damaged")
        if kind == b"fcTL":
            frames += 1
            wide, high, left, top = struct.unpack(">IIII", data[at + 12 : at + 28])
            width, height = max(width, left + wide), max(height, top + high)
        pixels = pixels or kind == b"IDAT"
        if kind == b"IEND":
            break
        at = end + 4
    if not pixels:
        raise ValueError("nothing in it")
    return Picture("image/png", width, height, max(frames, 1))


def _gif(data: bytes) -> Picture:
    width, height, flags = struct.unpack("<HHB", data[6:11])
    at, frames = 13 + _colours(flags), 0
    while at < len(data) and data[at] != 0x3B:
        if data[at] == 0x2C:
            left, top, wide, high, flags = struct.unpack("<HHHHB", data[at + 1 : at + 10])
            frames += 1
            width, height = max(width, left + wide), max(height, top + high)
            at += 11 + _colours(flags)
        elif data[at] == 0x21:
            at += 2
        else:
            raise ValueError("no block that we know")
        while data[at]:
            at += 1 + data[at]
        at += 1
    if not frames:  # that many have no trailer harms nobody
        raise ValueError("nothing in it")
    return Picture("image/gif", width, height, frames)


def _colours(flags: int) -> int:
    """The bytes of a colour table."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _jpeg(data: bytes) -> Picture:
    at, width, height, scans = 2, 0, 0, 0
    while True:
        marker = _JPEG_MARKER.match(data, at)
        if marker is None:
            raise ValueError("no marker where one must be")
        at, code = marker.end(), marker[1][0]
        if code == 0xD9:
            break
        if code in (0x01, 0xD8):
            raise ValueError("it begins again")
        (length,) = struct.unpack(">H", data[at : at + 2])
        if length < 2:
            raise ValueError("no length")
        if 0xC0 <= code <= 0xCF and code not in (0xC4, 0xC8, 0xCC):
            high, wide = struct.unpack(">HH", data[at + 3 : at + 7])
            width, height = max(width, wide), max(height, high)
        at += length
        if code == 0xDA:
            scans += 1
            following = _NEXT_JPEG_MARKER.search(data, at)
            if following is None:
                raise ValueError("cut short")
            at = following.start()
    if not scans:
        raise ValueError("nothing in it")
    return Picture("image/jpeg", width, height, scans)


def _webp(data: bytes) -> Picture:
    (size,) = struct.unpack("<I", data[4:8])
    if len(data) < 8 + size:
        raise ValueError("cut short")
    width, height, frames, pixels = 0, 0, 0, False
    for kind, body in _webp_chunks(data[12 : 8 + size]):
        wide = high = 0
        if kind == b"VP8X":
            wide, high = _three(body, 4) + 1, _three(body, 7) + 1
        elif kind == b"ANMF":
            frames += 1
            wide = 2 * _three(body, 0) + _three(body, 6) + 1
            high = 2 * _three(body, 3) + _three(body, 9) + 1
        elif kind == b"VP8L":
            (bits,) = struct.unpack("<I", body[1:5])
            wide, high, pixels = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, True
        elif kind == b"VP8 ":
            wide, high = (n & 0x3FFF for n in struct.unpack("<HH", body[6:10]))
            pixels = True
        width, height = max(width, wide), max(height, high)
    if not pixels:
        raise ValueError("nothing in it")
    return Picture("image/webp", width, height, max(frames, 1))


def _webp_chunks(data: bytes, *, in_frame: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content; those that are in a frame come after it."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack("<4sI", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if len(body) < length:
            raise ValueError("cut short")
        yield kind, body
        if kind == b"ANMF":
            if in_frame:
                raise ValueError("a frame in a frame")
            yield from _webp_chunks(body[16:], in_frame=True)
        at += 8 + length + length % 2


def _three(data: bytes, at: int) -> int:
    if len(data) < at + 3:
        raise ValueError("cut short")
    return int.from_bytes(data[at : at + 3], "little")


Read = Callable[[FileState], bytes | None]
"""The content of a file as it was after a turn; None if it was not kept."""

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MOST_PIXELS = 25_000_000
"""A few bytes may stand for a picture that no browser can hold."""
_MOST_PIXELS_IN_ALL = 250_000_000
"""Of all frames of an animation, each as large as the whole."""
_MOST_LISTED = 50


def add_images(
    turns: Iterable[Mapping[str, Any]], held: Iterable[TurnRecord], read: Read, limits: PageLimits
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
    kind, width, height, passes = found
    pixels = width * height
    if not 0 < pixels <= _MOST_PIXELS or pixels * passes > _MOST_PIXELS_IN_ALL:
        return told
    encoded = base64.b64encode(data).decode("ascii")
    return {**told, "type": kind, "width": width, "height": height, "data": encoded}
