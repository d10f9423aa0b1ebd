"""The journal: append-only, and none the worse for a crash."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.store.journal import Journal, no_mask, read_journal


def test_events_come_back_in_order_with_their_times(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl", no_mask)
    journal.append("one", job="a\nb")
    journal.append("two", durable=True)
    journal.close()
    events = list(read_journal(tmp_path / "events.jsonl"))
    assert [event["event"] for event in events] == ["one", "two"]
    assert events[0]["job"] == "a\nb"
    assert events[0]["time"].endswith("Z")
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize("torn", [b'{"event": "tw', b'{"event"', b"\x00\x00\x00", b"\xff\xfe"])
def test_a_line_that_was_cut_short_costs_only_itself(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "events.jsonl"
    Journal(path, no_mask).append("one")
    with path.open("ab") as file:
        file.write(torn)
    assert [event["event"] for event in read_journal(path)] == ["one"]
    Journal(path, no_mask).append("three")
    assert [event["event"] for event in read_journal(path)] == ["one", "three"]


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = Journal(path, no_mask)

    def write(name: str) -> None:
        for number in range(50):
            journal.append(name, number=number, filler="x" * 5000)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    events = list(read_journal(path))
    assert len(events) == 200
    assert [e["number"] for e in events if e["event"] == "a"] == list(range(50))


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.symlink_to("/dev/full")
    journal = Journal(path, no_mask)
    with pytest.raises(RunDirectoryError, match="No space left") as caught:
        journal.append("one")
    assert "free some space" in (caught.value.hint or "")


def test_secrets_are_masked(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl", lambda text: text.replace("sk-1", "***"))
    journal.append("one", message="key sk-1")
    assert next(read_journal(tmp_path / "events.jsonl"))["message"] == "key ***"


def test_no_journal_means_no_events(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "events.jsonl")) == []
