"""What is masked, in which forms, and what is left alone."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.redaction.secrets import Secrets
from skillup.reports.text import plain


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MY_AUTH",
        "SERVICE_CREDENTIALS",
        "github_token",
        "APIKEY",
        "LAB_KEY",
        "SSH_KEY_PASSPHRASE",
    ],
)
def test_values_of_credential_variables_are_masked(name: str) -> None:
    secrets = Secrets.from_environment({name: "value-0123456789"})

    assert secrets.mask("the value-0123456789!") == f"the ***{name}***!"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/somebody"),
        ("KEYBOARD", "dvorak-layout"),
        ("MONKEY", "chimpanzee"),
        ("TOKENIZERS_PARALLELISM", "disabled"),
        ("MAX_OUTPUT_TOKENS", "200000"),
        ("AUTHOR", "somebody-else"),
        ("PWD", "where-nothing-is"),
        ("GIT_ASKPASS", "askpass-program"),
        ("COMPASS", "north-by-west"),
        ("PROJECT", "skillup-integration-tests-2"),
        ("CHART", "sk-learn-and-other-libraries"),
        ("API_KEY", "short"),
        ("API_KEY", ""),
    ],
)
def test_ordinary_variables_and_short_values_are_not(name: str, value: str) -> None:
    secrets = Secrets.from_environment({name: value})

    assert not secrets
    assert secrets.mask(f"a {value} b") == f"a {value} b"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("SMTP_PASS", "hunter2-hunter3", "hunter2-hunter3"),
        ("MYSQL_PWD", "hunter2-hunter3", "hunter2-hunter3"),
        ("SESSION_COOKIE", "sid=0123456789", "sid=0123456789"),
        ("AWS_CREDS", "hunter2-hunter3", "hunter2-hunter3"),
        ("LOGIN_JWT", "eyJhbGciOi.eyJzdWIi.c2ln", "eyJhbGciOi.eyJzdWIi.c2ln"),
        ("SENTRY_DSN", "https://0123456789ab@o1.example/1", "https://0123456789ab@o1.example/1"),
        ("BUILD_WEBHOOK_URL", "https://ci.example/h/0123456789", "https://ci.example/h/0123456789"),
        (
            "ALERTS",
            "https://hooks.slack.com/services/T0/B0/x",
            "https://hooks.slack.com/services/T0/B0/x",
        ),
        (
            "DOCKER_AUTH_CONFIG",
            '{"auths": {"r": {"auth": "dXNlcjpodW50ZXIy"}}}',
            "dXNlcjpodW50ZXIy",
        ),
        ("WAREHOUSE", "Server=db;User Id=me;Password=hunter2!;", "hunter2!"),
        ("STORAGE", "AccountName=me;AccountKey=abcdEFGH0123==;Suffix=x", "abcdEFGH0123=="),
        ("PGCONN", "host=db password='hunter2 hunter3' dbname=x", "hunter2 hunter3"),
        ("WHATEVER", "ghp_0123456789abcdefABCD", "ghp_0123456789abcdefABCD"),
    ],
)
def test_credentials_by_other_names_and_within_connection_strings_are_masked(
    name: str, value: str, secret: str
) -> None:
    """S11: passwords, cookies, webhooks, DSNs and connection strings count."""
    masked = Secrets.from_environment({name: value}).mask(f"it has {secret} in it")

    assert secret not in masked
    assert f"***{name}" in masked


@pytest.mark.parametrize("before", ["", "u:", "a", "Bearer "])
@pytest.mark.parametrize("after", ["", "\n", "@x", "0123456789"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_of_a_secret_is_masked_wherever_it_begins(
    before: str, after: str, encode: Callable[[bytes], bytes]
) -> None:
    """F7: alone, or within a longer text such as a Basic login."""
    secret = "sk-?~hunter2-é"
    masked = Secrets({"KEY": secret}).mask(
        f"({encode(f'{before}{secret}{after}'.encode()).decode()})"
    )

    assert "***KEY***" in masked
    # At most a character on each side, which the neighbours have a share in.
    assert len(masked) < len(before) * 2 + len(after) * 2 + len("(***KEY***)") + 6


def test_a_variable_that_names_a_file_is_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.touch()
    paths = {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "SSH_AUTH_SOCK": str(file)}

    assert not Secrets.from_environment(paths)


def test_named_variables_count_whatever_they_are_called() -> None:
    secrets = Secrets.from_environment({"PLAIN": "value-0123456789"}, names=("PLAIN", None))

    assert secrets.mask("value-0123456789") == "***PLAIN***"


def test_passwords_in_urls_count() -> None:
    proxy = {"HTTPS_PROXY": "http://user:p4ssw0rd!@proxy.example:8080"}

    assert Secrets.from_environment(proxy).mask("p4ssw0rd!") == "***HTTPS_PROXY.password***"


@pytest.mark.parametrize("written", ["p@ss:w0rd", "p%40ss:w0rd", "p%40ss%3Aw0rd", "p%40ss%3aw0rd"])
def test_passwords_in_urls_count_however_they_are_written(written: str) -> None:
    secrets = Secrets.from_environment({"DB": f"postgres://me:{written}@db.example/a?b=c@d"})

    for form in (written, "p@ss:w0rd", "p%40ss%3Aw0rd"):
        assert "w0rd" not in secrets.mask(f"<{form}>")
    assert secrets.mask("db.example/a?b=c@d") == "db.example/a?b=c@d"


@pytest.mark.parametrize("value", ['quo"ted\\back/slash', "ünï\ncödé-0123", "tab\tand\x00zero"])
def test_escaped_forms_are_masked(value: str) -> None:
    secrets = Secrets({"K": value})
    plain, ascii_only = (json.dumps({"a": value}, ensure_ascii=only) for only in (False, True))

    for text in (value, plain, ascii_only, json.dumps(plain), json.dumps(ascii_only)):
        assert "***K***" in secrets.mask(text)
        assert "***K***" in secrets.mask_bytes(text.encode()).decode()
    assert json.loads(secrets.mask(ascii_only)) == {"a": "***K***"}


@pytest.mark.parametrize("value", ["/a\\b/c-1", "éa/b-12", '"a/b-12', "\\a/b-12", "nab/c-12"])
@pytest.mark.parametrize("before", ["", "\\", "\\\\", '\\"', "é\\"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_stays_json(value: str, before: str, depth: int, ascii_only: bool) -> None:
    secrets = Secrets({"K": value})
    text = before + value
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=ascii_only)
    for written in (text, text.replace("/", "\\/") if depth == 1 else text):
        masked = secrets.mask(written)

        for _ in range(depth):
            masked = json.loads(masked)
        assert masked.endswith("***K***")


def test_a_secret_inside_of_another_does_not_spoil_it() -> None:
    secrets = Secrets({"SHORT": "abcdef", "LONG": "abcdef-0123456789"})

    assert secrets.mask("abcdef-0123456789 abcdef") == "***LONG*** ***SHORT***"


def test_data_is_masked_all_over() -> None:
    secrets = Secrets({"K": "value-0123456789"})
    data = {"value-0123456789": ["a value-0123456789", 1, None, ("value-0123456789",)], "b": 2.5}

    assert secrets.mask_data(data) == {"***K***": ["a ***K***", 1, None, ("***K***",)], "b": 2.5}
    assert "0123" not in repr(secrets)


def test_more_secrets_can_be_added() -> None:
    secrets = Secrets({"A": "first-0123"}).also({"B": "second-0123"})

    assert secrets.mask("first-0123 second-0123") == "***A*** ***B***"


@pytest.mark.parametrize("escape", [r"\u%04x", r"\u%04X", r"\\u%04x"])
def test_a_secret_in_needless_escapes_is_masked(escape: str) -> None:
    value = 'sk-secret/"97'
    secrets = Secrets({"KEY": value})
    whole = "".join(escape % ord(character) for character in value)
    part = value[:5] + "".join(escape % ord(character) for character in value[5:])

    for spelled in (whole, part):
        assert secrets.mask(f"<{spelled}>") == "<***KEY***>"
        assert secrets.mask_bytes(f"<{spelled}>".encode()) == b"<***KEY***>"


def test_a_secret_of_bytes_that_are_no_text_is_masked() -> None:
    raw = b"\xff\xfesecret-bytes"
    secrets = Secrets.from_environment({"X_TOKEN": os.fsdecode(raw)})

    assert secrets.mask_bytes(b"<" + raw + b">") == b"<***X_TOKEN***>"


def test_values_of_several_environments_are_all_masked() -> None:
    secrets = Secrets.from_environment({"API_KEY": "first-value"})
    secrets = secrets.also_of({"API_KEY": "second-value", "PLAIN": "third-value"})

    masked = secrets.mask("first-value second-value third-value")

    assert masked == "***API_KEY*** ***API_KEY'*** third-value"


KEY = 'sk-1234/"5678'
RED, END = "\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"
LINK, UNLINK = "\x1b]8;;http://x.example\x1b\\", "\x1b]8;;\x1b\\"


def as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def as_json_in_json(text: str) -> str:
    return as_json(as_json(text))


def as_it_is(text: str) -> str:
    return text


@pytest.mark.parametrize("written", [as_it_is, as_json, as_json_in_json])
@pytest.mark.parametrize(
    ("printed", "masked"),
    [
        (f"a {KEY[:4]}{RED}{KEY[4:]}{END} b", f"a ***K***{RED}{END} b"),
        (f"{RED}{KEY[:9]}{END}{KEY[9:]}{RED}b", f"{RED}***K***{END}{RED}b"),
        (RED.join(KEY), "***K***" + RED * (len(KEY) - 1)),
        (f"{RED}{KEY}{END} {KEY[:5]}\x1b(B{KEY[5:]}", f"{RED}***K***{END} ***K***\x1b(B"),
        (f"{KEY[:4]}{LINK}{KEY[4:]}{UNLINK}.", f"***K***{LINK}{UNLINK}."),
        (f"{KEY[:4]}\x1b7{KEY[4:]}", "***K***\x1b7"),
    ],
)
def test_a_secret_that_colours_break_in_two_is_masked_and_the_colours_stay(
    printed: str, masked: str, written: Callable[[str], str]
) -> None:
    secrets = Secrets({"K": KEY})

    assert secrets.mask(written(printed)) == written(masked)
    assert secrets.mask_bytes(written(printed).encode()) == written(masked).encode()


def test_of_two_secrets_that_overlap_in_coloured_text_nothing_is_left() -> None:
    secrets = Secrets({"A": "abcdefgh", "B": "efghijkl"})

    assert secrets.mask(f"<abc{RED}defghijk{END}l>") == f"<***A***{RED}***B***{END}>"


@pytest.mark.parametrize(
    "code", ["\x9b31m", r"\x1b[31m", r"\033[1m", r"\u001b[1m", r"\e[1m", "^[[1m"]
)
def test_codes_that_are_written_as_text_hide_no_secret(code: str) -> None:
    secrets = Secrets({"K": KEY})
    text = f"<{KEY[:4]}{code}{KEY[4:]}>"

    assert secrets.mask(text) == f"<***K***{code}>"
    assert secrets.mask_bytes(text.encode()) == f"<***K***{code}>".encode()


@pytest.mark.parametrize(
    "code", ["\x1b]8;;x\x07", "\x1b7", "\x1b[1", "\x1b]", "\x1b[31m", "\x1b=", "\x9b1m"]
)
def test_what_is_shown_of_masked_text_holds_no_secret(code: str) -> None:
    secrets = Secrets({"K": "tok-abcdefghij"})

    shown = plain(secrets.mask(f"tok-abc{code}defghij"))

    assert "tok-abcdefghij" not in shown


PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkq/kiG9w0BAQEFAASC
BKcwggSjAgEAAoIB+QC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2
short==
-----END PRIVATE KEY-----
"""


