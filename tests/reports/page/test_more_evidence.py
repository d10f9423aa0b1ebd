"""All that a check found is marked, and what became of the file that it is about."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.reports.html.evidence import evidence_of
from skillup.schema.grade import CheckResult


def check(kind: str, expected: str, **more: Any) -> CheckResult:
    passed = more.pop("passed", True)
    return CheckResult(
        name=kind, kind=kind, passed=passed, score=float(passed), expected=expected, **more
    )


def step(response: str = "", number: int = 1, **changes: list[str]) -> dict[str, Any]:
    told = {"added": [], "modified": [], "deleted": [], "diff": "", **changes}
    return {
        "turn_number": number,
        "follow_up": None,
        "response": response,
        "items": [],
        "changes": told if changes else None,
    }


def marked(response: str, found: CheckResult) -> list[str]:
    turn = step(response)
    evidence = evidence_of(found, [turn], [turn])
    assert evidence is not None
    places = [evidence, *evidence.get("more", [])]
    units = response.encode("utf-16-le")
    return [units[2 * one["start"] : 2 * one["end"]].decode("utf-16-le") for one in places]


@pytest.mark.parametrize(
    ("kind", "expected", "first", "pieces"),
    [
        ("contains", '"dark mode", "login"', "dark mode", ["dark mode", "login", "login"]),
        ("must_contain_any", 'any of "login", "never"', "login", ["login", "login"]),
        ("contains", '"Login"', "login", ["login", "login"]),
        ("contains", '"dark mode"; none of "login"', "dark mode", ["dark mode"]),
        ("contains", '"dark mode", "cut sh…"', "dark mode", ["dark mode"]),
        ("contains", '"say "yes"", "login"', 'say "yes"', ['say "yes"', "login", "login"]),
        ("matches", r"/dark \w+/, /log(in)/", "dark mode", ["dark mode", "login"]),
        ("matches", r"/dark \w+/; none of /login/", "dark mode", ["dark mode"]),
    ],
)
def test_every_piece_that_was_found_is_told(
    kind: str, expected: str, first: str, pieces: list[str]
) -> None:
    answer = '\U0001f600 dark mode; the login, say "yes"; a login.'
    assert marked(answer, check(kind, expected, found=f'found "{first}"', excerpt=answer)) == pieces


def test_there_are_not_endless_many() -> None:
    answer = "a " * 500
    found = check("contains", '"a"', found='found "a"', excerpt=answer[:62])
    assert len(marked(answer, found)) < 60


@pytest.mark.parametrize(
    ("expected", "found", "passed", "turn", "path"),
    [
        ('news.md "Fixed"', '"Fixed" is not in news.md', False, 2, "news.md"),
        ('news.md "Fixed"', "found in news.md", True, 2, "news.md"),
        ("*.txt", "not there: *.txt", False, 1, "old.txt"),
        ("other.md", "not there: other.md", False, 2, None),
        ("other.md", "all are there", True, None, None),
    ],
)
def test_what_became_of_the_file_is_shown(
    expected: str, found: str, passed: bool, turn: int | None, path: str | None
) -> None:
    turns = [step(number=2, added=["news.md", "x/news.md"]), step(deleted=["old.txt"])]
    evidence = evidence_of(
        check("file_contains", expected, found=found, passed=passed, excerpt=""), turns, turns
    )
    if turn is None:
        assert evidence is None
    else:
        assert evidence is not None
        assert (evidence["in"], evidence["turn"], evidence["path"]) == ("changes", turn, path)
