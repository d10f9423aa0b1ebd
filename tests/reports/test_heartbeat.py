"""A silent run says that it goes on."""

from __future__ import annotations

import threading

from skillup.reports.heartbeat import Heartbeat

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


def test_one_that_never_began_can_be_stopped() -> None:
    Heartbeat(lambda: None, every=1).stop()
