"""What is masked, in which forms, and what is left alone."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.redaction.secrets import ESCAPES, NO_SECRETS, Secrets, without_codes
from skillup.reports.text import plain

PLAIN_VALUE = "value-0123456789"
NAMES = [
    *("LAB_KEY", "APIKEY", "PGPASSWORD", "MY_AUTH", "OPENAI_API_KEY", "github_token", "MYSQL_PWD"),
    *("SMTP_PASS", "AWS_CREDS", "SESSION_COOKIE", "AWS_SECRET_ACCESS_KEY", "SSH_KEY_PASSPHRASE"),
]
CREDENTIALS = [
    *((name, PLAIN_VALUE, PLAIN_VALUE) for name in NAMES),
    ("LOGIN_JWT", "eyJhbGciOi.eyJzdWIi.c2ln", "eyJhbGciOi.eyJzdWIi.c2ln"),
    ("SENTRY_DSN", "https://0123456789ab@o1.example/1", "https://0123456789ab@o1.example/1"),
    ("BUILD_WEBHOOK_URL", "https://ci.example/h/0123456789", "https://ci.example/h/0123456789"),
    ("ALERTS", "https://hooks.slack.com/services/T/B/x", "https://hooks.slack.com/services/T/B/x"),
    ("DOCKER_AUTH_CONFIG", '{"auths": {"r": {"auth": "dXNlcjpodW50ZXIy"}}}', "dXNlcjpodW50ZXIy"),
    ("WAREHOUSE", "Server=db;User Id=me;Password=hunter2!;", "hunter2!"),
    ("STORAGE", "AccountName=me;AccountKey=abcdEFGH0123==;Suffix=x", "abcdEFGH0123=="),
    ("PGCONN", "host=db password='hunter2 hunter3' dbname=x", "hunter2 hunter3"),
    ("WHATEVER", "ghp_0123456789abcdefABCD", "ghp_0123456789abcdefABCD"),
    ("HTTPS_PROXY", "http://user:p4ssw0rd!@proxy.example:8080", "p4ssw0rd!"),
    ("DB", "postgres://me:p%40ss%3Aw0rd@db.example/a?b=c@d", "p@ss:w0rd"),
    ("DB", "postgres://me:p@ss:w0rd@db.example/a", "p%40ss%3aw0rd"),
]


@pytest.mark.parametrize(("name", "value", "secret"), CREDENTIALS)
def test_credentials_are_masked_whatever_they_are_called(
    name: str, value: str, secret: str
) -> None:
    """S11: passwords, cookies, webhooks, DSNs and connection strings count."""
    masked = NO_SECRETS.also_of({name: value}).mask(f"it has {secret} in it")

    assert secret not in masked
    assert f"***{name}" in masked


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("HOME", "/home/somebody"), ("KEYBOARD", "dvorak-layout"), ("MONKEY", "chimpanzee")),
        *(("TOKENIZERS_PARALLELISM", "disabled"), ("MAX_OUTPUT_TOKENS", "200000")),
        *(("AUTHOR", "somebody-else"), ("PWD", "where-nothing-is"), ("COMPASS", "north-by-west")),
        *(("PROJECT", "skillup-integration-tests-2"), ("CHART", "sk-learn-and-other-libraries")),
        *(("API_KEY", "short"), ("API_KEY", ""), ("SSH_AUTH_SOCK", __file__)),
    ],
)
def test_ordinary_variables_short_values_and_files_are_not(name: str, value: str) -> None:
    secrets = NO_SECRETS.also_of({name: value})

    assert not secrets
    assert secrets.mask(f"a {value} b") == f"a {value} b"


def test_named_variables_and_several_environments_count() -> None:
    secrets = NO_SECRETS.also_of({"PLAIN": PLAIN_VALUE}, names=("PLAIN", None))
    secrets = secrets.also_of({"API_KEY": "first-value"}).also_of({"API_KEY": "second-value"})

    masked = secrets.also({"A": "third-0123"}).mask(f"{PLAIN_VALUE} first-value second-value third")

    assert masked == "***PLAIN*** ***API_KEY*** ***API_KEY'*** third"


@pytest.mark.parametrize(
    "word",
    [
        *("completed", "content", "status", "session_id", "passed", "events", "with_skill"),
        *("skillup.record/2", "assistant", "tool_use", "item.completed", "prefix_sha256"),
        *("2026-11", "20261121", "2026-11-21T10:20:30Z", "10:20:30", "2.1.197", "123456"),
    ],
)
def test_words_of_files_and_streams_dates_and_versions_are_spared(word: str) -> None:
    secrets = NO_SECRETS.also_of({"DB_PASSWORD": word, "API_KEY": "sk-0123456789"})

    assert secrets.mask(f"{word} sk-0123456789") == f"{word} ***API_KEY***"
    assert secrets.also({"A": "first-0123"}).spared == ["DB_PASSWORD"]


@pytest.mark.parametrize(
    "value",
    ["hunter2", "postgres", "changeme", "0123456789", "20261121-hush", "Completed1!", "1999-hours"],
)
def test_other_values_are_secrets(value: str) -> None:
    assert NO_SECRETS.also_of({"DB_PASSWORD": value}).mask(value) == "***DB_PASSWORD***"


def test_words_of_a_runs_names_are_spared_but_no_keys() -> None:
    variables = {"DB_PASSWORD": "gazebo", "API_KEY": "sk-0123456789"}
    secrets = NO_SECRETS.also_of(variables)

    of_run = secrets.sparing(["the-gazebo/scripted/1", "with sk-0123456789"])

    assert of_run.spared == ["DB_PASSWORD"]
    assert of_run.also_of(variables).mask("gazebo sk-0123456789") == "gazebo ***API_KEY***"
    assert of_run.also_of({"DB_PASSWORD": "another"}).mask("another") == "***DB_PASSWORD***"
    assert secrets.sparing(["other"]).mask("gazebo") == "***DB_PASSWORD***"


@pytest.mark.parametrize("before", ["", "u:", "Bearer "])
@pytest.mark.parametrize("after", ["", "\n", "@x"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_of_a_secret_is_masked_wherever_it_begins(
    before: str, after: str, encode: Callable[[bytes], bytes]
) -> None:
    """F7: alone, or within a longer text such as a Basic login."""
    text = encode(f"{before}sk-?~hunter2-é{after}".encode()).decode()
    masked = Secrets({"KEY": "sk-?~hunter2-é"}).mask(f"({text})")

    assert "***KEY***" in masked
    # At most a character on each side, which the neighbours have a share in.
    assert len(masked) < len(before) * 2 + len(after) * 2 + len("(***KEY***)") + 6


@pytest.mark.parametrize("value", ["/a\\b/c-1", "éa/b-12", '"a/b-12', "\\a/b-12", "n\ta\x00b/c-12"])
@pytest.mark.parametrize("before", ["", "\\", "\\\\", '\\"', "é\\"])
def test_json_and_json_within_json_are_masked_and_stay_json(value: str, before: str) -> None:
    secrets = Secrets({"K": value})
    for depth, ascii_only in ((0, True), (1, True), (1, False), (2, True), (2, False)):
        text = before + value
        for _ in range(depth):
            text = json.dumps(text, ensure_ascii=ascii_only)
        for written in (text, text.replace("/", "\\/") if depth == 1 else text):
            masked = secrets.mask(written)
            for _ in range(depth):
                masked = json.loads(masked)
            assert masked.endswith("***K***")


@pytest.mark.parametrize(
    "form", ["a%2fb%20%26%3cc%3e%27%22d", "a%2Fb+%26%3Cc%3E%27%22d", "a/b%20%26%3Cc%3E%27%22d"]
)
def test_a_secret_in_urls_is_masked(form: str) -> None:
    assert Secrets({"K": "a/b &<c>'\"d"}).mask(f"({form})") == "(***K***)"


def test_bytes_are_masked_whatever_they_are() -> None:
    raw = b"\xff\xfesecret-bytes"
    of_bytes = NO_SECRETS.also_of({"X_TOKEN": os.fsdecode(raw)})
    assert of_bytes.mask_bytes(b"<" + raw + b">") == b"<***X_TOKEN***>"


KEY = 'sk-1234/"5678'
RED, END = "\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"
LINK, UNLINK = "\x1b]8;;http://x.example\x1b\\", "\x1b]8;;\x1b\\"


def as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def as_json_in_json(text: str) -> str:
    return as_json(as_json(text))


@pytest.mark.parametrize("written", [str, as_json, as_json_in_json])
@pytest.mark.parametrize(
    ("printed", "masked"),
    [
        (f"KEY={KEY[:3]}{RED}1234{END}{KEY[7:]}", "KEY=***K***"),
        (RED.join(KEY), "***K***"),
        (f"{RED}{KEY}{END} {KEY[:5]}\x1b(B{KEY[5:]}", "***K*** ***K***"),
        (f"{KEY[:4]}{LINK}{KEY[4:]}{UNLINK}.", "***K***."),
        (f"{RED}sk-1{END} {RED}sk-\n1234", f"{RED}sk-1{END} {RED}sk-\n1234"),
    ],
)
def test_a_secret_that_colours_break_in_two_is_masked(
    printed: str, masked: str, written: Callable[[str], str]
) -> None:
    secrets = Secrets({"K": KEY})

    assert secrets.mask(written(printed)) == written(masked)
    assert secrets.mask_bytes(written(printed).encode()) == written(masked).encode()


@pytest.mark.parametrize(
    "code",
    [
        *("\x1b[m", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x1b(B", "\x1b7", "\x1b="),
        *("\x1b]8;;http://x.example/a?b\x1b\\", "\x1b]0;title\x07", "\x1b]", "\x1b["),
    ],
)
def test_what_is_shown_without_codes_is_searched_without_them(code: str) -> None:
    for text in (f"a{code}b", f"a{code} 1{code}b", f"{code}\n{code}", code * 3):
        assert without_codes(text) == plain(text) == ESCAPES.sub("", text)
    secrets = Secrets({"K": "tok-abcdefghij"})
    assert "tok-abcdefghij" not in plain(secrets.mask(f"tok-abc{code}defghij"))


PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkq/kiG9w0BAQEFAASC
BKcwggSjAgEAAoIB+QC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2
short==
-----END PRIVATE KEY-----
"""


