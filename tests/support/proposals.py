"""Reads a folder of proposals as its readers do, and what a run of `proposals/new.py` comes to."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROW = re.compile(r"^\|\s*\[SUP-(?P<number>\d{4})\]\((?P<file>[^)]+)\)\s*\|(?P<cells>.*)\|\s*$")


@dataclass(frozen=True)
class Entry:
    """One proposal, as its front matter or as its index row states it."""

    number: int
    file: str
    title: str
    status: str
    date: str


def front_matter(path: Path) -> dict[str, Any]:
    """What stands between the file's first two `---` lines."""
    opening, block, _ = re.split(r"^---\n", path.read_text("utf-8"), maxsplit=2, flags=re.MULTILINE)
    assert opening == "", f"{path} does not begin with front matter"
    loaded = yaml.safe_load(block)
    assert isinstance(loaded, dict)
    return loaded


def unmarked(markdown: str) -> str:
    """The text that Markdown shows: a backslash before ASCII punctuation is not part of it."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


def proposal_paths(folder: Path) -> list[Path]:
    """Every proposal of the folder, by number."""
    return sorted(folder.glob("[0-9][0-9][0-9][0-9]*.md"))


def stated_in_files(folder: Path) -> list[Entry]:
    """What the proposals say of themselves, by number."""
    entries = []
    for path in proposal_paths(folder):
        head = front_matter(path)
        entries.append(
            Entry(head["number"], path.name, head["title"], head["status"], str(head["date"]))
        )
    return entries


def stated_in_index(folder: Path) -> list[Entry]:
    """What the index says of them, in its own order."""
    entries = []
    for line in (folder / "README.md").read_text("utf-8").split("\n"):
        if match := ROW.match(line):
            cells = re.split(r"(?<!\\)\|", match["cells"])
            title, status, date = (unmarked(cell.strip(" ")) for cell in cells)
            entries.append(Entry(int(match["number"]), match["file"], title, status, date))
    return entries


# -I and -S leave nothing but the standard library.
PLAIN_PYTHON = [sys.executable, "-I", "-S"]

# Root passes over permissions by a capability; without it a test of permissions means the same
# for everyone. 24 is PR_CAPBSET_DROP; 1 and 2 are CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
WITHOUT_ROOT_RIGHTS = """
import ctypes, os, sys
if sys.platform == "linux" and os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(24, 1, 0, 0, 0) == libc.prctl(24, 2, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]])
"""

# No file can be written past its tenth byte, as on a disk that has just become full.
WITH_A_FULL_DISK = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]])
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr
    for word in words:
        assert word in done.stderr


def assert_made(done: subprocess.CompletedProcess[str], folder: Path, name: str) -> Path:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    path = Path(done.stdout.removesuffix("\n"))
    assert path.name == name
    assert path.parent.resolve() == folder.resolve()
    assert stated_in_index(folder) == stated_in_files(folder)
    assert not list(folder.glob(".*"))
    return path
