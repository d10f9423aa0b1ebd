"""Paths of one workspace that are to mean another."""

from __future__ import annotations

import pytest

from skillup.engines.environment import moved


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/one", "/w/two"),
        ("cd /w/one && ls", "cd /w/two && ls"),
        ("/w/one/a.txt:/w/one/b", "/w/two/a.txt:/w/two/b"),
        ("It is in /w/one.", "It is in /w/two."),
        ("/w/one.txt /w/one-2 /w/ones /w/one_", "/w/one.txt /w/one-2 /w/ones /w/one_"),
        ("nothing", "nothing"),
    ],
)
def test_a_path_is_moved_and_what_only_begins_like_it_is_not(text: str, expected: str) -> None:
    assert moved(text, "/w/one", "/w/two") == expected


def test_data_is_moved_wherever_it_holds_texts() -> None:
    data = {"/w/one": ["/w/one/a", 1, None, {"x": "/w/one"}], "n": 2.5, "b": True}
    assert moved(data, "/w/one", "/w/t") == {
        "/w/t": ["/w/t/a", 1, None, {"x": "/w/t"}],
        "n": 2.5,
        "b": True,
    }


def test_a_new_path_is_taken_as_it_is() -> None:
    assert moved("/w/one", "/w/one", "/w/\\1") == "/w/\\1"
