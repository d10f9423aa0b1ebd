"""Secrets stay out of what is written: values of credential variables become ``***NAME***``.

secrets = Secrets.from_environment(os.environ, names=("MY_KEY",))
secrets.mask("the key is sk-123456")  ->  "the key is ***MY_KEY***"
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from skillup.redaction.colour_codes import CODES, may_have_codes, replaced_between_codes
from skillup.redaction.credentials import SHORTEST, credentials_of, is_ordinary

# Shorter lines of a longer secret are words; so are rulers, of few different characters.
_SHORTEST_LINE = 16
_FEWEST_CHARACTERS = 8
# Shorter ones may be parts of anything.
_SHORTEST_BASE64 = 7
# Where a value has its lines on one, as variables often have keys, `\n` stands between them.
_LINE_ENDS = re.compile(r"[\r\n]+|\\+[rn]")
_HEADER = re.compile(r"-----(BEGIN|END)\b")
_OCTET = re.compile("%[0-9A-F]{2}")
# No program escapes these.
_NEVER_ESCAPED = re.compile("[0-9A-Za-z]+")
_ONLY_LETTERS = re.compile(r"[A-Za-z]+([-_. ][A-Za-z]+)*")
# So many backslashes JSON has for one of them where it is nested six deep.
_LONGEST_ESCAPE = 64

Hit = tuple[int, int, str]
"""A secret in a text: its begin, its end, and its replacement."""


def masking_bytes(mask: Callable[[str], str]) -> Callable[[bytes], bytes]:
    """The same mask for UTF-8, and for files whatever bytes they hold."""

    def masked(content: bytes) -> bytes:
        text = content.decode(errors="surrogateescape")
        clean = mask(text)
        return content if clean == text else clean.encode(errors="surrogateescape")

    return masked


class Secrets:
    """Knows the values that must not be written, in the forms in which they may turn up."""

    def __init__(self, values: Mapping[str, str], spared: Mapping[str, str] | None = None) -> None:
        """`values`: name → secret. Values that are too short to be secrets are left out.

        `spared`: values that count as none, see :attr:`spared`.
        """
        self._spared = dict(spared or {})
        self._values = {name: value for name, value in values.items() if len(value) >= SHORTEST}
        parts: dict[str, str] = {}
        for name, value in self._values.items():
            for part in _parts(value):
                parts.setdefault(part, f"***{name}***")
        # The core is what all forms have in common, to see quickly whether one may be there.
        self._forms = [
            (max(_NEVER_ESCAPED.findall(part), key=len, default=""), _escaped_forms(part), mask)
            for part, mask in parts.items()
        ]
        for part, mask in parts.items():
            self._forms += [(form, {form}, mask) for form in _base64_forms(part)]

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], names: Iterable[str | None] = ()
    ) -> Secrets:
        """The values of the variables whose names say that they hold credentials, and of `names`.

        Passwords inside of URLs (proxies, databases) count, too; paths of existing files do not,
        nor do ordinary words (:attr:`spared`).
        """
        return cls({}).also_of(environment, names)

    @property
    def spared(self) -> Sequence[str]:
        """Variables that hold ordinary words, which cannot be masked: records are made of them."""
        return sorted(self._spared)

    def also(self, values: Mapping[str, str]) -> Secrets:
        """These and more; of two with the same name, both."""
        return self._with(values, {})

    def also_of(self, environment: Mapping[str, str], names: Iterable[str | None] = ()) -> Secrets:
        """These and those of another environment; what is spared here stays so."""
        found = credentials_of(environment, names)
        spared = {
            name: value
            for name, value in found.items()
            if self._spared.get(name) == value or (len(value) >= SHORTEST and is_ordinary(value))
        }
        return self._with({n: v for n, v in found.items() if n not in spared}, spared)

    def sparing(self, texts: Iterable[str]) -> Secrets:
        """These without ordinary words (letters alone) that are part of one of `texts`."""
        whole = "\n".join(texts)
        spared = {
            name: value
            for name, value in self._values.items()
            if _ONLY_LETTERS.fullmatch(value) and value in whole
        }
        if not spared:
            return self
        values = {name: value for name, value in self._values.items() if name not in spared}
        return Secrets(values, {**self._spared, **spared})

    def learn(self, values: Mapping[str, str]) -> None:
        """Masks these, too, from now on and for all who have this object: found during a run."""
        new = {name: value for name, value in values.items() if value not in self._values.values()}
        if new and self is not NO_SECRETS:
            self.__dict__.update(self.also(new).__dict__)

    def _with(self, values: Mapping[str, str], spared: Mapping[str, str]) -> Secrets:
        more = dict(self._values)
        for name, value in values.items():
            while more.get(name, value) != value:
                name += "'"
            more[name] = value
        return Secrets(more, {**self._spared, **spared})

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def mask(self, text: str) -> str:
        """The text without any of the secrets, those that colours break in two included."""
        if self._forms and may_have_codes(text):
            hits = self._hits(CODES.sub("", text))
            if hits:
                text = replaced_between_codes(text, _covered(hits))
        parts: list[str] = []
        at = 0
        for begin, end, mask in _covered(self._hits(text)):
            parts += [text[at:begin], mask]
            at = end
        return "".join([*parts, text[at:]]) if parts else text

    def mask_bytes(self, data: bytes) -> bytes:
        """Like :meth:`mask`, of UTF-8."""
        return masking_bytes(self.mask)(data) if self._forms else data

    def mask_data(self, data: Any) -> Any:
        """A copy of JSON-like data with every text masked, keys too."""
        if isinstance(data, str):
            return self.mask(data)
        if isinstance(data, dict):
            return {self.mask_data(key): self.mask_data(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return type(data)(self.mask_data(item) for item in data)
        return data

    def _hits(self, text: str) -> list[Hit]:
        hits: list[Hit] = []
        for core, forms, mask in self._forms:
            if core in text:
                for form in forms:
                    hits += _places(text, form, mask)
        return hits


NO_SECRETS = Secrets({})


def _places(text: str, form: str, mask: str) -> Iterator[Hit]:
    """Where `form` stands, those that overlap as one.

    A backslash that it begins with stays where one before it escapes it: JSON would be broken.
    """
    at, begin, end = text.find(form), 0, 0
    while at >= 0:
        if at >= end:
            if end:
                yield begin, end, mask
            before = text[max(0, at - _LONGEST_ESCAPE) : at] if form[0] == "\\" else ""
            begin = at + (len(before) - len(before.rstrip("\\"))) % 2
        end = at + len(form)
        at = text.find(form, at + 1)
    if end:
        yield begin, end, mask


def _covered(hits: Iterable[Hit]) -> Iterator[Hit]:
    """In order and without overlaps; of two that do overlap, both are hidden."""
    end = 0
    # The longest first: a secret that contains another goes as a whole.
    for begin, last, mask in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if last > end:
            yield max(begin, end), last, mask
            end = last


def _parts(value: str) -> Iterator[str]:
    """The value, and its long lines: programs number, indent and end lines as they like."""
    yield value
    lines = _LINE_ENDS.split(value)
    for line in map(str.strip, lines if len(lines) > 1 else ()):
        long = len(line) >= _SHORTEST_LINE and len(set(line)) >= _FEWEST_CHARACTERS
        if long and not _HEADER.match(line):
            yield line


def _escaped_forms(value: str) -> set[str]:
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
    for quotation_mark in ('"', "&quot;", "&#34;"):
        quoted = text.replace('"', quotation_mark)
        forms |= {quoted.replace("'", mark) for mark in ("'", "&#x27;", "&#39;", "&apos;")}
    return forms


def _base64_forms(value: str) -> Iterator[str]:
    """What base64 makes of it (RFC 4648, both alphabets), alone or within a longer text.

    There it may begin at any of the three bytes of a group; characters that its neighbours have a
    share in are left out.
    """
    data = value.encode(errors="surrogateescape")
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data)
        form = encoded[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6].decode()
        if len(form) >= _SHORTEST_BASE64:
            yield from {form, form.replace("+", "-").replace("/", "_")}