def numbered(text: str) -> str:
    return "".join(f"{n:6}\t{line}" for n, line in enumerate(text.splitlines(keepends=True), 1))


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def with_carriage_returns(text: str) -> str:
    return text.replace("\n", "\r\n")


def backwards(text: str) -> str:
    return "\n".join(reversed(text.split("\n")))


@pytest.mark.parametrize("value", [PEM, PEM.replace("\n", "\r\n"), PEM.replace("\n", "\\n")])
@pytest.mark.parametrize("printed", [numbered, indented, with_carriage_returns, backwards])
@pytest.mark.parametrize("written", [as_it_is, as_json, as_json_in_json])
def test_each_long_line_of_a_secret_is_one(
    value: str, printed: Callable[[str], str], written: Callable[[str], str]
) -> None:
    secrets = Secrets({"PEM": value})
    text = written(printed(PEM))

    masked = secrets.mask(text)

    assert masked == secrets.mask_bytes(text.encode()).decode()
    lines = [written(line) for line in PEM.splitlines()[1:4]]
    assert [line for line in lines if line in text] == lines
    assert [line for line in lines if line in masked] == []


def test_headers_rulers_and_short_lines_of_a_secret_are_none() -> None:
    secrets = Secrets({"K": "-----BEGIN RSA PRIVATE KEY-----\n" + "-" * 40 + "\nshort line\nx"})
    text = "-----BEGIN RSA PRIVATE KEY----- " + "-" * 60 + " short line"

    assert secrets.mask(text) == text


