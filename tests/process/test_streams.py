"""Lines from chunks, however the chunks fall, and what of them is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.process import ProcessRequest
from skillup.process.streams import OutputStream


def stream(path: Path | None = None, **options: Any) -> OutputStream:
    return OutputStream(ProcessRequest(("x",), Path(), {}, **options), path)


@given(st.lists(st.binary(max_size=12)), st.lists(st.integers(1, 20)), st.integers(1, 10))
def test_lines_are_the_same_and_cut_the_same_wherever_the_chunks_fall(
    texts: list[bytes], sizes: list[int], limit: int
) -> None:
    expected = [line for text in texts for line in text.split(b"\n")]
    data = b"".join(line + b"\n" for line in expected) + b"last"
    split = stream(max_line_bytes=limit)
    lines = []
    for size in [*sizes, len(data)]:
        chunk, data = data[:size], data[size:]
        lines += split.feed(chunk)
    assert lines + split.finish() == [line[:limit] for line in [*expected, b"last"]]
    assert split.truncated_lines == sum(len(line) > limit for line in [*expected, b"last"])


@pytest.mark.parametrize("chunk_bytes", [100, 65536])
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
    limited = stream(tmp_path / "raw", max_output_bytes=10)
    assert limited.feed(b"one\ntwo\n") == [b"one", b"two"]
    assert (limited.feed(b""), limited.over_limit) == ([], False)
    assert (limited.feed(b"three\nfour\n"), limited.over_limit) == ([], True)
    assert limited.finish() == [b"th"]
    assert limited.feed(b"five\n") == []
    limited.close()
    assert limited.total_bytes == 24
    assert (tmp_path / "raw").read_bytes() == b"one\ntwo\nth"
