"""Values that cannot be masked, as our own files are made of them, and values that can."""

from __future__ import annotations

import pytest

from skillup.redaction.allow_list import is_ordinary
from skillup.redaction.secrets import Secrets


@pytest.mark.parametrize(
    "word",
    [
        *("completed", "content", "status", "message", "result", "session_id", "passed", "events"),
        *("with_skill", "scripted", "complete", "run_id", "skillup.record/1", "tool_use"),
        *("2026-11", "2026-11-21", "20261121", "2026-11-21T10:20:30Z", "2026-11-", "202611"),
        *("10:20:30", "2.1.197", "0.169.0", "123456"),
    ],
)
def test_words_of_records_dates_and_versions_are_spared(word: str) -> None:
    assert is_ordinary(word)

    secrets = Secrets.from_environment({"DB_PASSWORD": word, "API_KEY": "sk-0123456789"})

    assert secrets.mask(f"{word} sk-0123456789") == f"{word} ***API_KEY***"
    assert secrets.spared == ["DB_PASSWORD"]


@pytest.mark.parametrize(
    "value",
    [
        *("hunter2", "postgres", "changeme", "sk-ant-0123456789", "0123456789", "20261121-hush"),
        *("Completed1!", "1999-hours", "correct horse battery staple"),
    ],
)
def test_other_values_are_secrets(value: str) -> None:
    secrets = Secrets.from_environment({"DB_PASSWORD": value})

    assert secrets.mask(value) == "***DB_PASSWORD***"
    assert secrets.spared == []


def test_what_is_spared_stays_so_when_more_is_added() -> None:
    secrets = Secrets.from_environment({"DB_PASSWORD": "completed"}).also({"A": "first-0123"})
    secrets = secrets.also_of({"PG_PASSWORD": "session_id"})

    assert secrets.spared == ["DB_PASSWORD", "PG_PASSWORD"]


def test_what_is_spared_for_a_run_is_spared_by_whoever_looks_at_the_same_variables() -> None:
    variables = {"DB_PASSWORD": "walrus", "API_KEY": "sk-0123456789"}
    of_run = Secrets.from_environment(variables).sparing(["/srv/the-walrus"])

    assert of_run.also_of(variables).mask("walrus sk-0123456789") == "walrus ***API_KEY***"
    assert of_run.also_of({"DB_PASSWORD": "another"}).mask("another") == "***DB_PASSWORD***"


def test_words_of_names_are_spared_but_no_keys() -> None:
    secrets = Secrets({"A_PASSWORD": "walrus", "B_KEY": "sk-0123456789"})

    spared = secrets.sparing(["the-walrus/scripted/1", "with sk-0123456789"])

    assert spared.spared == ["A_PASSWORD"]
    assert spared.mask("walrus sk-0123456789") == "walrus ***B_KEY***"
    assert secrets.sparing(["other"]) is secrets
