"""Secrets stay out of what is written: values of credential variables become ``***NAME***``.

secrets = Secrets.from_environment(os.environ, names=("MY_KEY",))
secrets.mask("the key is sk-123456")  ->  "the key is ***MY_KEY***"
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from skillup.redaction.allow_list import is_ordinary
from skillup.redaction.colour_codes import CODES, may_have_codes, replaced_between_codes
from skillup.redaction.secret_forms import (
    AnySpelling,
    base64_forms,
    core_of,
    forms_of,
    parts_of,
    plainly,
)

# Shorter values are words ("true", "none") that would be masked all over the place.
_SHORTEST = 6
# Of the texts within a JSON value; shorter ones are names.
_SHORTEST_IN_JSON = 16

_NAME = re.compile(
    r"""(^|_)(
        API_?KEY | ACCESS_KEY | PRIVATE_KEY | [A-Z0-9]+_KEY | TOKEN | AUTH | PAT | JWT | CREDS? |
        PASS | DSN | COOKIES? | BEARER | AUTH_CONFIG | WEBHOOK(_URL)? | AUTHORIZATION |
        CONN(ECTION)?_?STR(ING)? |
        [A-Z0-9_]*(SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)[A-Z0-9_]*
    )$ | (^|_)(API_?KEY|AUTH_TOKEN|OAUTH_TOKEN)(_|$)
    | [A-Z0-9](APIKEY|_PWD|TOKEN)$""",
    re.VERBOSE | re.IGNORECASE,
)
# Under whatever name: what providers' keys, JSON Web Tokens and webhooks look like.
_SHAPE = re.compile(
    r"""([spr]k[-_] | gh[opusr]_ | github_pat_ | glpat- | xox[a-z]- | hf_ | npm_ | pypi- | AIza)
        (?=\S*\d)[-_A-Za-z0-9]{16,} | A[KS]IA[A-Z0-9]{16} | eyJ[\w-]+\.eyJ[\w-]+\.[\w-]* |
        https://(hooks\.slack\.com/|[^/\s]*discord(app)?\.com/api/webhooks/|
                 [^/\s]*webhook\.office\.com/)\S+""",
    re.VERBOSE,
)
# The secret's part of a connection string, as ADO.NET, ODBC, libpq and Azure write it.
_PAIR = re.compile(
    r"(?:^|[;\s])(?:password|pwd|accountkey|sharedaccesskey|secret)\s*=\s*('[^']*'|[^;\s]+)",
    re.IGNORECASE,
)
_ONLY_LETTERS = re.compile(r"[A-Za-z]+([-_. ][A-Za-z]+)*")
# Printable ASCII as JSON may write it, and hardly any program does.
_ESCAPED_ASCII = re.compile(r"\\u00[2-7]")
# An @ within it should be written as %40, and is not always.
_URL_PASSWORD = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#@\s:]*:([^/?#\s]+)@")

# So many backslashes JSON has for one of them where it is nested six deep.
_LONGEST_ESCAPE = 64

Hit = tuple[int, int, str]
"""A secret in a text: its begin, its end, and what comes in its place."""


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
        self._values = {name: value for name, value in values.items() if len(value) >= _SHORTEST}
        self._any_spellings: list[AnySpelling] | None = None
        self._parts: dict[str, str] = {}
        for name, value in self._values.items():
            for part in parts_of(value):
                self._parts.setdefault(part, f"***{name}***")
        self._texts = [(core_of(part), forms_of(part), mask) for part, mask in self._parts.items()]
        for part, mask in self._parts.items():
            self._texts += [(form, (form,), mask) for form in base64_forms(part)]

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
        found = _credentials(environment, names)
        spared = {
            name: value
            for name, value in found.items()
            if self._spared.get(name) == value or (len(value) >= _SHORTEST and is_ordinary(value))
        }
        return self._with({n: v for n, v in found.items() if n not in spared}, spared)

    def sparing(self, texts: Iterable[str]) -> Secrets:
        """These without ordinary words (letters alone) that are part of one of `texts`."""
        held = "\n".join(texts)
        spared = {
            name: value
            for name, value in self._values.items()
            if _ONLY_LETTERS.fullmatch(value) and value in held
        }
        if not spared:
            return self
        values = {name: value for name, value in self._values.items() if name not in spared}
        return Secrets(values, {**self._spared, **spared})

    def learn(self, values: Mapping[str, str]) -> None:
        """Masks these, too, from now on and for all who have this object: what came up in a run."""
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
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def mask(self, text: str) -> str:
        """The text without any of the secrets, those that colours break in two included."""
        if self._texts and may_have_codes(text):
            hits = self._hits(CODES.sub("", text))
            if hits:
                text = replaced_between_codes(text, _covered(hits))
        hits = self._hits(text)
        return _replaced(text, hits) if hits else text

    def mask_bytes(self, data: bytes) -> bytes:
        """Like :meth:`mask`, of UTF-8."""
        return masking_bytes(self.mask)(data) if self._texts else data

    def _hits(self, text: str) -> list[Hit]:
        hits: list[Hit] = []
        for core, forms, mask in self._texts:
            if core in text:
                for form in forms:
                    hits += _places(text, form, mask)
        if self._texts and "\\" in text and _ESCAPED_ASCII.search(text):
            plain = plainly(text)
            for one in self._spellings():
                if one.plain is None or one.plain in plain:
                    hits += [(*hit.span(), one.mask) for hit in one.pattern.finditer(text)]
        return hits

    def _spellings(self) -> list[AnySpelling]:
        if self._any_spellings is None:
            self._any_spellings = [AnySpelling.of(*part) for part in self._parts.items()]
        return self._any_spellings

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
            begin = at + (form[0] == "\\" and _is_escaped(text, at))
        end = at + len(form)
        at = text.find(form, at + 1)
    if end:
        yield begin, end, mask


def _is_escaped(text: str, at: int) -> bool:
    before = text[max(0, at - _LONGEST_ESCAPE) : at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _covered(hits: Iterable[Hit]) -> Iterator[Hit]:
    """In order and without overlaps; of two that do overlap, both are hidden."""
    end = 0
    # The longest first: a secret that contains another goes as a whole.
    for begin, last, mask in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if last > end:
            yield max(begin, end), last, mask
            end = last


def _replaced(text: str, hits: Iterable[Hit]) -> str:
    parts: list[str] = []
    at = 0
    for begin, end, mask in _covered(hits):
        parts += [text[at:begin], mask]
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _credentials(environment: Mapping[str, str], names: Iterable[str | None]) -> dict[str, str]:
    explicit = set(names)
    found: dict[str, str] = {}
    for name, value in environment.items():
        value = value.strip()
        password = _URL_PASSWORD.match(value)
        if password:
            found[f"{name}.password"] = password[1]
            if "%" in password[1]:  # whoever logs in by it has it as it was meant
                found[f"{name}.password'"] = unquote(password[1])
        elif pairs := _PAIR.findall(value):
            found |= {f"{name}.{n}": text.strip("'") for n, text in enumerate(pairs, start=1)}
        elif (
            name in explicit
            or _SHAPE.fullmatch(value)
            or (_NAME.search(name) and not _is_path(value))
        ):
            found[name] = value
            # Such as DOCKER_AUTH_CONFIG: programs show its parts rather than the whole.
            found |= {f"{name}.{n}": text for n, text in enumerate(json_texts(value), start=1)}
    return found


def json_texts(value: str) -> list[str]:
    """The long texts within `value` if it is a JSON object; addresses are none."""
    if not value.startswith("{"):
        return []
    try:
        open_values = [json.loads(value)]
    except (ValueError, RecursionError):
        return []
    texts = []
    while open_values:
        one = open_values.pop()
        if isinstance(one, dict):
            open_values += one.values()
        elif isinstance(one, list):
            open_values += one
        elif isinstance(one, str) and len(one) >= _SHORTEST_IN_JSON and "://" not in one:
            texts.append(one)
    return texts


def _is_path(value: str) -> bool:
    """`GOOGLE_APPLICATION_CREDENTIALS` and the like name a file: no secret, and often needed."""
    try:
        return value.startswith(("/", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False
