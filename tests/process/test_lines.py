"""Lines from chunks, however the chunks fall, and what of them is written down."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.process.streams import LineSplitter, OutputStream


def texts_of(data: bytes, sizes: list[int], max_bytes: int) -> list[bytes]:
    splitter = LineSplitter(max_bytes)
    lines = []
    for size in sizes:
        chunk, data = data[:size], data[size:]
        lines += splitter.feed(chunk) if chunk else []
    lines += splitter.feed(data) if data else []
    return [line.text for line in lines + splitter.finish()]


@given(st.binary(max_size=200), st.lists(st.integers(1, 20)))
def test_how_the_chunks_fall_does_not_matter(data: bytes, sizes: list[int]) -> None:
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert texts_of(data, sizes, 1000) == expected


@given(st.lists(st.integers(0, 12)), st.lists(st.integers(1, 20)), st.integers(1, 10))
def test_long_lines_are_cut_wherever_the_chunks_fall(
    lengths: list[int], sizes: list[int], limit: int
) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    assert texts_of(data, sizes, limit) == [b"x" * min(length, limit) for length in lengths]


def stream(path: Path | None = None, **options: object) -> OutputStream:
    defaults: dict[str, object] = {"max_bytes": 10**9, "max_line_bytes": 10**6, "redact": None}
    return OutputStream(path=path, **{**defaults, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("chunk_bytes", [1, 1000, 65536])
def test_a_secret_at_the_cut_of_a_long_line_is_not_half_shown(
    tmp_path: Path, chunk_bytes: int
) -> None:
    secret = b"s3cr3t" * 100
    data = b"x" * (20_000 - 300) + secret + b"x" * 50_000 + b"\nnext\n"
    masked = stream(
        tmp_path / "raw",
        max_line_bytes=20_000,
        redact=lambda line: line.replace(secret, b"***"),
    )
    lines = []
    for start in range(0, len(data), chunk_bytes):
        lines += masked.feed(data[start : start + chunk_bytes])
    masked.close()
    assert lines[1] == b"next"
    assert len(lines[0]) <= 20_000
    assert b"s3cr3t" not in (tmp_path / "raw").read_bytes()
    assert (tmp_path / "raw").read_bytes() == lines[0] + b"\nnext\n"
    assert masked.truncated_lines == 1


def test_many_secrets_masked_shorter_do_not_pull_a_cut_one_into_sight() -> None:
    secret = b"0123456789abcdef" * 4
    masked = stream(max_line_bytes=10_000, redact=lambda line: line.replace(secret, b"*"))
    (line,) = masked.feed(secret * 1000 + b"\n")
    assert b"0123" not in line


def test_beyond_the_limit_bytes_are_counted_and_dropped(tmp_path: Path) -> None:
    limited = stream(tmp_path / "raw", max_bytes=10)
    assert limited.feed(b"one\ntwo\n") == [b"one", b"two"]
    assert (limited.feed(b""), limited.over_limit) == ([], False)
    assert (limited.feed(b"three\nfour\n"), limited.over_limit) == ([], True)
    assert limited.finish() == [b"th"]
    assert limited.feed(b"five\n") == []
    limited.close()
    assert limited.total_bytes == 24
    assert (tmp_path / "raw").read_bytes() == b"one\ntwo\nth"
