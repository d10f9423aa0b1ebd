"""Codes that colour what programs print, and what stands between them."""

from __future__ import annotations

import pytest

from skillup.redaction.colour_codes import (
    CODES,
    ESCAPES,
    may_have_codes,
    replaced_between_codes,
)
from skillup.reports.text import plain

AS_THEY_ARE = [
    *("\x1b[m", "\x1b[01;31m", "\x1b[K", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x1b(B", "\x1b7"),
    *("\x1b]8;;http://x.example/a?b\x1b\\", "\x1b]0;title\x07", "\x1b=", "\x1b]", "\x1b["),
]
WRITTEN = [
    *(r"\u001b[0m", r"\u001B[0m", r"\\u001b[0m", r"\\\\u001b[0m", r"\x1b[31m", r"\x1B[31m"),
    *(r"\033[31m", r"\e[31m", "^[[31m", r"\u001b(B", r"\u001b7", r"\0337", r"\u009b31m"),
    *(r"\u001b]8;;http:\/\/x\u001b\\", r"\\u001b]8;;x\\u001b\\\\", r"\u001b]0;x\u0007"),
    *(r"\u001b]8;;x\u001b\\\u001b[1m", r"\u001b[1m\u001b[2m", r"\033]0;x\a", "\x9b31m"),
]


@pytest.mark.parametrize("code", [*AS_THEY_ARE, *WRITTEN])
def test_codes_are_known_as_they_are_and_as_they_are_written(code: str) -> None:
    text = f"a{code}é"

    assert may_have_codes(text)
    assert CODES.sub("|", text) == "a|é"


def test_the_byte_that_begins_codes_is_known_where_it_is_no_part_of_a_character() -> None:
    raw = b"a\x9b31mb".decode(errors="surrogateescape")
    assert may_have_codes(raw)
    assert CODES.sub("", raw) == "ab"
    assert b"\x9b" in "雛31m".encode()
    assert CODES.sub("", "雛31m") == "雛31m"


@pytest.mark.parametrize("code", AS_THEY_ARE)
def test_what_is_shown_without_codes_is_searched_without_them(code: str) -> None:
    for text in (f"a{code}b", f"a{code} 1{code}b", f"{code}\n{code}", code * 3):
        assert CODES.sub("", text) == ESCAPES.sub("", text)
        assert plain(text) == ESCAPES.sub("", text)


@pytest.mark.parametrize(
    "text", ["", "u001b[0m", "[0m", "\x1b", r"\u001c[0m", r"C:\x1files", r"\n033", r"\u001b\n"]
)
def test_other_text_is_none(text: str) -> None:
    assert CODES.search(text) is None


def test_what_is_replaced_may_reach_over_codes_which_stay() -> None:
    text = "ab\x1b[1mcd\x1b[mef\x1b[2m\x1b[3mgh"

    def replaced(*spans: tuple[int, int, str]) -> str:
        return replaced_between_codes(text, spans)

    assert replaced() == text
    assert replaced((0, 2, "X")) == "X\x1b[1mcd\x1b[mef\x1b[2m\x1b[3mgh"
    assert replaced((1, 3, "X"), (3, 4, "Y")) == "aX\x1b[1mY\x1b[mef\x1b[2m\x1b[3mgh"
    assert replaced((1, 7, "X")) == "aX\x1b[1m\x1b[m\x1b[2m\x1b[3mh"
    assert replaced((6, 8, "X")) == "ab\x1b[1mcd\x1b[mef\x1b[2m\x1b[3mX"
