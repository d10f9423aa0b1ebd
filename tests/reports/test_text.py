"""What is left of texts that would do something to a terminal, or to its reader."""

from __future__ import annotations

import pytest

from skillup.reports.text import one_line, plain

GONE = "\ufffd"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b(B\x1b[m b", "a b"),
        ("\x1b]0;title\x07a", "a"),
        ("\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b7a\x1b8\x1bc", "a"),
        ("\x9b2Ja\x9d0;t\x9c", f"{GONE}2Ja{GONE}0;t{GONE}"),
        ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
        ("50%\r60%", f"50%{GONE}60%"),
        ("a\u202egpj.exe", f"a{GONE}gpj.exe"),
        ("pass\u200bword\ufeff\u2060\xad", f"pass{GONE}word{GONE * 3}"),
        ("a\U000e0041\U000e007f", f"a{GONE * 2}"),
        ("half \ud83d", f"half {GONE}"),
    ],
)
def test_controls_and_what_nobody_would_see_are_taken_out(text: str, shown: str) -> None:
    assert plain(text) == shown
    assert plain(shown) == shown


@pytest.mark.parametrize("text", ["می\u200cخواهم", "👩\u200d🔧", "naïve 漢字", "a\u2028b"])
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize("start", ["\x1b]", "\x1b]0;", "\x1b[", "\x1bP", "\x1b_", "\x9d", "\x90"])
def test_a_command_that_nothing_ends_hides_no_text(start: str) -> None:
    shown = plain(f"{start} rm -rf\nall of this is seen")

    assert "rm -rf\n" in shown or "m -rf\n" in shown
    assert shown.endswith("all of this is seen")


def test_one_line_is_one_line() -> None:
    assert one_line("a\r\n\u2028 b\x1b[2J\tc", 5) == "a b c"
    assert one_line("abcdef", 5) == "abcd…"
