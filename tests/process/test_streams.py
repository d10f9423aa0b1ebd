"""Lines from chunks, however the chunks fall, and what of them is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skillup.process.run import OutputStream, ProcessRequest


def stream(written: bytearray | None = None, **options: Any) -> OutputStream:
    write = None if written is None else written.extend
    return OutputStream(ProcessRequest(("x",), Path(), {}, **options), write)


@given(st.lists(st.binary(max_size=12)), st.lists(st.integers(1, 20)))
def test_lines_are_the_same_wherever_the_chunks_fall(texts: list[bytes], sizes: list[int]) -> None:
    expected = [line for text in texts for line in text.split(b"\n")]
    data = b"".join(line + b"\n" for line in expected) + b"last"
    split = stream()
    lines = []
    for size in [*sizes, len(data)]:
        chunk, data = data[:size], data[size:]
        lines += split.feed(chunk)
    assert lines + split.finish() == [*expected, b"last"]


def test_a_secret_that_the_limit_cuts_is_not_half_shown() -> None:
    written = bytearray()
    masked = stream(
        written, max_output_bytes=20, redact=lambda line: line.replace(b"s3cr3t", b"***")
    )
    assert masked.feed(b"a s3cr3t\n") == [b"a ***"]
    assert masked.feed(b"another s3cr3t") + masked.finish() == []
    assert written == b"a ***\n"


def test_beyond_the_limit_bytes_are_counted_and_dropped() -> None:
    written = bytearray()
    limited = stream(written, max_output_bytes=10)
    assert limited.feed(b"one\ntwo\n") == [b"one", b"two"]
    assert (limited.feed(b""), limited.over_limit) == ([], False)
    assert (limited.feed(b"three\nfour\n"), limited.over_limit) == ([], True)
    assert limited.finish() == []
    assert limited.feed(b"five\n") == []
    assert limited.total_bytes == 24
    assert written == b"one\ntwo\nth"
