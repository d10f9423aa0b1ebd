"""A check and what it found, said once."""

from __future__ import annotations

import pytest

from skillup.checks.describe import beside_found, in_words


@pytest.mark.parametrize(
    ("name", "found", "told"),
    [
        ('contains "yes"', 'not found: "yes"', 'contains "yes": not found'),
        ("files_exist a.txt", "not there: a.txt", "files_exist a.txt: not there"),
        (
            "file_contains CHANGELOG.md ~ /re x/",
            "/re x/ is not in CHANGELOG.md",
            "/re x/ is not in CHANGELOG.md",
        ),
        ("glob *4*", "the answer does not match *4*", "glob *4*: the answer does not match"),
        ('not (contains "x")', 'found "x"', 'not (contains "x"): found'),
        (
            'contains any of "a", "b"',
            'found none of "a", "b"',
            'contains any of "a", "b": found none',
        ),
    ],
)
def test_what_a_check_repeats_of_its_name_is_told_once(name: str, found: str, told: str) -> None:
    assert in_words(name, found) == told


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("asks first", 'not found: "confirm"'),
        ('contains any of "a", "b"; none of "c"', 'found "c"'),
        ("tool_called shell", "not called"),
        ("exit_code 0", "exit code 3"),
        ("files_exist a.txt b.txt", "not there: a.txt, c.txt"),
        ("files_exist a.txt, b.txt", "not there: b.txt"),
        ("rubric", "c1: no"),
    ],
)
def test_what_says_more_stands_behind_the_name(name: str, found: str) -> None:
    assert in_words(name, found) == f"{name}: {found}"


def test_only_the_first_line_is_told_and_nothing_of_nothing() -> None:
    assert in_words("golden_file a", "\n2 lines differ\n-a\n+b") == "golden_file a: 2 lines differ"
    assert in_words("judge", " \n") == "judge"


def test_beside_the_word_found_it_is_not_said_again() -> None:
    assert beside_found('found "deleted"') == '"deleted"'
    assert beside_found("not found: x") == "not found: x"
    assert beside_found("used") == "used"
