"""Codes that colour what programs print, and what stands between them."""

from __future__ import annotations

import pytest

from skillup.process.colour_codes import (
    CODES,
    CODES_BYTES,
    may_have_codes,
    may_have_codes_bytes,
    replaced_between_codes,
)


@pytest.mark.parametrize(
    "code",
    ["\x1b[m", "\x1b[01;31m", "\x1b[K", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x1b(B", r"\u001b[0m",
     r"\u001B[0m", r"\\u001b[0m", r"\\\\u001b[0m"],
)  # fmt: skip
def test_codes_are_known_as_they_are_and_in_json(code: str) -> None:
    text = f"a{code}b"

    assert may_have_codes(text)
    assert may_have_codes_bytes(text.encode())
    assert CODES.split(text) == ["a", code, "b"]
    assert CODES_BYTES.split(text.encode()) == [b"a", code.encode(), b"b"]


@pytest.mark.parametrize("text", ["", "u001b[0m", "[0m", "\x1b", "\x1b[0", r"\u001c[0m", "\x9b0m"])
def test_other_text_is_none(text: str) -> None:
    assert CODES.split(text) == [text]


def test_what_is_replaced_may_reach_over_codes_which_stay() -> None:
    text = "ab\x1b[1mcd\x1b[mef\x1b[2m\x1b[3mgh"

    def replaced(*spans: tuple[int, int, str]) -> str:
        return replaced_between_codes(text, CODES, spans)

    assert replaced() == text
    assert replaced((0, 2, "X")) == "X\x1b[1mcd\x1b[mef\x1b[2m\x1b[3mgh"
    assert replaced((1, 3, "X"), (3, 4, "Y")) == "aX\x1b[1mY\x1b[mef\x1b[2m\x1b[3mgh"
    assert replaced((1, 7, "X")) == "aX\x1b[1m\x1b[m\x1b[2m\x1b[3mh"
    assert replaced((6, 8, "X")) == "ab\x1b[1mcd\x1b[mef\x1b[2m\x1b[3mX"
