"""Secrets stay out of what is written: values of credential variables become ``***NAME***``.

secrets = Secrets.from_environment(os.environ, names=("MY_KEY",))
secrets.mask("the key is sk-123456")  ->  "the key is ***MY_KEY***"
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, AnyStr
from urllib.parse import quote

from skillup.process.colour_codes import (
    CODES,
    CODES_BYTES,
    may_have_codes,
    may_have_codes_bytes,
    replaced_between_codes,
)

# Shorter values are words ("true", "none") that would be masked all over the place.
_SHORTEST = 6

_NAME = re.compile(
    r"""(^|_)(
        API_?KEY | ACCESS_KEY | PRIVATE_KEY | [A-Z0-9]+_KEY | TOKEN | AUTH | PAT |
        [A-Z0-9_]*(SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)[A-Z0-9_]*
    )$ | (^|_)(API_?KEY|AUTH_TOKEN|OAUTH_TOKEN)(_|$)""",
    re.VERBOSE | re.IGNORECASE,
)
# Printable ASCII as JSON may write it, and hardly any program does.
_ESCAPED_ASCII = re.compile(r"\\u00[2-7]")
_ESCAPED_ASCII_BYTES = re.compile(rb"\\u00[2-7]")
_URL_PASSWORD = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://[^/@\s:]*:([^/@\s]+)@")


class Secrets:
    """Knows the values that must not be written, in the forms in which they may turn up."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values`: name → secret. Values that are too short to be secrets are left out."""
        forms: dict[str, str] = {}
        for name, value in values.items():
            if len(value) >= _SHORTEST:
                for form in _forms(value):
                    forms.setdefault(form, f"***{name}***")
        # The longest first: a secret that contains another must go as a whole.
        ordered = sorted(forms.items(), key=lambda item: -len(item[0]))
        self._values = {name: value for name, value in values.items() if len(value) >= _SHORTEST}
        self._escaped: list[tuple[re.Pattern[str], re.Pattern[bytes], str]] | None = None
        self._texts = ordered
        # Variables may hold bytes that are no UTF-8; Python shows them as surrogates.
        self._bytes = [(os.fsencode(form), mask.encode()) for form, mask in ordered]

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], names: Iterable[str | None] = ()
    ) -> Secrets:
        """The values of the variables whose names say that they hold credentials, and of `names`.

        Passwords inside of URLs (proxies, databases) count, too; paths of existing files do not.
        """
        return cls(_credentials(environment, names))

    def also(self, values: Mapping[str, str]) -> Secrets:
        """These and more; of two with the same name, both."""
        more = dict(self._values)
        for name, value in values.items():
            while more.get(name, value) != value:
                name += "'"
            more[name] = value
        return Secrets(more)

    def also_of(self, environment: Mapping[str, str], names: Iterable[str | None] = ()) -> Secrets:
        """These and those of another environment."""
        return self.also(_credentials(environment, names))

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def mask(self, text: str) -> str:
        """The text without any of the secrets, those that colours break in two included."""
        text = self._mask_whole(text)
        if self._texts and may_have_codes(text):
            bare = CODES.sub("", text)
            if self._mask_whole(bare) != bare:
                patterns = [(pattern, mask) for pattern, _, mask in self._escaped_forms()]
                found = _found(bare, self._texts, patterns)
                text = replaced_between_codes(text, CODES, found)
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        """Like :meth:`mask`, of UTF-8."""
        data = self._mask_whole_bytes(data)
        if self._bytes and may_have_codes_bytes(data):
            bare = CODES_BYTES.sub(b"", data)
            if self._mask_whole_bytes(bare) != bare:
                patterns = [(pattern, mask.encode()) for _, pattern, mask in self._escaped_forms()]
                found = _found(bare, self._bytes, patterns)
                data = replaced_between_codes(data, CODES_BYTES, found)
        return data

    def _mask_whole(self, text: str) -> str:
        for form, mask in self._texts:
            if form in text:
                text = text.replace(form, mask)
        if self._texts and _ESCAPED_ASCII.search(text):
            for pattern, _, mask in self._escaped_forms():
                text = pattern.sub(mask, text)
        return text

    def _mask_whole_bytes(self, data: bytes) -> bytes:
        for form, mask in self._bytes:
            if form in data:
                data = data.replace(form, mask)
        if self._bytes and _ESCAPED_ASCII_BYTES.search(data):
            for _, pattern, name in self._escaped_forms():
                data = pattern.sub(name.encode(), data)
        return data

    def _escaped_forms(self) -> list[tuple[re.Pattern[str], re.Pattern[bytes], str]]:
        """For JSON that escapes what it need not, any of the characters."""
        if self._escaped is None:
            self._escaped = []
            for name, value in sorted(self._values.items(), key=lambda item: -len(item[1])):
                text = "".join(map(_any_spelling, value))
                pattern = re.compile(os.fsencode(text))
                self._escaped.append((re.compile(text), pattern, f"***{name}***"))
        return self._escaped

    def mask_data(self, data: Any) -> Any:
        """A copy of JSON-like data with every text masked, keys too."""
        if not self._texts:
            return data
        if isinstance(data, str):
            return self.mask(data)
        if isinstance(data, dict):
            return {self.mask_data(key): self.mask_data(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return type(data)(self.mask_data(item) for item in data)
        return data


def _found(
    text: AnyStr,
    forms: Iterable[tuple[AnyStr, AnyStr]],
    patterns: Iterable[tuple[re.Pattern[AnyStr], AnyStr]],
) -> Iterator[tuple[int, int, AnyStr]]:
    """Where secrets stand in `text`, in order: begin, end, mask. Slow: for texts that have some."""
    whole = ((re.compile(re.escape(form)), mask) for form, mask in forms)
    hits = [
        (hit.start(), hit.end(), mask)
        for pattern, mask in chain(whole, patterns)
        for hit in pattern.finditer(text)
    ]
    end = 0
    for begin, last, mask in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if last > end:  # of two that overlap, both are hidden
            yield max(begin, end), last, mask
            end = last


def _credentials(environment: Mapping[str, str], names: Iterable[str | None]) -> dict[str, str]:
    explicit = set(names)
    found: dict[str, str] = {}
    for name, value in environment.items():
        password = _URL_PASSWORD.match(value)
        if password:
            found[f"{name}.password"] = password[1]
        elif name in explicit or (_NAME.search(name) and not _is_path(value)):
            found[name] = value.strip()
    return found


def _forms(value: str) -> set[str]:
    """The value as it is, inside JSON, inside JSON that is itself a text in JSON, and in a URL."""
    forms = {value, quote(value, safe="", errors="surrogateescape")}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        twice = (json.dumps(once, ensure_ascii=outer)[1:-1] for outer in (True, False))
        forms |= {once, once.replace("/", "\\/"), *twice}
    return forms


def _any_spelling(character: str) -> str:
    """A pattern for the character as it is or escaped, in JSON or in JSON within JSON."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    # Bounded: runs of backslashes would take quadratic time. JSON in JSON in JSON has up to seven.
    escaped = "".join(rf"\\{{1,15}}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    slashes = r"\\{0,15}" if character in '"/\\' else ""
    return f"(?:{slashes}{re.escape(character)}|{escaped})"


def _is_path(value: str) -> bool:
    """`GOOGLE_APPLICATION_CREDENTIALS` and the like name a file: no secret, and often needed."""
    try:
        return value.startswith(("/", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False
