r"""Codes that programs print in the midst of words: colours as of ``grep --color``, links.

Form: ECMA-48 and ECMA-35, which terminals obey: ``ESC [ … letter``, ``ESC ] … BEL`` or
``ESC ] … ESC \`` (links and titles), ``ESC`` with other characters (``ESC ( B``, ``ESC 7``).
Within JSON, and JSON within JSON, the escape character is written ``\u001b``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

_COLOUR = r"\[[0-?]*[ -/]*[@-~]"
# Of a command (ESC ]) that nothing ends the text stays: a terminal would hide all that follows.
_RAW = rf"\x1b(?:{_COLOUR}|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
ESCAPES = re.compile(_RAW)
"""Codes as terminals get them; what is shown is shown without."""

# `_SAME` stands for the backslashes of a code's beginning: each level of JSON doubles them. A match
# begins only with the first of many backslashes: else runs of them would take quadratic time.
_SAME = r"(?P=slashes)"
_LINK = (
    r"\][^\x07\n\\]*(?:\\+[\"/][^\x07\n\\]*)*"
    rf"(?:\x07|{_SAME}(?:u0007|u001[bB]{_SAME}{_SAME}))"
)
_BODY = rf"u001[bB](?:{_COLOUR}|{_LINK}|[ !#-/]*[0-\[\]-~])"
CODES = re.compile(rf"{_RAW}|(?<!\\)(?P<slashes>\\+){_BODY}(?:{_SAME}{_BODY})*")
"""Those, and as JSON has them."""


def may_have_codes(text: str) -> bool:
    """Whether it is worth looking for them; quick."""
    return "\x1b" in text or "\\u001" in text


def replaced_between_codes(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """`text` with each of `spans` replaced, and all of its :data:`CODES`.

    A span is begin, end and replacement, begin and end counted without the codes; spans are in
    order and do not overlap. Codes within one come after its replacement: else one that ends a
    colour would be lost.
    """
    left = deque(spans)
    parts: list[str] = []
    begin = at = 0
    for code in [*CODES.finditer(text), None]:
        piece = text[at : code.start() if code else len(text)]
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
        if code:
            parts.append(code[0])
            at = code.end()
    return "".join(parts)
