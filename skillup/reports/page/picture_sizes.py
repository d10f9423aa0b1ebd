"""How large a picture will be once a browser has unpacked it: a few bytes may ask for gigabytes.

Browsers do not go by a file's first measures alone: a frame may be larger than its screen. So the
whole file is walked, chunk by chunk and without unpacking: PNG (RFC 2083, with its animations),
JPEG (ITU T.81), GIF (GIF89a), WebP (RFC 9649). What is cut short or odd anywhere is no picture.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

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
