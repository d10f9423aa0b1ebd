"""A word every so often where a run is silent: so that nobody takes a long trial for a dead run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Heartbeat:
    """Calls `beat` from a thread of its own whenever nothing was said for `every` seconds."""

    def __init__(self, beat: Callable[[], None], every: float) -> None:
        self._beat = beat
        self._every = every
        self._said = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """From now on."""
        self._said = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """No more; returns when a word that is being said is out."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def said(self) -> None:
        """Something was said: the silence begins anew."""
        self._said = time.monotonic()

    def _run(self) -> None:
        while not self._over.wait(max(self._said + self._every - time.monotonic(), 0.01)):
            if time.monotonic() - self._said >= self._every:
                self.said()
                self._beat()
