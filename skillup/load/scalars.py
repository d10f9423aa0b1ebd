"""What a plain (unquoted) YAML scalar means, by the core schema of YAML 1.2.

Only ``true`` and ``false`` are booleans, so ``on`` and ``yes`` are texts; there are no dates, no
base-60 numbers (``1:30`` is text), no ``1_000`` and no binary. ``0o17`` is octal, ``0x1F`` is
hexadecimal, and ``0123`` is the number 123.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

FIRST_CHARACTERS = frozenset(["", *"~nNtTfF.-+0123456789"])
"""How everything begins that is not text; `""` stands for the empty scalar."""

_WORDS: dict[str, Scalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WORDS |= {sign + word: float(sign + "inf") for sign in ("", "+", "-")
           for word in (".inf", ".Inf", ".INF")}  # fmt: skip
_WORDS |= {word: float("nan") for word in (".nan", ".NaN", ".NAN")}

_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

# Python refuses decimal numbers beyond 4300 digits, and needs quadratic time for long ones.
_LONGEST_NUMBER = 1000


class SpelledInt(int):
    """A whole number that was not written in the usual way: ``0042``, ``+7``, ``0x1F``.

    It is an ``int`` in every respect, except that ``str()`` gives back what was written: where a
    text is expected, ``0042`` has to stay ``0042``.
    """

    spelling: str

    def __str__(self) -> str:
        return self.spelling


def resolve_plain(text: str) -> Scalar:
    """The value of the plain scalar `text`. Raises ValueError (``what || fix``) if it is too long.

    A caller in a hurry skips the call where ``text[:1]`` is not in FIRST_CHARACTERS.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _DECIMAL.fullmatch(text):
        _check_length(text)
        number = int(text)
        return number if int.__repr__(number) == text else _spelled(number, text)
    if _FLOAT.fullmatch(text):
        _check_length(text)
        return float(text)
    if _OTHER_BASE.fullmatch(text):
        _check_length(text)
        return _spelled(int(text, 0), text)
    return text


def _spelled(number: int, text: str) -> SpelledInt:
    spelled = SpelledInt(number)
    spelled.spelling = text
    return spelled


def _check_length(text: str) -> None:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(
            f"a number of {len(text)} characters || the limit is {_LONGEST_NUMBER}; "
            "put it in quotes if it is text"
        )