def test_of_secrets_that_overlap_nothing_is_left() -> None:
    secrets = Secrets({"A_KEY": "abcdef123456", "B_KEY": "123456ghijkl", "C": "xyxyxyx"})

    assert secrets.mask("<abcdef123456ghijkl>") == "<***A_KEY******B_KEY***>"
    assert secrets.mask_bytes(b"<abcdef123456ghijkl>") == b"<***A_KEY******B_KEY***>"
    assert secrets.mask(f"<abcdef123456g{RED}hijkl>") == f"<***A_KEY******B_KEY***{RED}>"
    assert secrets.mask("<xyxyxyxyx> <xyxyxyxxyxyxyx>") == "<***C***> <***C******C***>"


@pytest.mark.parametrize(
    "form",
    [
        *("a%2fb%20%26%3cc%3e%27%22d", "a%2Fb+%26%3Cc%3E%27%22d", "a/b%20%26%3Cc%3E%27%22d"),
        *("a/b &amp;&lt;c&gt;&#x27;&quot;d", "a/b &amp;&lt;c&gt;'\"d"),
        *("a/b &amp;&lt;c&gt;&#39;&#34;d", "a/b &amp;&lt;c&gt;&apos;&quot;d"),
        "a&#x2F;b &amp;&lt;c&gt;&#x27;&quot;d",
    ],
)  # fmt: skip
def test_a_secret_in_urls_and_html_is_masked(form: str) -> None:
    secrets = Secrets({"K": "a/b &<c>'\"d"})

    assert secrets.mask(f"({form})") == "(***K***)"
    assert secrets.mask_bytes(f"({form})".encode()) == b"(***K***)"


