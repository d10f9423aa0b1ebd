"""Units of work in processes of their own."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from queue import SimpleQueue

import psutil
import pytest

from skillup.executors.cluster.spawned import Finished, run_apart

MODULE = """
import json, os, sys, time

def main():
    asked = json.loads(sys.stdin.readline())
    print(os.getpid(), flush=True)
    if asked["fail"]:
        raise SystemExit("it failed")
    for _ in range(asked.get("lines", 0)):
        print(sys.stdin.readline().strip(), flush=True)
    time.sleep(asked["seconds"])
    return 0
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "unit_of_this_test.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "unit_of_this_test"


def test_it_is_told_to_stop_once_it_is_not_wanted(module: str) -> None:
    lines: list[bytes] = []
    unwanted = threading.Event()

    def take(line: bytes) -> None:
        lines.append(line)
        unwanted.set()

    request = b'{"fail": false, "seconds": 600}'
    ended = run_apart(module, request, take, lambda: not unwanted.is_set())
    assert ended.stopped
    assert not psutil.pid_exists(int(lines[0]))


def test_it_has_so_much_time_and_no_more(module: str) -> None:
    request = b'{"fail": false, "seconds": 600}'
    assert run_apart(module, request, lambda _: None, lambda: True, seconds=0.5).stopped


def test_what_it_says_at_its_end_is_kept(module: str) -> None:
    ended = run_apart(module, b'{"fail": true, "seconds": 0}', lambda _: None, lambda: True)
    assert ended == Finished(1, "it failed", stopped=False)


def test_it_is_killed_from_outside(module: str) -> None:
    lines: list[bytes] = []

    def kill() -> None:
        while not lines:
            time.sleep(0.02)
        psutil.Process(int(lines[0])).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    ended = run_apart(
        module, b'{"fail": false, "seconds": 600}', lines.append, lambda: True, seconds=60
    )
    killer.join()
    assert (ended.code, ended.stopped) == (-9, False)


def test_lines_that_come_meanwhile_are_passed_in(module: str) -> None:
    lines: list[bytes] = []
    more: SimpleQueue[bytes | None] = SimpleQueue()

    def take(line: bytes) -> None:
        lines.append(line)
        more.put(b"line %d" % len(lines))

    request = b'{"fail": false, "seconds": 0, "lines": 2}'
    ended = run_apart(module, request, take, lambda: True, more=more)
    assert ended.code == 0
    assert lines[1:] == [b"line 1\n", b"line 2\n"]
