"""What `proposals/new.py` makes: the next proposal, for any title, and its index row."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support.proposals import (
    PLAIN_PYTHON,
    Entry,
    Run,
    assert_made,
    contents,
    front_matter,
    stated_in_files,
    stated_in_index,
)


def test_makes_the_first_proposal_and_its_row(folder: Path, new: Run) -> None:
    done = new("Judge records offline", "--author", "Ada Lovelace", "--date", "2026-11-22")
    path = assert_made(done, folder, "0001-judge-records-offline.md")
    assert stated_in_index(folder) == [
        Entry(1, path.name, "Judge records offline", "draft", "2026-11-22")
    ]
    assert front_matter(path)["author"] == "Ada Lovelace"
    assert "\n# SUP-0001: Judge records offline\n" in path.read_text("utf-8")
    assert "$" not in path.read_text("utf-8")


def test_leaves_all_other_text_of_the_index_as_it_was(folder: Path, new: Run) -> None:
    before = (folder / "README.md").read_text("utf-8")
    assert_made(new("One"), folder, "0001-one.md")
    after = (folder / "README.md").read_text("utf-8")
    assert "".join(re.split(r"^\| \[SUP-.*\n", after, flags=re.MULTILINE)) == before


def test_date_is_today_if_none_is_given(folder: Path, new: Run) -> None:
    path = assert_made(new("One"), folder, "0001-one.md")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(front_matter(path)["date"]))


def test_next_number_follows_the_highest_and_leaves_gaps(folder: Path, new: Run) -> None:
    assert_made(new("One"), folder, "0001-one.md")
    assert_made(new("Seven", "--number", "7"), folder, "0007-seven.md")
    assert_made(new("Eight"), folder, "0008-eight.md")
    assert [entry.number for entry in stated_in_index(folder)] == [1, 7, 8]


def test_a_gap_is_filled_on_request_and_its_row_stands_in_order(folder: Path, new: Run) -> None:
    assert_made(new("Seven", "--number", "7"), folder, "0007-seven.md")
    assert_made(new("Three", "--number", "0003"), folder, "0003-three.md")
    assert [entry.number for entry in stated_in_index(folder)] == [3, 7]


def test_number_of_a_removed_proposal_is_not_given_again(folder: Path, new: Run) -> None:
    assert_made(new("One"), folder, "0001-one.md").unlink()
    done = new("Two")
    assert done.returncode == 0, done.stderr
    assert (folder / "0002-two.md").exists()


def test_number_eight_is_not_read_as_octal(folder: Path, new: Run) -> None:
    path = assert_made(new("Ten", "--number", "10"), folder, "0010-ten.md")
    assert front_matter(path)["number"] == 10


@pytest.mark.parametrize("status", ["draft", "accepted", "rejected", "superseded", "implemented"])
def test_takes_every_status(folder: Path, new: Run, status: str) -> None:
    assert_made(new("One", "--status", status), folder, "0001-one.md")
    assert stated_in_index(folder)[0].status == status


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ('He said: "it\'s done"', "he-said-its-done"),
        (r"C:\new\table \| \\", "c-new-table"),
        ("# not a comment #", "not-a-comment"),
        ("C# and F#", "c-and-f"),
        ("a | b || c", "a-b-c"),
        (r"a \| b", "a-b"),
        ("--- three dashes ---", "three-dashes"),
        ("{{number}} $date ${title} $$ %s {}", "number-date-title-s"),
        ("*bold* _it_ snake_case `code` [link](x) <b> ~~no~~ &amp;", None),
        ("Größe für Ærøskøbing und Łódź", "grosse-fur-aeroskobing-und-lodz"),
        ("Crème brûlée ﬁne ①", "creme-brulee-fine-1"),
        ("日本語のタイトル", "proposal"),
        ("日本語 API", "api"),
        ("Привет", "proposal"),
        ("🧪👩‍🔬", "proposal"),
        ("!!!", "proposal"),
        ("|", "proposal"),
        ("...", "proposal"),
        ("yes", "yes"),
        ("2026-11-21", "2026-11-21"),
        ("null", "null"),
        ("../../etc/passwd", "etc-passwd"),
        ("con\u00a0fused", "con-fused"),
    ],
)
def test_any_title_survives_in_front_matter_index_and_heading(
    folder: Path, new: Run, title: str, slug: str | None
) -> None:
    done = new("--date", "2026-11-22", "--", title)
    path = assert_made(done, folder, f"0001-{slug}.md" if slug else Path(done.stdout).name.strip())
    assert stated_in_index(folder) == [Entry(1, path.name, title, "draft", "2026-11-22")]


@pytest.mark.parametrize("title", ["snake_case in R&D", "Say: 'what' (now)", "50 % faster; #2"])
def test_an_ordinary_title_stands_in_the_index_as_it_was_typed(
    folder: Path, new: Run, title: str
) -> None:
    assert new(title).returncode == 0
    assert f" | {title} | " in (folder / "README.md").read_text("utf-8")


def test_spaces_around_a_title_are_dropped(folder: Path, new: Run) -> None:
    path = assert_made(new("   Spaced  out   "), folder, "0001-spaced-out.md")
    assert front_matter(path)["title"] == "Spaced  out"


@pytest.mark.parametrize("title", ["word " * 2000, "w" * 20_000, "é" * 9_000])
def test_slug_of_a_long_title_is_bounded(folder: Path, new: Run, title: str) -> None:
    done = new(title)
    path = assert_made(done, folder, Path(done.stdout).name.strip())
    assert len(path.name) <= len("0001-.md") + 60
    assert re.fullmatch(r"0001-[a-z]+(-[a-z]+)*\.md", path.name)
    assert front_matter(path)["title"] == title.strip()


def test_an_output_folder_without_an_index_gets_one(folder: Path, new: Run, tmp_path: Path) -> None:
    other = tmp_path / "ünusual folder"
    other.mkdir()
    before = contents(folder)
    assert_made(new("One", "--output", str(other)), other, "0001-one.md")
    assert_made(new("Two", "--output", str(other)), other, "0002-two.md")
    assert contents(folder) == before


def test_several_at_once_get_numbers_of_their_own(folder: Path, new: Run) -> None:
    titles = [f"Idea {letter}" for letter in "abcdef"]
    threads = [threading.Thread(target=new, args=(title,)) for title in titles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = stated_in_index(folder)
    assert entries == stated_in_files(folder)
    assert [entry.number for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert sorted(entry.title for entry in entries) == titles


def test_line_ends_and_permissions_of_the_index_are_kept(folder: Path, new: Run) -> None:
    index = folder / "README.md"
    index.write_bytes(index.read_bytes().replace(b"\n", b"\r\n"))
    index.chmod(0o640)
    assert new("One").returncode == 0
    assert b"\n" not in index.read_bytes().replace(b"\r\n", b"")
    assert index.stat().st_mode & 0o777 == 0o640


def test_a_reader_that_has_gone_away_does_not_matter(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PLAIN_PYTHON, str(folder / "new.py"), "One"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert "0001-one.md, but stdout fails" in done.stderr
    assert "Traceback" not in done.stderr
    assert stated_in_index(folder) == stated_in_files(folder) != []


def test_help_names_every_option(new: Run) -> None:
    done = new("--help")
    assert done.returncode == 0
    for option in ("TITLE", "--author", "--date", "--status", "--number", "--output"):
        assert option in done.stdout
