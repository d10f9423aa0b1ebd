"""The JSON in an answer: agents wrap it in words and fences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCE = "```"
_LANGUAGE = re.compile(r"```[ \t]*(\w*)")


def answer_json(answer: str) -> tuple[bool, Any]:
    """Whether there is JSON in the answer, and its value.

    The whole answer; else the last fenced block that is JSON, one marked ``json`` first; else what
    stands between the first and the last brace or bracket.
    """
    for candidate in _candidates(answer):
        try:
            return True, json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return False, None


def whole_json(answer: str) -> tuple[bool, Any]:
    """The same, of an answer that is JSON and nothing else."""
    try:
        return True, json.loads(answer, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False, None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _candidates(answer: str) -> Iterator[str]:
    text = answer.replace("\r\n", "\n").strip().removeprefix("\ufeff")
    yield text
    blocks = list(_blocks(text))
    yield from (body for language, body in reversed(blocks) if language in ("json", "jsonc"))
    yield from (body for language, body in reversed(blocks) if language not in ("json", "jsonc"))
    spans = [(text.find(opening), text.rfind(closing)) for opening, closing in ("{}", "[]")]
    yield from (text[start : end + 1] for start, end in sorted(spans) if 0 <= start < end)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The language and body of each fenced block, line by line: one without an end is none."""
    language: str | None = None
    body: list[str] = []
    for line in text.split("\n"):
        marked = line.strip(" \t")
        if language is None:
            opening = _LANGUAGE.match(marked)
            if opening is not None:
                language, body = opening[1].lower(), []
        elif marked == _FENCE:
            yield language, "\n".join(body)
            language = None
        else:
            body.append(line)
