"""What one session's lines say of its place, replaced by what a copy's should say.

Used where a session is copied into another trial: the copy must not send its agent into the
parent's directories.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# What goes on after a path makes it another one: `/tmp/a` is not in `/tmp/ab` or `/tmp/a.bak`.
_GOES_ON = r"(?![\w-]|\.\w)"
# So does what stands before it, but for an escaped newline or tab and a flag such as `-I`.
_BEGINS = re.compile(r"(?:\\[nrtbf]|(?:^|[\s\"'=])-\w|(?:^|[^\w.~-]))\Z")
_LOOK_BACK = 4


class Rewriting:
    """Old text → new text, applied to the strings within lines of JSON; a longer one goes first.

    `paths` are replaced where they stand whole, with or without something below them; `words`
    wherever they stand. `untouched` tells of a JSON object that all in it stays as it is.
    """

    def __init__(
        self,
        paths: Mapping[str, str],
        words: Mapping[str, str],
        untouched: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        self._paths = _with_escaped(paths)
        self._words = _with_escaped(words)
        choices = [f"(?:{_any_of(self._words)})"] if self._words else []
        if self._paths:
            choices.insert(0, f"(?P<path>{_any_of(self._paths)}){_GOES_ON}")
        self._pattern = re.compile("|".join(choices)) if choices else None
        self._marks = _marks([*self._paths, *self._words])
        self._untouched = untouched

    def line(self, line: bytes) -> bytes:
        """A line of JSON, with its newline. One that needs no change stays as it is."""
        if not any(mark in line for mark in self._marks):
            return line
        try:
            row = json.loads(line)
            rewritten = self._value(row)
        except (ValueError, RecursionError):
            return line
        if rewritten == row:
            return line
        ending = b"\n" if line.endswith(b"\n") else b""
        return _json(rewritten) + ending

    def text(self, text: str) -> str:
        """A text of any kind."""
        return text if self._pattern is None else self._pattern.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        if match.groupdict().get("path") is None:
            return self._words[match[0]]
        before = match.string[max(0, match.start() - _LOOK_BACK) : match.start()]
        whole = not before or _BEGINS.search(before) is not None
        return self._paths[match[0]] if whole else match[0]

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            if self._untouched(value):
                return value
            return {self.text(key): self._value(item) for key, item in value.items()}
        return value


def _with_escaped(replacements: Mapping[str, str]) -> dict[str, str]:
    """Also as they stand in a string that is itself JSON; less those that change nothing."""
    forms: dict[str, str] = {}
    for old, new in replacements.items():
        if old and old != new:
            forms |= {_escaped(old, plain): _escaped(new, plain) for plain in (True, False)}
            forms[old] = new
    return forms


def _any_of(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


def _escaped(text: str, ascii_only: bool) -> str:
    try:
        return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    except UnicodeError:
        return text


def _marks(texts: Iterable[str]) -> list[bytes]:
    """What a line must contain if one of the texts is in it, however it is escaped."""
    plain = (max(re.findall(r"[\w.-]+", text, re.ASCII), key=len, default="") for text in texts)
    return list({mark.encode() for mark in plain})


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
