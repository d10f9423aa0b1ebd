"""A silent run says that it goes on."""

from __future__ import annotations

import threading

from skillup.reports.terminal.progress import Heartbeat

GUARD_SECONDS = 60


def test_it_beats_while_nothing_is_said() -> None:
    beats = threading.Semaphore(0)
    heart = Heartbeat(beats.release, every=0.02)
    heart.start()

    assert beats.acquire(timeout=GUARD_SECONDS)
    assert beats.acquire(timeout=GUARD_SECONDS)
    heart.stop()


def test_after_it_was_stopped_it_is_silent() -> None:
    beats: list[int] = []
    heart = Heartbeat(lambda: beats.append(1), every=3600)
    heart.start()
    heart.said()
    heart.stop()

    assert beats == []
    assert "heartbeat" not in {thread.name for thread in threading.enumerate()}


def test_one_that_never_began_can_be_stopped_and_says_nothing() -> None:
    beats: list[int] = []
    heart = Heartbeat(lambda: beats.append(1), every=0)

    heart.stop()

    assert beats == []
    assert "heartbeat" not in {thread.name for thread in threading.enumerate()}


def test_what_is_being_said_when_it_is_stopped_is_said_to_its_end() -> None:
    begun, go_on = threading.Event(), threading.Event()
    said: list[str] = []

    def beat() -> None:
        begun.set()
        assert go_on.wait(GUARD_SECONDS)
        said.append("all of it")

    heart = Heartbeat(beat, every=0)
    heart.start()
    assert begun.wait(GUARD_SECONDS)
    threading.Timer(0.05, go_on.set).start()
    heart.stop()

    assert said == ["all of it"]
