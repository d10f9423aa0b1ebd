"""Data and files with something wrong in them, by chance."""

from __future__ import annotations

import json
import random
from typing import Any

NOT_TEXT = b"\x00\xff\xfe{\x80\n\r\x1b[2J"


def damaged(value: Any, luck: random.Random) -> Any:
    """`value` as JSON with a field dropped, of another type, or cut short, somewhere."""
    if isinstance(value, dict) and value:
        key = luck.choice(list(value))
        if luck.random() < 0.4:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: damaged(value[key], luck)}
    if isinstance(value, list) and value:
        place = luck.randrange(len(value))
        if luck.random() < 0.4:
            return luck.choice([value[:place], value[:place] + value[place + 1 :], value[::-1]])
        return [*value[:place], damaged(value[place], luck), *value[place + 1 :]]
    if isinstance(value, str) and value and luck.random() < 0.8:
        return value[: luck.randrange(len(value))]
    others: list[Any] = [None, True, -1, 0, 10**30, 1e308, "", "\ud800", [], {}, [[]], {"a": []}]
    return luck.choice([one for one in others if type(one) is not type(value)])


def damaged_lines(lines: list[bytes], luck: random.Random) -> list[bytes]:
    """Lines of JSON with one of them wrong: as data, as text, or by its place in the file."""
    place = luck.randrange(len(lines))
    line = lines[place]
    if luck.random() < 0.5:
        try:
            line = json.dumps(damaged(json.loads(line), luck)).encode() + b"\n"
        except (ValueError, RecursionError):
            line = b""
        return [*lines[:place], line, *lines[place + 1 :]]
    cut = luck.randrange(len(line) or 1)
    key = luck.choice([b"type", b"message", b"payload", b"uuid", b"parentUuid", b"content"])
    return [
        *lines[:place],
        *luck.choice(
            [
                [line[:cut]],
                [line[:cut] + b"\n"],
                [line[:cut] + NOT_TEXT + line[cut:]],
                [line[:-2] + b',"%b":null}\n' % key],
                [line[:-2] + b',"%b":%b}\n' % (key, b"[" * 3000 + b"]" * 3000)],
                [line[:-2] + b',"%b":%b1}\n' % (key, b'{"a":' * 100_000)],
                [line[:-2] + b',"%b":1e999,"timestamp":-%b}\n' % (key, b"9" * 5000)],
                [line, line],
                [luck.choice(lines), line],
                [luck.choice([b"null\n", b"[]\n", b"5\n", b'"x"\n', b"\n", b"{}\n"])],
                [],
            ]
        ),
        *lines[place + 1 :],
    ]
