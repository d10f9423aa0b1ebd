"""Which words of an answer a check may go by."""

from __future__ import annotations

import pytest

from skillup.sessions.case import key_phrases


@pytest.mark.parametrize(
    ("answer", "phrases"),
    [
        ("I wrote notes.md and src/main.py.", ["notes.md", "src/main.py"]),
        ("There are 3 files, 41 lines.", ["3 files", "41 lines"]),
        ('It said "not found" to me', ["not found"]),
        ("Run `make test` first", ["make test"]),
        ("Please confirm", ["confirm"]),
        ("Yes, ok.", []),
        ("", []),
    ],
)
def test_names_quotes_numbers_and_long_words(answer: str, phrases: list[str]) -> None:
    assert key_phrases(answer, "") == phrases


@pytest.mark.parametrize(
    "answer",
    [
        "at 10:42:07",
        "on 2026-01-01",
        "commit 3f2a9bc1d4e5",
        "in `/tmp/x8s1`",
        "see https://example.com/page",
        "v2.1.0",
        "it is `<<name>>`",
        "`{{x}}`",
        "1",
    ],
)
def test_what_differs_from_run_to_run_is_none(answer: str) -> None:
    assert key_phrases(answer, "") == []


def test_words_of_the_question_come_last() -> None:
    answer = "The repository has a licence."
    assert key_phrases(answer, "What about the repository?") == ["licence", "repository"]


def test_there_are_only_so_many_and_always_the_same() -> None:
    answer = "alpha.py beta.py gamma.py delta.py"
    assert key_phrases(answer, "") == ["alpha.py", "beta.py", "gamma.py"]
    assert key_phrases(answer, "", most=1) == ["alpha.py"]
