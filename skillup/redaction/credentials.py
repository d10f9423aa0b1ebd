"""Which variables hold credentials, and which values are too ordinary to be masked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import unquote

SHORTEST = 6
"""Shorter values are words ("true", "none") that would be masked all over the place."""
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
    try:
        open_values = [json.loads(value)] if value.startswith("{") else []
    except (ValueError, RecursionError):
        return []
    texts = []
    while open_values:
        one = open_values.pop()
        if isinstance(one, dict | list):
            open_values += one.values() if isinstance(one, dict) else one
        elif isinstance(one, str) and len(one) >= _SHORTEST_IN_JSON and "://" not in one:
            texts.append(one)
    return texts


def _is_path(value: str) -> bool:
    """`GOOGLE_APPLICATION_CREDENTIALS` and the like name a file: no secret, and often needed."""
    try:
        return value.startswith(("/", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


# Values that cannot be masked, because our own files are made of them: a password `completed`
# would take the status out of every record, `assistant` the agent out of its stream, and `2026-11`
# the times.

# A date or a time, or the beginning of one, as ISO 8601 and file names have them; versions and
# numbers that are no longer than counts of tokens.
_TIME = re.compile(
    r"(19|20)\d\d[-/.]?[01]\d([-/.]?([0-3]\d?)?([T_ -]\d[\d:.]*(Z|[+-][\d:]*)?|[T_ -])?)?"
    r"|[0-2]?\d:[0-5]\d(:[0-5]\d)?[\d.]*(Z|[+-][\d:]+)?|[\d.:+-]{1,7}|\d+\.\d+\.\d+"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_./-]*(/?\d{1,3})?")
# What reads or writes files and streams, and in its source a word in quotation marks, or the name
# of a model's field.
_FOLDERS = ("schema", "engines", "sessions", "store", "executors", "app", "reports", "exporters")
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
