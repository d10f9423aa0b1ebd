"""Texts made fit to be shown to a judge: nothing in them that only a machine would see."""

from __future__ import annotations

import re
import unicodedata

# Control characters become their pictures.
_SHOWN: dict[int, str] = (
    {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: "␡", 0x0D: "", 0xAD: ""}
    | dict.fromkeys(range(0x80, 0xA0), "·")
    | {0x2028: "\n", 0x2029: "\n"}
)
# What has no shape of its own (Unicode's Default_Ignorable_Code_Point, and annotations): zero-width
# characters, directions, fillers, variation selectors, tags.
_INVISIBLE = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
_EMOJI_STYLE = re.compile("[\ufe0e\ufe0f]?\u200d?")
_FLAG = re.compile("[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f")
_JOINED_SCRIPTS = range(0x600, 0x18B0)
"""Arabic to Mongolian: there the two joiners are part of how words are written."""


def harmless(text: str) -> str:
    """`text` with what nobody sees told in brackets: ``[U+200B]``, ``[12 invisible characters]``.

    What emoji and joined scripts are made of stays; soft hyphens go.
    """
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(_told, text.replace("\r\n", "\n").translate(_SHOWN))


def _told(found: re.Match[str]) -> str:
    run, text = found[0], found.string
    before = text[found.start() - 1 : found.start()]
    after = text[found.end() : found.end() + 1]
    joins = "\u200d" in run
    if (
        (_EMOJI_STYLE.fullmatch(run) and _is_symbol(before) and (not joins or _is_symbol(after)))
        or (run == "\ufe0f" and after == "\u20e3")
        or (before == "🏴" and _FLAG.fullmatch(run))
        or (run in ("\u200c", "\u200d") and _is_joined(before) and _is_joined(after))
    ):
        return run
    return f"[U+{ord(run):04X}]" if len(run) == 1 else f"[{len(run)} invisible characters]"


def _is_symbol(character: str) -> bool:
    """An emoji, its skin colour, or one of the signs that have a coloured form."""
    return bool(character) and (
        unicodedata.category(character) in ("So", "Sk", "Sm") or character in "‼⁉"
    )


def _is_joined(character: str) -> bool:
    return bool(character) and ord(character) in _JOINED_SCRIPTS


def shortened(text: str, longest: int) -> tuple[str, int]:
    """`text` without its middle if it is longer than `longest`, and how many characters went."""
    gone = len(text) - longest
    if gone <= 0:
        return text, 0
    head = longest * 2 // 3
    tail = longest - head
    return f"{text[:head]}\n[… {gone:,} characters are left out here …]\n{text[-tail:]}", gone
