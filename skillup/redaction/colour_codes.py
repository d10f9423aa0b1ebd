r"""Codes that programs print in the midst of words: colours as of ``grep --color``, links.

Form: ECMA-48 and ECMA-35, which terminals obey: ``ESC [ … letter``, ``ESC ] … BEL`` or
``ESC ] … ESC \`` (links and titles), ``ESC`` with other characters (``ESC ( B``, ``ESC 7``).
Within JSON, and JSON within JSON, the escape character is written ``\u001b``.
"""

from __future__ import annotations

import re

_COLOUR = r"\[[0-?]*[ -/]*[@-~]"
# Of a command (ESC ]) that nothing ends the text stays: a terminal would hide all that follows.
_RAW = rf"\x1b(?:{_COLOUR}|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
ESCAPES = re.compile(_RAW)  # Codes as terminals get them; what is shown is shown without

# `_SAME` stands for the backslashes of a code's beginning: each level of JSON doubles them. A match
# begins only with the first of many backslashes: else runs of them would take quadratic time.
_SAME = r"(?P=slashes)"
_LINK = (
    r"\][^\x07\n\\]*(?:\\+[\"/][^\x07\n\\]*)*"
    rf"(?:\x07|{_SAME}(?:u0007|u001[bB]{_SAME}{_SAME}))"
)
_BODY = rf"u001[bB](?:{_COLOUR}|{_LINK}|[ !#-/]*[0-\[\]-~])"
_CODES = re.compile(rf"{_RAW}|(?<!\\)(?P<slashes>\\+){_BODY}(?:{_SAME}{_BODY})*")
"""Those, and as JSON has them."""


def without_codes(text: str) -> str:
    """The text without codes, also as JSON has them."""
    return _CODES.sub("", text) if "\x1b" in text or "\\u001" in text else text