def test_ordinary_text_is_left_as_it_is() -> None:
    secrets = Secrets({"K": KEY, "PEM": PEM, "P": "a/b &<c>'\"d", "B": "\\\\\\pw"})
    root = Path(__file__).parents[2]
    texts = [file.read_text("utf-8") for file in sorted((root / "skillup").rglob("*.py"))]
    whole = "".join([*texts, *map(as_json, texts), *map(as_json_in_json, texts)])

    assert len(whole) > 1_000_000
    assert secrets.mask(whole) == whole
    assert secrets.mask_bytes(whole.encode()) == whole.encode()


def test_coloured_text_without_a_secret_is_left_alone() -> None:
    secrets = Secrets({"K": KEY})

    for text in (f"{RED}sk-1{END}", f"{RED}sk-\n1234", r"\\u001b[", "\x1b[31", as_json(f"{RED}é")):
        assert secrets.mask(text) == text
        assert secrets.mask_bytes(text.encode()) == text.encode()


def test_what_grep_colours_is_masked(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(f"KEY={KEY}\n")
    grep = ["grep", "--color=always", "1234", "env"]
    printed = subprocess.run(grep, cwd=tmp_path, stdout=subprocess.PIPE, check=True).stdout
    assert KEY.encode() not in printed

    masked = Secrets({"K": KEY}).mask_bytes(printed)

    assert b"KEY=***K***" in masked
    assert b"5678" not in masked


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "\\",
            "\x1b[",
            "\x1b[0",
            r"\u001b[",
            RED + "sk-1",
            "\\" * 20 + '"u0073',
            "\\" * 20 + "u005c",
        ),
        *(
            "\x1b]",
            "\x1b]8;;",
            r"\u001b]8;;",
            r"\033]\\/",
            "\x1b",
            "^[",
            "\x9b",
            r"\u005c",
            "w0w0w0",
        ),
    ],
)
def test_the_time_it_takes_grows_no_faster_than_the_text(piece: str) -> None:
    secrets = Secrets({"K": KEY, "Q": '"""\\\\\\secret', "R": "\\" * 6 + "pw", "W": "w0w0w0w0"})

    def seconds(characters: int) -> float:
        text = r"\u0041\u001b[1mx " + piece * (characters // len(piece))
        text += "\n" + KEY[:4] + RED + KEY[4:]
        began = time.process_time()
        masked = secrets.mask(text)
        took = time.process_time() - began
        assert "***K***" in masked
        return took

    few, many = (min(seconds(size) for _ in range(3)) for size in (40_000, 320_000))
    assert many < 24 * max(few, 0.001)  # eight times as much text; quadratic time: sixty-four times
