"""The forms in which a secret may turn up in what programs print."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

# Shorter lines of a longer secret are words; so are rulers, of few different characters.
_SHORTEST_LINE = 16
_FEWEST_CHARACTERS = 8
# Shorter ones may be parts of anything.
_SHORTEST_BASE64 = 7
# Where a value has its lines on one, as variables often have keys, `\n` stands between them.
_LINE_ENDS = re.compile(r"[\r\n]+|\\+[rn]")
# No program escapes these.
_KEPT = re.compile("[0-9A-Za-z]+")
_HEADER = re.compile(r"-----(BEGIN|END)\b")

_ENTITIES = (
    ("&#x27;", "&#x2F;"),  # template engines
    ("&#39;", "&#47;"),
    ("&apos;", "/"),  # XML
)
_OCTET = re.compile("%[0-9A-F]{2}")
_ESCAPED = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")


def parts_of(value: str) -> Iterator[str]:
    """The value, and its long lines: programs number, indent and end lines as they like."""
    yield value
    lines = _LINE_ENDS.split(value)
    for line in map(str.strip, lines if len(lines) > 1 else ()):
        long = len(line) >= _SHORTEST_LINE and len(set(line)) >= _FEWEST_CHARACTERS
        if long and not _HEADER.match(line):
            yield line


def core_of(value: str) -> str:
    """What all of :func:`forms_of` have in common, to see quickly whether one may be there."""
    return max(_KEPT.findall(value), key=len, default="")


def forms_of(value: str) -> tuple[str, ...]:
    """As it is, inside JSON, inside JSON that is itself a text in JSON, in a URL, and in HTML."""
    forms = {value, value.replace("\\", "\\\\")}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        twice = (json.dumps(once, ensure_ascii=outer)[1:-1] for outer in (True, False))
        forms |= {once, once.replace("/", "\\/"), *twice}
    for kept in ("", "/"):
        for in_url in (quote, quote_plus):
            url = in_url(value, safe=kept, errors="surrogateescape")
            forms |= {url, _OCTET.sub(lambda octet: octet[0].lower(), url)}
    text = html.escape(value, quote=False)
    forms |= {text, html.escape(value), html.escape(value).replace("&quot;", "&#34;")}
    for apostrophe, slash in _ENTITIES:
        quoted = text.replace("'", apostrophe)
        for quotes in (quoted.replace('"', "&quot;"), quoted.replace('"', "&#34;")):
            forms |= {quotes, quotes.replace("/", slash)}
    return tuple(forms)


def base64_forms(value: str) -> Iterator[str]:
    """What base64 makes of it (RFC 4648, both alphabets), alone or within a longer text.

    There it may begin at any of the three bytes of a group; characters that its neighbours have a
    share in are left out.
    """
    data = value.encode(errors="surrogateescape")
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data)
        first = (offset * 8 + 5) // 6
        last = (offset + len(data)) * 8 // 6
        form = encoded[first:last].decode()
        if len(form) >= _SHORTEST_BASE64:
            yield from {form, form.replace("+", "-").replace("/", "_")}


@dataclass(frozen=True, slots=True)
class AnySpelling:
    """A value in JSON that escapes what it need not, any of the characters, and in JSON within."""

    mask: str
    pattern: re.Pattern[str]
    plain: str | None
    """The value without backslashes, to see quickly whether it may be there; None: look."""

    @classmethod
    def of(cls, value: str, mask: str) -> AnySpelling:
        """`mask`: what comes in its place."""
        plain = value.replace("\\", "") if value.isascii() else None
        return cls(mask, re.compile(_any_spelling(value)), plain)


def plainly(text: str) -> str:
    """The text without escapes and backslashes, for :attr:`AnySpelling.plain`."""
    return _ESCAPED.sub(lambda unit: chr(int(unit[1], 16)), text).replace("\\", "")


def _any_spelling(value: str) -> str:
    """A pattern for it, with any number of backslashes before any character.

    It begins only where a run of backslashes does, and takes runs whole: else many of them would
    take quadratic time.
    """
    parts = [r"(?<!\\)"]
    for piece in re.findall(r"\\+|[^\\]", value):
        if piece[0] == "\\":
            parts.append(r"(?:\\++(?:u005[cC])?+)++")
            continue
        units = piece.encode("utf-16-be", "surrogatepass").hex()
        # The backslashes before an escape may have been taken as those of the value.
        escaped = r"\\++".join(f"u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
        parts.append(rf"\\*+(?:{re.escape(piece)}|{escaped})")
    return "".join(parts)
