"""Files of a run by their URL: those in the run's directory, and nothing else on the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.reports.server.server import NoSuchFileError, disposition, open_inside
from tests.support.trees import make_tree


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
    file, size, name = open_inside(run, asked)
    with file:
        assert file.read() == content
    assert size == len(content)
    assert name


WAYS_OUT = [
    "",
    "/",
    ".",
    "..",
    "../secret",
    "../run-2/secret",
    "../run/run.json",
    "trials/../run.json",
    "trials/../../secret",
    "./run.json",
    "trials//c/files/two words.txt",
    "%2e%2e/secret",
    "%2E%2E%2Fsecret",
    "..%2fsecret",
    ".%2e/secret",
    "%252e%252e/secret",
    "..%5csecret",
    "..\\secret",
    "trials%5c..%5c..%5csecret",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    "//etc/passwd",
    "C:%5cWindows%5cwin.ini",
    "C:/Windows/win.ini",
    "file:///etc/passwd",
    "run.json%00",
    "run.json%00.txt",
    "%00",
    "..;/secret",
    "%c0%ae%c0%ae/secret",
    "%c0%af",
    "..%c0%afsecret",
    "..%ef%bc%8fsecret",
    "run.json/",
    "run.json/x",
    "trials",
    "out",
    "up/secret",
    "up",
    "loop",
    "pipe",
    "nowhere",
    "a" * 5000,
    "a/" * 3000 + "b",
    "%0a",
    "%ff%fe",
]


@pytest.mark.parametrize("asked", WAYS_OUT)
def test_nothing_else_is(run: Path, asked: str) -> None:
    with pytest.raises(NoSuchFileError):
        open_inside(run, asked)


def test_a_name_cannot_add_to_the_headers() -> None:
    told = disposition('a"\r\nSet-Cookie: x\u00e9.txt', attachment=True)
    assert told.startswith('attachment; filename="')
    assert "\r" not in told
    assert "\n" not in told
    assert told.isascii()
