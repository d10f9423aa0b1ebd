"""Texts made fit to be shown to a judge: no control characters, and not too long."""

from __future__ import annotations

# What steers a terminal, or hides text from a human reader and shows it to a model: control
# characters become their pictures, direction overrides and invisible tags a replacement character.
_SHOWN: dict[int, str] = (
    {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: "␡", 0x0D: ""}
    | dict.fromkeys(range(0x80, 0xA0), "·")
    | dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "�")
    | dict.fromkeys(range(0xE0000, 0xE0080), "�")
    | {0x2028: "\n", 0x2029: "\n"}
)


def harmless(text: str) -> str:
    """`text` with nothing in it that only a machine would see."""
    return text.replace("\r\n", "\n").translate(_SHOWN)


def shortened(text: str, longest: int) -> tuple[str, int]:
    """`text` without its middle if it is longer than `longest`, and how many characters went."""
    gone = len(text) - longest
    if gone <= 0:
        return text, 0
    head = longest * 2 // 3
    tail = longest - head
    return f"{text[:head]}\n[… {gone:,} characters are left out here …]\n{text[-tail:]}", gone
