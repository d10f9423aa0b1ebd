"""Secrets stay out of what is written: values of credential variables become ``***NAME***``."""

from __future__ import annotations

import base64
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

SHORTEST = 6
"""Shorter values are words ("true", "none") that would be masked all over the place."""
# Shorter lines of a longer secret are words; so are rulers, of few different characters.
_SHORTEST_LINE = 16
_FEWEST_CHARACTERS = 8
# Shorter ones may be parts of anything.
_SHORTEST_BASE64 = 7
# Where a value has its lines on one, as variables often have keys, `\n` stands between them.
_LINE_ENDS = re.compile(r"[\r\n]+|\\+[rn]")
_OCTET = re.compile("%[0-9A-F]{2}")
# No program escapes these.
_NEVER_ESCAPED = re.compile("[0-9A-Za-z._-]+")
_ONLY_LETTERS = re.compile(r"[A-Za-z]+([-_. ][A-Za-z]+)*")
# So many backslashes JSON has for one of them where it is nested six deep.
_LONGEST_ESCAPE = 64

_MOST_REMEMBERED = 16


def masked_bytes(mask: Callable[[str], str], content: bytes) -> bytes:
    """By the same mask, text in UTF-8, and files whatever bytes they hold."""
    text = content.decode(errors="surrogateescape")
    clean = mask(text)
    return content if clean == text else clean.encode(errors="surrogateescape")


def is_absent(mask: Callable[[str], str], json_text: str) -> bool:
    """Whether it is known, by one look, that `mask` changes no text of the JSON, however quoted."""
    secrets = getattr(mask, "__self__", None)
    return isinstance(secrets, Secrets) and secrets.are_absent(json_text)


