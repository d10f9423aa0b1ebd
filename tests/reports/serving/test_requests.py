"""Which requests the server of `skillup view` answers at all, and which files."""

from __future__ import annotations

import os
from email.message import Message
from pathlib import Path

import pytest

from skillup.reports.server import Guard, NotServedError, open_inside
from tests.support.trees import make_tree

GUARD = Guard(7575, "secret")
OWN = ("Host", "127.0.0.1:7575")


def refused(*given: tuple[str, str]) -> bool:
    message = Message()
    for name, value in given:
        message[name] = value
    return GUARD.refusal(message) is not None


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7575", "localhost:7575", "LOCALHOST:7575", "[::1]:7575"]
)
def test_this_machines_own_names_are_answered(host: str) -> None:
    assert not refused(("Host", host))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:7575", "127.0.0.1", "localhost", "localhost:7576"),
        *("localhost:7575.evil.example", "localhost.evil.example:7575", "2130706433:7575"),
        *("127.0.0.1:7575@evil.example", "evil.example@127.0.0.1:7575", "localhost.:7575"),
        *("127.0.0.2:7575", "0.0.0.0:7575", "[::1]", "[::]:7575", "::1:7575"),
        *("localhost:07575", "localhost:", ":7575", "", "localhost:7575, evil.example"),
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    assert refused(("Host", host))


def test_a_host_has_to_be_named_once() -> None:
    assert refused()
    assert refused(OWN, ("Host", "evil.example"))


@pytest.mark.parametrize(
    ("name", "value", "answered"),
    [
        ("Origin", "http://127.0.0.1:7575", True),
        ("Origin", "http://localhost:7575", True),
        ("Sec-Fetch-Site", "same-origin", True),
        ("Sec-Fetch-Site", "none", True),
        ("Origin", "http://evil.example", False),
        ("Origin", "http://evil.example:7575", False),
        ("Origin", "https://127.0.0.1:7575", False),
        ("Origin", "http://127.0.0.1:8000", False),
        ("Origin", "null", False),
        ("Origin", "http://127.0.0.1:7575/path", False),
        ("Origin", "http://[bad", False),
        ("Sec-Fetch-Site", "cross-site", False),
        ("Sec-Fetch-Site", "same-site", False),
        ("Sec-Fetch-Site", "anything", False),
    ],
)
def test_only_the_page_itself_may_ask(name: str, value: str, answered: bool) -> None:
    assert refused(OWN, (name, value)) != answered


def test_the_secret_is_the_first_part_of_the_path() -> None:
    assert GUARD.inner_path("/secret/") == ""
    assert GUARD.inner_path("/secret/api/runs?x=1#y") == "api/runs"
    for wrong in ("/", "/secret", "/SECRET/", "/secre/t", "//secret/", "http://x/secret/", "*", ""):
        assert GUARD.inner_path(wrong) is None


# Files of a run by their URL: those in the run's directory, and nothing else on the machine.


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory, with a secret beside it and links that lead in and out."""
    make_tree(
        tmp_path,
        {
            "run/run.json": "{}",
            "run/trials/a%2Fb/raw/turn-01.stdout.jsonl": "x\n",
            "run/trials/c/files/two words.txt": "y",
            "run-2/secret": "s",
            "secret": "s",
        },
    )
    root = tmp_path / "run"
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to(tmp_path)
    (root / "within").symlink_to(root / "run.json")
    (root / "loop").symlink_to(root / "loop")
    os.mkfifo(root / "pipe")
    return root


@pytest.mark.parametrize(
    ("asked", "content"),
    [
        ("run.json", b"{}"),
        ("trials/a%252Fb/raw/turn-01.stdout.jsonl", b"x\n"),
        ("trials/c/files/two%20words.txt", b"y"),
        ("within", b"{}"),
    ],
)
def test_files_of_the_run_are_found(run: Path, asked: str, content: bytes) -> None:
    with open_inside(run, asked) as file:
        assert file.read() == content


WAYS_OUT = [
    *("", "/", ".", "..", "../secret", "../run-2/secret", "../run/run.json", "./run.json"),
    *("trials/../run.json", "trials/../../secret", "trials//c/files/two words.txt"),
    *("%2e%2e/secret", "%2E%2E%2Fsecret", "..%2fsecret", ".%2e/secret", "%252e%252e/secret"),
    *("..%5csecret", "..\\secret", "trials%5c..%5c..%5csecret", "%2fetc%2fpasswd"),
    *("/etc/passwd", "//etc/passwd", "C:%5cWindows%5cwin.ini", "C:/Windows/win.ini"),
    *("file:///etc/passwd", "run.json%00", "run.json%00.txt", "%00", "..;/secret"),
    *("%c0%ae%c0%ae/secret", "%c0%af", "..%c0%afsecret", "..%ef%bc%8fsecret"),
    *("run.json/", "run.json/x", "trials", "out", "up/secret", "up", "loop", "pipe", "nowhere"),
    *("a" * 5000, "a/" * 3000 + "b", "%0a", "%ff%fe"),
]


@pytest.mark.parametrize("asked", WAYS_OUT)
def test_nothing_else_is(run: Path, asked: str) -> None:
    with pytest.raises(NotServedError):
        open_inside(run, asked)
