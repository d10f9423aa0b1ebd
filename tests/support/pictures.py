"""Pictures for tests, made from nothing."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence


def png(width: int, height: int, *, noise: int = 0, before: Sequence[bytes] = ()) -> bytes:
    """A grey PNG; `noise`: with so many bytes in it that a browser passes over.

    `before`: chunks that come before its pixels, as of :func:`png_chunk`.
    """
    rows = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [png_chunk(b"IHDR", header), *before]
    if noise:
        parts.append(png_chunk(b"noIs", random.Random(1).randbytes(noise)))
    parts += [png_chunk(b"IDAT", zlib.compress(rows)), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def gif(screen: tuple[int, int], *frames: tuple[int, int, int, int]) -> bytes:
    """A GIF; of each frame its left, top, width and height, and next to no pixels."""
    parts = [b"\x2c" + struct.pack("<HHHHB", *frame, 0) + b"\2\2\x4c\1\0" for frame in frames]
    comment = b"\x21\xfe\3a;b\0"
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0)
    return head + b"\0\0\0\xff\xff\xff" + comment + b"".join(parts) + b";"