class Secrets:
    """Knows the values that must not be written, in the forms in which they may turn up."""

    def __init__(self, values: Mapping[str, str], spared: Mapping[str, str] | None = None) -> None:
        """`values`: name → secret; `spared`: those that count as none, see :attr:`spared`."""
        self._spared = dict(spared or {})
        self._with: dict[object, Secrets] = {}
        """Those of :meth:`also_of`, by what it was given: all turns of a run ask for the same."""
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
        # And what colours begin with: they may stand within one.
        self._cores = ("\x1b", "\\u001", *dict.fromkeys(core for core, _, _ in self._forms))

    @property
    def spared(self) -> Sequence[str]:
        """Variables that hold ordinary words, which cannot be masked: records are made of them."""
        return sorted(self._spared)

    def also(self, values: Mapping[str, str], spared: Mapping[str, str] | None = None) -> Secrets:
        """These and more; of two with the same name, both."""
        more = dict(self._values)
        for name, value in values.items():
            while more.get(name, value) != value:
                name += "'"
            more[name] = value
        return Secrets(more, {**self._spared, **(spared or {})})

    def also_of(self, environment: Mapping[str, str], names: Iterable[str | None] = ()) -> Secrets:
        """These and those of an environment: what :func:`credentials_of` finds, but ordinary words.

        What is spared here stays so.
        """
        found = credentials_of(environment, names)
        asked = frozenset(found.items())
        if asked in self._with:
            return self._with[asked]
        spared = {
            name: value
            for name, value in found.items()
            if self._spared.get(name) == value or (len(value) >= SHORTEST and is_ordinary(value))
        }
        if len(self._with) >= _MOST_REMEMBERED:
            self._with.clear()
        more = self.also({n: v for n, v in found.items() if n not in spared}, spared)
        self._with[asked] = more
        return more

    def sparing(self, texts: Iterable[str]) -> Secrets:
        """These without ordinary words (letters alone) that are part of one of `texts`."""
        whole = "\n".join(texts)
        spared = {
            name: value
            for name, value in self._values.items()
            if _ONLY_LETTERS.fullmatch(value) and value in whole
        }
        values = {name: value for name, value in self._values.items() if name not in spared}
        return Secrets(values, {**self._spared, **spared})

    def learn(self, values: Mapping[str, str]) -> None:
        """Masks these, too, from now on and for all who have this object: found during a run."""
        new = {name: value for name, value in values.items() if value not in self._values.values()}
        if new and self is not NO_SECRETS:
            self.__dict__.update(self.also(new).__dict__)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def mask(self, text: str) -> str:
        if self.are_absent(text):
            return text
        # Colours may break a secret in two: a text that holds one loses its colour codes.
        if self._forms and (plain := without_codes(text)) != text and any(self._hits(plain)):
            text = plain
        parts: list[str] = []
        end = 0
        # The longest first: a secret that contains another goes as a whole. Of two that overlap,
        # both are hidden.
        for begin, last, mask in sorted(self._hits(text), key=lambda hit: (hit[0], -hit[1])):
            if last > end:
                parts += [text[end:begin], mask]
                end = last
        return "".join([*parts, text[end:]])

    def are_absent(self, json_text: str) -> bool:
        """Whether none can be in it: not one core, which JSON never escapes, nor a colour."""
        return not any(map(json_text.__contains__, self._cores))

    def mask_bytes(self, data: bytes) -> bytes:
        return masked_bytes(self.mask, data) if self._forms else data

    def _hits(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Of each secret in the text its begin, its end, and its replacement."""
        for core, forms, mask in self._forms:
            for form in forms if core in text else ():
                at = text.find(form)
                while at >= 0:
                    # A backslash stays where one before it escapes it: JSON would be broken.
                    before = text[max(0, at - _LONGEST_ESCAPE) : at] if form[0] == "\\" else ""
                    stays = (len(before) - len(before.rstrip("\\"))) % 2
                    yield at + stays, at + len(form), mask
                    at = text.find(form, at + 1)


NO_SECRETS = Secrets({})


def _parts(value: str) -> Iterator[str]:
    """The value, and its long lines: programs number, indent and end lines as they like."""
    yield value
    lines = _LINE_ENDS.split(value)
    for line in map(str.strip, lines if len(lines) > 1 else ()):
        long = len(line) >= _SHORTEST_LINE and len(set(line)) >= _FEWEST_CHARACTERS
        if long and not line.startswith(("-----BEGIN", "-----END")):
            yield line


def _escaped_forms(value: str) -> set[str]:
    """As it is, inside JSON, inside JSON that is itself a text in JSON, and in a URL."""
    if _NEVER_ESCAPED.fullmatch(value):
        return {value}
    forms = {value, value.replace("\\", "\\\\")}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        twice = (json.dumps(once, ensure_ascii=outer)[1:-1] for outer in (True, False))
        forms |= {once, once.replace("/", "\\/"), *twice}
    for kept in ("", "/"):
        for in_url in (quote, quote_plus):
            url = in_url(value, safe=kept, errors="surrogateescape")
            forms |= {url, _OCTET.sub(lambda octet: octet[0].lower(), url)}
    return forms


def _base64_forms(value: str) -> Iterator[str]:
    """What base64 makes of it (RFC 4648, both alphabets), beginning at any byte of a group of
    three; characters that its neighbours have a share in are left out.
    """
    data = value.encode(errors="surrogateescape")
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data)
        form = encoded[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6].decode()
        if len(form) >= _SHORTEST_BASE64:
            yield from {form, form.replace("+", "-").replace("/", "_")}


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
    re.VERBOSE,
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
# An @ within it should be written as %40, and is not always.
_URL_PASSWORD = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#@\s:]*:([^/?#\s]+)@")


def credentials_of(
    environment: Mapping[str, str], names: Iterable[str | None] = ()
) -> dict[str, str]:
    """Name → secret, of the variables whose names or values look like credentials, and of `names`.

    Passwords inside of URLs and connection strings count; paths of existing files do not.
    """
    explicit = set(names)
    found: dict[str, str] = {}
    for name, value in environment.items():
        found |= _credentials_in(name, value, name in explicit)
    return found


@lru_cache(500)  # All trials of a run have nearly the same variables
def _credentials_in(name: str, value: str, explicit: bool) -> Mapping[str, str]:
    value = value.strip()
    password = _URL_PASSWORD.match(value)
    if password:
        found = {f"{name}.password": password[1]}
        if "%" in password[1]:  # whoever logs in by it has it as it was meant
            found[f"{name}.password'"] = unquote(password[1])
        return found
    if pairs := _PAIR.findall(value):
        return {f"{name}.{n}": text.strip("'") for n, text in enumerate(pairs, start=1)}
    is_named = explicit or _SHAPE.fullmatch(value)
    if is_named or (_NAME.search(name.upper()) and not _is_path(value)):
        # Such as DOCKER_AUTH_CONFIG: programs show its parts rather than the whole.
        parts = enumerate(json_texts(value), start=1)
        return {name: value, **{f"{name}.{n}": text for n, text in parts}}
    return {}


def json_texts(value: str) -> list[str]:
    """The long texts within `value` if it is a JSON object; addresses are none."""
    try:
        data = json.loads(value) if value.startswith("{") else None
    except (ValueError, RecursionError):
        return []
    return [t for _, t in texts_in(data) if len(t) >= _SHORTEST_IN_JSON and "://" not in t]


def texts_in(data: Any) -> Iterator[tuple[str, str]]:
    """The texts within mappings and lists, each with its key in a mapping."""
    waiting = deque([("", data)])
    while waiting:
        name, one = waiting.popleft()
        if isinstance(one, Mapping):
            waiting += one.items()
        elif isinstance(one, list):
            waiting += (("", inner) for inner in one)
        elif isinstance(one, str):
            yield name, one


def _is_path(value: str) -> bool:
    """`GOOGLE_APPLICATION_CREDENTIALS` and the like name a file: no secret, and often needed."""
    try:
        return value.startswith(("/", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


# Values that cannot be masked, because our own files are made of them: a password `completed`
# would take the status out of every record, and `2026-11` the times.

# Beginnings of dates and times, as ISO 8601 and file names have them; versions, small numbers.
_TIME = re.compile(
    r"(19|20)\d\d[-/.]?[01]\d([-/.]?([0-3]\d?)?([T_ -]\d[\d:.]*(Z|[+-][\d:]*)?|[T_ -])?)?"
    r"|[0-2]?\d:[0-5]\d(:[0-5]\d)?[\d.]*(Z|[+-][\d:]+)?|[\d.:+-]{1,7}|\d+\.\d+\.\d+"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_./-]*(/?\d{1,3})?")
# What reads or writes files and streams, and in its source a word in quotation marks, or the name
# of a model's field.
_FOLDERS = ("schema", "engines", "sessions", "store", "executors", "app", "reports")
_WORD_OF_SOURCE = re.compile(r'"([A-Za-z_][\w./-]{5,60})"|^    (\w{6,60}):', re.MULTILINE)


def is_ordinary(value: str) -> bool:
    """Whether it is part of a word that skillup reads or writes, or like a date or a version."""
    if _TIME.fullmatch(value):
        return True
    return _WORD.fullmatch(value) is not None and value in _words_of_source()


@cache
def _words_of_source() -> str:
    """The words of every engine's stream and of all our files: as the source itself has them."""
    root = Path(__file__).parents[1]
    files = [file for folder in _FOLDERS for file in (root / folder).rglob("*.py")]
    texts = (file.read_text("utf-8") for file in files)
    return "\n".join({a or b for text in texts for a, b in _WORD_OF_SOURCE.findall(text)})


# Codes that programs print in the midst of words: colours as of ``grep --color``, links. Form:
# ECMA-48 and ECMA-35, which terminals obey: ``ESC [ … letter``, ``ESC ] … BEL`` or
# ``ESC ] … ESC \`` (links and titles), ``ESC`` with other characters (``ESC ( B``, ``ESC 7``).
# Within JSON, and JSON within JSON, the escape character is written ``\u001b``.

_COLOUR = r"\[[0-?]*[ -/]*[@-~]"
# Of a command (ESC ]) that nothing ends the text stays: a terminal would hide all that follows.
_RAW = rf"\x1b(?:{_COLOUR}|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
ESCAPES = re.compile(_RAW)  # Codes as terminals get them; what is shown is shown without

# `_SAME` stands for the backslashes of a code's beginning: each level of JSON doubles them. A match
# begins only with the first of many backslashes: else runs of them would take quadratic time.
_SAME = r"(?P=slashes)"
_LINK = (
    r"\][^\x07\n\\]*(?:\\+[\"/][^\x07\n\\]*)*"
    rf"(?:\x07|{_SAME}(?:u0007|u001[bB]{_SAME}{_SAME}))"
)
_BODY = rf"u001[bB](?:{_COLOUR}|{_LINK}|[ !#-/]*[0-\[\]-~])"
_CODES = re.compile(rf"{_RAW}|(?<!\\)(?P<slashes>\\+){_BODY}(?:{_SAME}{_BODY})*")


def without_codes(text: str) -> str:
    """The text without codes, also as JSON has them."""
    return _CODES.sub("", text) if "\x1b" in text or "\\u001" in text else text
