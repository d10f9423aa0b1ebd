"""Reads a folder of proposals the way its readers do: YAML front matter, Markdown index table."""

from __future__ import annotations

import re
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
