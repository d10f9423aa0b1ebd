"""What `proposals/new.py` refuses: a message, exit code 2, and a folder that stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.proposals import (
    WITH_A_FULL_DISK,
    WITHOUT_ROOT_RIGHTS,
    Run,
    assert_refused,
    contents,
)


@pytest.mark.parametrize("title", ["", " ", "   \u00a0 \u2003"])
def test_empty_title_is_refused(folder: Path, new: Run, title: str) -> None:
    before = contents(folder)
    assert_refused(new(title), "title is empty")
    assert contents(folder) == before


@pytest.mark.parametrize(
    "character", ["\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\uffff"]
)
def test_title_of_more_than_one_plain_line_is_refused(
    folder: Path, new: Run, character: str
) -> None:
    before = contents(folder)
    assert_refused(new(f"one{character}two"), "title must be one line", f"U+{ord(character):04X}")
    assert_refused(new("Title", "--author", f"a{character}b"), "author must be one line")
    assert contents(folder) == before


def test_title_that_is_not_valid_text_is_refused(folder: Path, new: Run) -> None:
    before = contents(folder)
    assert_refused(new("caf\udce9"), "title")
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "TITLE"),
        (["Title", "--author"], "--author: expected one argument"),
        (["Title", "--date"], "--date: expected one argument"),
        (["Title", "--status"], "--status: expected one argument"),
        (["Title", "--number"], "--number: expected one argument"),
        (["Title", "--output"], "--output: expected one argument"),
        (["Title", "--status", "--date", "2026-11-22"], "--status: expected one argument"),
        (["Title", "--author", " "], "author is empty"),
        (["Title", "--output", ""], "--output needs"),
        (["Title", "--date", "22.11.2026"], "YYYY-MM-DD"),
        (["Title", "--date", "20261122"], "YYYY-MM-DD"),
        (["Title", "--date", "2026-02-30"], "YYYY-MM-DD"),
        (["Title", "--status", "done"], "invalid choice"),
        (["Title", "--number", "0"], "from 1 to 9999"),
        (["Title", "--number", "-1"], "--number"),
        (["Title", "--number", "1.5"], "from 1 to 9999"),
        (["Title", "--number", "10000"], "from 1 to 9999"),
        (["Title", "another"], "unrecognized arguments: another"),
        (["Title", "--unknown"], "unrecognized arguments: --unknown"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    folder: Path, new: Run, arguments: list[str], word: str
) -> None:
    before = contents(folder)
    assert_refused(new(*arguments), word)
    assert contents(folder) == before


@pytest.mark.parametrize("taken", ["0004-other.md", "0004.md", "0004-.md"])
def test_an_existing_number_is_refused(folder: Path, new: Run, taken: str) -> None:
    (folder / taken).write_text("mine", "utf-8")
    before = contents(folder)
    assert_refused(new("Title", "--number", "4"), "SUP-0004 exists already")
    assert contents(folder) == before
    assert new("Title").stdout.strip().endswith("0005-title.md")


def test_no_number_after_the_last(folder: Path, new: Run) -> None:
    (folder / "9999-last.md").touch()
    assert_refused(new("Title"), "no next number")


def test_a_missing_output_folder_is_refused(folder: Path, new: Run) -> None:
    before = contents(folder.parent)
    assert_refused(new("Title", "--output", "no/such/folder"), "no/such/folder does not exist")
    assert contents(folder.parent) == before


def test_an_output_that_is_a_file_is_refused(folder: Path, new: Run) -> None:
    before = contents(folder)
    assert_refused(new("Title", "--output", str(folder / "README.md")), "is not a folder")
    assert contents(folder) == before


def test_an_output_path_too_long_for_the_file_system_is_refused(new: Run) -> None:
    assert_refused(new("Title", "--output", "x" * 5000), "nothing was changed")


def test_an_index_without_its_table_is_refused(folder: Path, new: Run) -> None:
    (folder / "README.md").write_text("# Proposals\n\nSee the folder.\n", "utf-8")
    before = contents(folder)
    assert_refused(new("Title"), "no table")
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["README.md", "template.md"])
def test_a_file_that_is_not_text_is_refused(folder: Path, new: Run, name: str) -> None:
    (folder / name).write_bytes(b"\xff\xfe\x00")
    before = contents(folder)
    assert_refused(new("Title"), name, "not UTF-8")
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["README.md", "template.md"])
def test_a_folder_in_place_of_a_file_is_refused(folder: Path, new: Run, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    before = contents(folder)
    assert_refused(new("Title"), "cannot read", name)
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["README.md", "template.md"])
def test_a_file_that_may_not_be_read_is_refused(folder: Path, new: Run, name: str) -> None:
    before = contents(folder)
    (folder / name).chmod(0)
    assert_refused(new("Title", wrapper=WITHOUT_ROOT_RIGHTS), "cannot read", name)
    (folder / name).chmod(0o644)
    assert contents(folder) == before


def test_a_missing_template_is_refused(folder: Path, new: Run) -> None:
    (folder / "template.md").unlink()
    before = contents(folder)
    assert_refused(new("Title"), "cannot read the template")
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("$title", "the title"), "no place for $title"),
        (("$author", "$writer"), "$writer"),
        (("## Summary", "## Costs in $"), "stray `$`"),
    ],
)
def test_a_damaged_template_is_refused(
    folder: Path, new: Run, change: tuple[str, str], word: str
) -> None:
    template = (folder / "template.md").read_text("utf-8")
    (folder / "template.md").write_text(template.replace(*change), "utf-8")
    before = contents(folder)
    assert_refused(new("Title"), word)
    assert contents(folder) == before


def test_a_folder_that_may_not_be_written_stays_as_it_was(folder: Path, new: Run) -> None:
    before = contents(folder)
    folder.chmod(0o555)
    done = new("Title", wrapper=WITHOUT_ROOT_RIGHTS)
    folder.chmod(0o755)
    assert_refused(done, "nothing was changed", "Permission denied")
    assert contents(folder) == before


def test_a_full_disk_leaves_nothing_half_written(folder: Path, new: Run) -> None:
    before = contents(folder)
    assert_refused(new("Title", wrapper=WITH_A_FULL_DISK), "nothing was changed")
    assert contents(folder) == before
