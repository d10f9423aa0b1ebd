r"""Codes that programs print in the midst of words: colours as of ``grep --color``, links.

Form: ECMA-48 and ECMA-35, which terminals obey: ``ESC [ … letter`` (also begun with the one
character U+009B), ``ESC ] … BEL`` or ``ESC ] … ESC \`` (links and titles), ``ESC`` with other
characters (``ESC ( B``, ``ESC 7``). Programs also print the escape character as text: JSON as
``\u001b``, others as ``\x1b``, ``\033``, ``\e`` or ``^[``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

_OF_COLOURS = r"[0-?]*[ -/]*[@-~]"
# Of a command (ESC ]) that nothing ends the text stays: a terminal would hide all that follows.
_CODE = rf"\x1b(?:\[{_OF_COLOURS}|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
ESCAPES = re.compile(_CODE)
"""Codes as terminals get them; what is shown is shown without."""

# Codes that are written as text. `_SAME` stands for the backslashes of a code's beginning: JSON
# within JSON doubles them, and a backslash of the text itself has twice as many.
_SAME = r"(?P=slashes)"
_ESCAPE = r"(?:u001[bB]|x1[bB]|033|e(?=\[))"
_WITHIN = r"[^\x07\x1b\n\\]*+"
_ENDED = (
    rf"{_WITHIN}(?:\\++[\"/]{_WITHIN})*+"
    rf"(?:\x07|{_SAME}(?:u0007|x07|007|a)|{_SAME}{_ESCAPE}{_SAME}{_SAME})"
)
_BODY = (
    rf"(?:{_ESCAPE}(?:\[{_OF_COLOURS}|\]{_ENDED}|[ !#-/]*[0-\[\]-~]|{_SAME}{_SAME})"
    rf"|(?:u009[bB]|x9[bB]|233){_OF_COLOURS})"
)
# Only from the first of many backslashes on: else runs of them would take quadratic time.
_WRITTEN = rf"(?P<slashes>\\(?<!\\\\)\\*+){_BODY}(?:{_SAME}{_BODY})*+|\^\[\[{_OF_COLOURS}"

# Every branch begins with one character, by which the search is quick. Python shows a byte that is
# no UTF-8 as a surrogate.
CODES = re.compile(f"{_CODE}|\x9b{_OF_COLOURS}|\udc9b{_OF_COLOURS}|{_WRITTEN}")

_WRITTEN_SIGN = re.compile(r"\\(?:u00[19]|x[19]|033|e\[|233)")


def may_have_codes(text: str) -> bool:
    """Whether it is worth looking for them; quick."""
    return (
        "\x1b" in text
        or "\x9b" in text
        or "\udc9b" in text
        or ("^" in text and "^[[" in text)
        or ("\\" in text and _WRITTEN_SIGN.search(text) is not None)
    )


def replaced_between_codes(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """`text` with each of `spans` replaced, and all of its :data:`CODES`.

    A span is begin, end and what comes there instead, begin and end counted without the codes;
    spans are in order and do not overlap. Codes within one come after what replaces it: else one
    that ends a colour would be lost.
    """
    left = deque(spans)
    parts: list[str] = []
    begin = at = 0

    def add(piece: str) -> None:
        nonlocal begin
        end, done = begin + len(piece), begin
        while left and left[0][0] < end:
            first, last, instead = left[0]
            if first >= begin:
                parts.extend([piece[done - begin : first - begin], instead])
            done = min(last, end)
            if last > end:  # it goes on behind the next code
                break
            left.popleft()
        parts.append(piece[done - begin :])
        begin = end

    for code in CODES.finditer(text):
        add(text[at : code.start()])
        parts.append(code[0])
        at = code.end()
    add(text[at:])
    return "".join(parts)
