"""Pictures for tests, made from nothing."""

from __future__ import annotations

import random
import struct
import zlib


def png(width: int, height: int, *, noise: int = 0) -> bytes:
    """A grey PNG; `noise`: with so many bytes in it that a browser passes over."""
    rows = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    if noise:
        parts.insert(1, (b"noIs", random.Random(1).randbytes(noise)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
