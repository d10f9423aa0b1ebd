"""Pictures for tests, made from nothing."""

from __future__ import annotations

import random
import struct
import zlib


def png(width: int, height: int, *, noise: int = 0) -> bytes:
    """A grey PNG; `noise`: with so many bytes in it that a browser passes over."""
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0),
        b"noIs": random.Random(1).randbytes(noise),
        b"IDAT": zlib.compress((b"\0" + b"\x80" * width) * height),
        b"IEND": b"",
    }
    made = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts.items():
        made += struct.pack(">I", len(data)) + kind + data
        made += struct.pack(">I", zlib.crc32(kind + data))
    return made


def gif(screen: tuple[int, int], *frames: tuple[int, int, int, int]) -> bytes:
    """A GIF; of each frame its left, top, width and height, and next to no pixels."""
    parts = [b"\x2c" + struct.pack("<HHHHB", *frame, 0) + b"\2\2\x4c\1\0" for frame in frames]
    comment = b"\x21\xfe\3a;b\0"
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0)
    return head + b"\0\0\0\xff\xff\xff" + comment + b"".join(parts) + b";"