@pytest.mark.parametrize("value", [PEM, PEM.replace("\n", "\r\n"), PEM.replace("\n", "\\n")])
@pytest.mark.parametrize("written", [str, as_json, as_json_in_json])
def test_each_long_line_of_a_secret_is_one(value: str, written: Callable[[str], str]) -> None:
    numbered = "".join(f"{n:6}\t{line}\r\n" for n, line in enumerate(PEM.split("\n"), 1))

    masked = Secrets({"PEM": value}).mask(written(numbered))

    assert not [line for line in PEM.splitlines()[1:4] if written(line) in masked]
    assert "BEGIN PRIVATE KEY" in masked
    assert "short==" in masked


def test_of_secrets_that_contain_or_overlap_each_other_nothing_is_left() -> None:
    secrets = Secrets({"A": "abcdef123456", "B": "123456ghijkl", "C": "xyxyxyx", "D": "abcdef"})

    assert secrets.mask("<abcdef123456ghijkl> abcdef") == "<***A******B***> ***D***"
    assert secrets.mask(f"<abcdef123456g{RED}hijkl>") == "<***A******B***>"
    assert secrets.mask("<xyxyxyxyx>") == "<***C******C***>"


def test_ordinary_text_is_left_as_it_is() -> None:
    ruler = "-----BEGIN RSA PRIVATE KEY-----\n" + "-" * 40 + "\nshort line\nx"
    secrets = Secrets({"K": KEY, "PEM": PEM, "P": "a/b &<c>'\"d", "B": "\\\\\\pw", "R": ruler})
    root = Path(__file__).parents[2]
    texts = [file.read_text("utf-8") for file in sorted((root / "skillup").rglob("*.py"))]
    whole = "".join([*texts, *map(as_json, texts), "-" * 60, " short line"])

    assert secrets.mask(whole) == whole
    assert secrets.mask_bytes(whole.encode()) == whole.encode()


@pytest.mark.parametrize(
    "piece",
    [
        *("\\", "\x1b[0", RED + "sk-1", "\\" * 20 + '"u0073', "\x1b]8;;", r"\u001b]8;;\""),
        *(r"\u001b]\\/", "w0w0w0"),
    ],
)
def test_long_texts_take_no_quadratic_time(piece: str) -> None:
    """It would take minutes."""
    secrets = Secrets({"K": KEY, "Q": '"""\\\\secret', "R": "\\" * 6 + "pw", "W": "w0w0w0w0"})

    assert "***K***" in secrets.mask(piece * 40_000 + "\n" + KEY[:4] + RED + KEY[4:])
