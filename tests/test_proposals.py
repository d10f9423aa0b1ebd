"""The proposals: index, file names, headings and front matter tell one story."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[1] / "proposals"
STATUSES = {"draft", "accepted", "rejected", "superseded", "implemented"}
KEYS = {"number", "title", "author", "status", "date"}
ROW = re.compile(r"\| \[SUP-(\d{4})\]\(([^)]+)\) \| (.+) \| (\w+) \| (\S+) \|")


def test_each_proposal_has_a_row_in_the_index_that_says_what_its_file_says() -> None:
    stated = []
    for path in sorted(FOLDER.glob("[0-9]*.md")):
        _, front, text = path.read_text("utf-8").split("---\n", 2)
        head = yaml.safe_load(front)
        assert set(head) - {"supersedes", "superseded_by"} == KEYS, path.name
        assert head["status"] in STATUSES, path.name
        assert head["author"].strip(), path.name
        assert (head["status"] == "superseded") == ("superseded_by" in head), path.name
        number = f"{head['number']:04d}"
        assert re.fullmatch(rf"{number}(-[a-z0-9]+)+\.md", path.name)
        assert f"# SUP-{number}: {head['title']}\n" in text, path.name
        stated.append((number, path.name, head["title"], head["status"], str(head["date"])))
    index = ROW.findall((FOLDER / "README.md").read_text("utf-8"))
    assert stated
    assert [(*row[:2], row[2].replace(r"\|", "|"), *row[3:]) for row in index] == stated
