"""What a browser would have to unpack is known before it is given the picture."""

from __future__ import annotations

import struct
import zlib

import pytest

from skillup.reports.html.images import kind_of
from tests.support.pictures import gif, jpeg, png, png_chunk, webp

VP8L = b"VP8L\x06\0\0\0\x2f" + struct.pack("<I", 63 | 31 << 14) + b"\0"
VP8 = b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x40\0\x20\0"
VP8X = b"VP8X\x0a\0\0\0\0\0\0\0\x3f\0\0\x1f\0\0"
PICTURES = {
    "image/png": [png(64, 32)],
    "image/gif": [gif((64, 32), (0, 0, 64, 32)), gif((64, 32), (0, 0, 64, 32))[:-1]],
    "image/jpeg": [jpeg((64, 32))],
    "image/webp": [webp(VP8L), webp(VP8), webp(VP8X + VP8L)],
}


def frame(inside: bytes) -> bytes:
    """A frame of an animated WebP, 9000 × 50."""
    data = b"".join(n.to_bytes(3, "little") for n in (500, 0, 8999, 49, 1)) + b"\0" + inside
    return b"ANMF" + struct.pack("<I", len(data)) + data


def nested(depth: int) -> bytes:
    """Frames within frames, deeper than Python would follow."""
    found = VP8L
    for _ in range(depth):
        found = frame(found)
    return found


ALL = [(kind, data) for kind, several in PICTURES.items() for data in several]


@pytest.mark.parametrize(("kind", "data"), ALL)
def test_a_picture_is_known_by_its_bytes_with_its_measures(kind: str, data: bytes) -> None:
    assert kind_of(data) == (kind, 64, 32, 1)
    assert kind_of(data + b"what browsers pass over") in (None, (kind, 64, 32, 1))


@pytest.mark.parametrize(("kind", "data"), ALL)
def test_what_is_cut_short_anywhere_is_none(kind: str, data: bytes) -> None:
    end = len(data) - (data[-1:] == b";")  # that a GIF has no trailer harms nobody
    assert {kind_of(data[:length]) for length in range(end)} == {None}, kind


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<html>",
        b"\xff\xd8\xff\xe0\0\0" * 9,
        gif((64, 32)),
        png(64, 32).replace(b"IEND", b"IHDR"),
        png(64, 32)[:-20] + b"\0" + png(64, 32)[-19:],
        jpeg((64, 32))[:2] + jpeg((64, 32)),
        webp(VP8X),
        webp(VP8X + frame(frame(VP8L))),
        webp(VP8X + nested(2000)),
    ],
)
def test_documents_and_nonsense_are_none(data: bytes) -> None:
    assert kind_of(data) is None


def test_a_frame_that_is_larger_than_its_screen_counts() -> None:
    control = struct.pack(">IIIIIHHBB", 0, 9000, 20, 1000, 30, 1, 1, 0, 0)
    animated = png(1, 1, before=[png_chunk(b"fcTL", control)])

    assert kind_of(gif((1, 1), (0, 0, 16000, 16000))) == ("image/gif", 16000, 16000, 1)
    assert kind_of(gif((1, 1), (60000, 1, 2, 3))) == ("image/gif", 60002, 4, 1)
    assert kind_of(animated) == ("image/png", 10000, 50, 1)
    assert kind_of(webp(VP8X + frame(VP8L))) == ("image/webp", 10000, 50, 1)
    assert kind_of(webp(VP8X.replace(b"\x3f", b"\0") + VP8)) == ("image/webp", 64, 32, 1)
    assert kind_of(jpeg((1, 1), (16000, 9000))) == ("image/jpeg", 16000, 9000, 2)


def test_a_long_run_of_fill_bytes_is_gone_through_once() -> None:
    """Begun anew with each of them, this would go on for hours."""
    whole, fill = jpeg((64, 32)), b"\xff" * 3_000_000
    assert kind_of(whole[:-2] + fill) is None
    assert kind_of(whole[:-2] + fill + whole[-2:]) == ("image/jpeg", 64, 32, 1)
    assert kind_of(whole[:2] + fill + whole[2:]) == ("image/jpeg", 64, 32, 1)


def test_frames_are_counted() -> None:
    frames = [png_chunk(b"fcTL", struct.pack(">IIIII", n, 1, 1, 0, 0)) for n in range(5)]
    assert kind_of(png(8, 8, before=frames)) == ("image/png", 8, 8, 5)
    assert kind_of(gif((8, 8), *[(0, 0, 8, 8)] * 300)) == ("image/gif", 8, 8, 300)


def test_a_damaged_extra_of_a_png_is_no_matter_as_it_is_to_browsers() -> None:
    extra = png_chunk(b"tEXt", b"Comment\0x")[:-1] + b"?"
    assert zlib.crc32(b"tEXtComment\0x") & 0xFF != ord("?")
    assert kind_of(png(8, 8, before=[extra])) == ("image/png", 8, 8, 1)
