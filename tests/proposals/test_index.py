"""The proposals of this repository: index, file names and front matter tell one story."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
import yaml

from tests.support.proposals import (
    front_matter,
    proposal_paths,
    stated_in_files,
    stated_in_index,
    unmarked,
)

FOLDER = Path(__file__).parents[2] / "proposals"
STATUSES = {"draft", "accepted", "rejected", "superseded", "implemented"}
KEYS = {"number", "title", "author", "status", "date"}
PROPOSALS = proposal_paths(FOLDER)

each_proposal = pytest.mark.parametrize("path", PROPOSALS, ids=lambda path: path.name)


def test_index_and_front_matter_agree_in_number_title_status_and_date() -> None:
    assert stated_in_files(FOLDER)
    assert stated_in_index(FOLDER) == stated_in_files(FOLDER)


def test_no_number_is_used_twice() -> None:
    numbers = [entry.number for entry in stated_in_files(FOLDER)]
    assert len(numbers) == len(set(numbers))


@each_proposal
def test_file_name_begins_with_the_number_of_the_front_matter(path: Path) -> None:
    number, _, slug = path.stem.partition("-")
    assert int(number) == front_matter(path)["number"]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)


@each_proposal
def test_front_matter_has_every_key_and_a_known_status(path: Path) -> None:
    head = front_matter(path)
    assert set(head) - {"supersedes", "superseded_by"} == KEYS
    assert head["status"] in STATUSES
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(head["date"]))
    assert head["author"].strip()


@each_proposal
def test_heading_repeats_number_and_title(path: Path) -> None:
    head = front_matter(path)
    headings = [line for line in path.read_text("utf-8").splitlines() if line.startswith("# ")]
    assert [unmarked(line) for line in headings] == [f"# SUP-{head['number']:04d}: {head['title']}"]


@each_proposal
def test_a_superseded_proposal_and_its_successor_name_each_other(path: Path) -> None:
    head = front_matter(path)
    heads = {other["number"]: other for other in map(front_matter, PROPOSALS)}
    assert (head["status"] == "superseded") == ("superseded_by" in head)
    if "superseded_by" in head:
        assert heads[head["superseded_by"]]["supersedes"] == head["number"]
    if "supersedes" in head:
        assert heads[head["supersedes"]]["superseded_by"] == head["number"]


@pytest.mark.parametrize(
    "title",
    [
        'He said: "it\'s done"',
        "- a: {b: [c, 'd']} # e",
        r"C:\new\table \" \\",
        "--- *alias &anchor !tag %directive @at `tick`",
        "Größe, 日本語, العربية, 🧪",
        "yes",
        "0o17",
        "~",
    ],
)
def test_template_keeps_a_title_that_is_typed_in_by_hand(title: str) -> None:
    template = string.Template((FOLDER / "template.md").read_text("utf-8"))
    block = template.safe_substitute(title=title).split("\n---\n")[0]
    assert yaml.safe_load(block)["title"] == title
