"""Words of an answer that a check may go by: the same ones each time, the likeliest to last first.

What differs from run to run by its nature (times, hashes, ids, paths of temporary directories) is
no such word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FILE = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,5}(?![\w/])")
_QUOTED = re.compile(r"`([^`\n]{2,40})`|“([^”\n]{2,40})”|\"([^\"\n]{2,40})\"")
# A single digit says something only with what was counted.
_NUMBER = re.compile(
    r"(?<![\w.,:/-])(?:\d{1,6} [^\W\d_]{3,20}|\d{2,3}(?:[,.]?\d{1,3})?)(?![\w:/-]|[.,]\d)"
)
_WORD = re.compile(r"(?<![\w/.-])[^\W\d_]{7,24}(?![\w/.-]*[\w/])")
_CHANGING = re.compile(
    r"[0-9a-f]{7,}|\d\d:\d\d|\d{4}-\d\d|^v?\d+(?:\.\d+)+$|/tmp|/var/|/home/|/Users/|https?:"
    r"|<<|>>|\{\{|\}\}|\s{2}|trimmed for fixture|(?:com|org|net|io|dev)$",
    re.IGNORECASE,
)


def key_phrases(answer: str, message: str, most: int = 3) -> list[str]:
    """Up to `most` of them: names of files, what stands in quotes, numbers, then long words.

    Words that the user's own `message` has, too, come last: an agent repeats them whatever it does.
    """
    found = dict.fromkeys(_candidates(answer))
    asked = message.casefold()
    told = sorted(found, key=lambda phrase: phrase.casefold() in asked)
    chosen: list[str] = []
    for phrase in told:
        known = any(phrase.casefold() in other.casefold() for other in chosen)
        if not known and may_last(phrase):
            chosen.append(phrase)
    return chosen[:most]


def may_last(phrase: str) -> bool:
    """Nothing in it differs from run to run by its nature."""
    return phrase.isprintable() and _CHANGING.search(phrase) is None


def _candidates(answer: str) -> Iterator[str]:
    yield from _FILE.findall(answer)
    for match in _QUOTED.finditer(answer):
        yield next(group for group in match.groups() if group).strip(" .,;:!?")
    yield from _NUMBER.findall(answer)
    words = dict.fromkeys(_WORD.findall(answer))
    # The longest say most; those of the same length in the order of the answer.
    yield from sorted(words, key=len, reverse=True)
