"""The JSON object that a script gives as its verdict: found, or seen to be unreadable.

A script that tries to say something in JSON and does not succeed has given no verdict. Its exit
code is then no pass: most scripts that print their verdict end with 0 whatever it is.
"""

from __future__ import annotations

import re
from typing import Any

from skillup.engines.failures import shortened
from skillup.judges.strict_json import BYTE_ORDER_MARK, DoubtfulJsonError, strict_json

VERDICT_KEYS = frozenset({"score", "pass", "passed", "assertions", "details"})

_EXCERPT_CHARACTERS = 200
_MOST_STARTS = 200
_OBJECT_STARTS = re.compile(r"^\{", re.MULTILINE)
# `[ok] …` and `[1/3] …` are ways to write a log.
_LOOKS_LIKE_JSON = re.compile(r"""\{|\[\s*(?:[\[{"']|$)""")
_LOOKS_LIKE_VERDICT = re.compile(
    r"""\{[^{}]*?["'](?:score|pass|passed|assertions|details|verdict)["']\s*:""", re.IGNORECASE
)


class NoVerdictError(Exception):
    """The script printed a verdict that cannot be read; the message says what is wrong with it."""


def told_verdict(stdout: str) -> dict[str, Any] | None:
    """The object that is all of the output, or its end from the start of a line on; None: prose.

    Raises NoVerdictError for anything that looks like JSON and is not one such object.
    """
    text = stdout.strip().lstrip(BYTE_ORDER_MARK).strip()
    for start in _starts(text):
        try:
            value = strict_json(text[start:])
        except DoubtfulJsonError:
            continue
        if isinstance(value, dict) and not VERDICT_KEYS.isdisjoint(value):
            if _LOOKS_LIKE_VERDICT.search(text, 0, start):
                raise NoVerdictError(f"more than one verdict: {_excerpt(text)}")
            return value
    if not _looks_like_json(text):
        return None
    raise NoVerdictError(f"what cannot be understood as a verdict ({_why(text)}): {_excerpt(text)}")


def _starts(text: str) -> list[int]:
    """Where an object may begin that goes on to the end, the longest first."""
    if not text.endswith("}"):
        return []
    starts = [match.start() for match in _OBJECT_STARTS.finditer(text)]
    last_line = text.rfind("\n") + 1
    last_line += len(text[last_line:]) - len(text[last_line:].lstrip())
    return sorted({*starts[:1], *starts[-_MOST_STARTS:], last_line})


def _looks_like_json(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return (
        any(_LOOKS_LIKE_JSON.match(line) for line in lines)
        or _LOOKS_LIKE_VERDICT.search(text) is not None
        or (text.startswith("[") and _parses(text))
    )


def _parses(text: str) -> bool:
    try:
        strict_json(text)
    except DoubtfulJsonError:
        return False
    return True


def _why(text: str) -> str:
    try:
        value = strict_json(text)
    except DoubtfulJsonError as doubt:
        return str(doubt)
    if not isinstance(value, dict):
        return "it is not one object"
    return "it has none of `score`, `pass`, `assertions`"


def _excerpt(text: str) -> str:
    return shortened(text, _EXCERPT_CHARACTERS)
