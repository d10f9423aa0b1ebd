"""A check and what it found, without repetition."""

from __future__ import annotations

import pytest

from skillup.checks.describe import beside_found, in_words


@pytest.mark.parametrize(
    ("name", "found", "shown"),
    [
        ('contains "yes"', 'not found: "yes"', "not found"),
        ("files_exist a.txt", "not there: a.txt", "not there"),
        ("files_exist a.txt, b.txt", "not there: b.txt", "not there: b.txt"),
        ("max_duration_seconds 1 s", "21 s", "21 s"),
        ("asks first", 'not found: "confirm"', 'not found: "confirm"'),
        ("tool_called shell", "not called", "not called"),
        ("rubric", "c1: no", "c1: no"),
        ("golden_file a", "\n2 lines differ\n-a\n+b", "2 lines differ"),
    ],
)
def test_a_check_and_the_first_line_of_what_it_found(name: str, found: str, shown: str) -> None:
    assert in_words(name, found) == f"{name}: {shown}"


def test_beside_the_word_found_it_is_not_repeated_and_of_nothing_nothing_is_shown() -> None:
    assert beside_found('found "deleted"') == '"deleted"'
    assert beside_found("not found: x") == "not found: x"
    assert in_words("judge", " \n") == "judge"
