r"""Codes with which programs colour what they print, in the midst of words, as ``grep --color``.

Form: ECMA-48, control sequences (``ESC [ … letter``), and ISO 2022's ``ESC ( B``, with which
``tput sgr0`` ends. Inside JSON the escape character is ``\u001b``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import AnyStr

# JSON within JSON doubles the backslashes. Bounded, as runs of them would take quadratic time.
_CODE = r"((?:\x1b|\\{1,15}u001[bB])(?:\[[0-?]*[ -/]*[@-~]|\([0-9A-Z]))"
CODES = re.compile(_CODE)
CODES_BYTES = re.compile(_CODE.encode())


def may_have_codes(text: str) -> bool:
    """Whether it is worth looking for them; quick."""
    return "\x1b" in text or "\\u001" in text


def may_have_codes_bytes(data: bytes) -> bool:
    """As :func:`may_have_codes`, of UTF-8."""
    return b"\x1b" in data or b"\\u001" in data


def replaced_between_codes(
    text: AnyStr, codes: re.Pattern[AnyStr], spans: Iterable[tuple[int, int, AnyStr]]
) -> AnyStr:
    """`text` with each of `spans` replaced, and all of its codes.

    A span is begin, end and what comes there instead, begin and end counted without the codes;
    spans are in order and do not overlap. Codes within one come after what replaces it: else one
    that ends a colour would be lost.
    """
    left = deque(spans)
    parts: list[AnyStr] = []
    begin = 0
    for number, piece in enumerate(codes.split(text)):
        if number % 2:  # a code
            parts.append(piece)
            continue
        end, done = begin + len(piece), begin
        while left and left[0][0] < end:
            first, last, instead = left[0]
            if first >= begin:
                parts += [piece[done - begin : first - begin], instead]
            done = min(last, end)
            if last > end:  # it goes on behind the next code
                break
            left.popleft()
        parts.append(piece[done - begin :])
        begin = end
    return text[:0].join(parts)
