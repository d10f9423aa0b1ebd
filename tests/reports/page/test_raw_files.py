"""Links to the raw streams, for every name that a job or a file can have."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from skillup.reports.html.run_files import Fork, RawFiles
from skillup.store.places import directory_of_job
from tests.support.trees import make_tree

JOB = 'odd "name" #1?/50%/e/with_skill/1'


def _run(root: Path, *jobs: str) -> Path:
    for job in jobs:
        make_tree(
            root / "trials" / directory_of_job(job),
            {
                "record.json": "{}",
                "attempt-1.json": "{}",
                "raw/turn-01.stdout.jsonl": "",
                "raw/turn-01-follow-up-1.stdout.jsonl": "",
                "raw/turn-010.stdout.jsonl": "",
                "raw/user/user-01.stdout.jsonl": "",
                "raw.attempt-1/turn-01.stdout.jsonl": "",
                "files/out/a b.txt": "",
            },
        )
    return root


def test_links_lead_to_the_files(tmp_path: Path) -> None:
    run = _run(tmp_path, JOB)
    raw = RawFiles(run, {}, base="base/")

    links = [*raw.of_turn(JOB, 1), *raw.of_turn(JOB, 1, 1), *raw.of_turn(JOB, 10)]

    assert [link["name"] for link in links] == [
        "turn-01.stdout.jsonl",
        "turn-01-follow-up-1.stdout.jsonl",
        "turn-010.stdout.jsonl",
    ]
    for link in [*links, *raw.of_trial(JOB)]:
        assert link["href"].startswith("base/trials/")
        assert not set(link["href"]) & set(' "#?<>\\')
        assert (run / unquote(link["href"].removeprefix("base/"))).is_file()
    assert {link["name"] for link in raw.of_trial(JOB)} == {
        "record.json",
        "attempt-1.json",
        "files/out/a b.txt",
        "raw.attempt-1/turn-01.stdout.jsonl",
        "raw/user/user-01.stdout.jsonl",
    }


def test_links_that_lead_elsewhere_are_not_shown(tmp_path: Path) -> None:
    run = _run(tmp_path, "a/e/with_skill/1")
    (run / "trials/a/e/with_skill/1/raw/turn-02.stdout.jsonl").symlink_to("/etc/passwd")
    (run / "trials/a/e/with_skill/1/files/etc").symlink_to("/etc")
    raw = RawFiles(run, {})
    assert raw.of_turn("a/e/with_skill/1", 2) == []
    assert len(raw.of_trial("a/e/with_skill/1")) == 5


def test_shared_turns_are_those_of_the_trial_that_was_forked(tmp_path: Path) -> None:
    run = _run(tmp_path, "a/e/w/1")
    raw = RawFiles(run, {"b/e/w/1": Fork("a/e/w/1", 1), "c/e/w/1": Fork("b/e/w/1", 1)})
    assert raw.of_turn("c/e/w/1", 1) == raw.of_turn("a/e/w/1", 1) != []
    assert raw.of_turn("b/e/w/1", 2) == []
    assert RawFiles(run, {"x": Fork("y", 9), "y": Fork("x", 9)}).of_turn("x", 1) == []
