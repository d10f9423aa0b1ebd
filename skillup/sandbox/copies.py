"""A trial's directories, kept the same here and in a container of a machine without our files."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.sandbox import transfer
from skillup.sandbox.channel import Channel

_SILENT_SECONDS = 60.0  # So long nothing may come or go
_SERVE = Path(transfer.__file__).read_bytes() + b"\nserve()\n"
_Facts = dict[str, list[Any]]


class Copies:
    """Inside, a `user` writes to the `places`; what is `readable` is root's."""

    def __init__(
        self, channel: Channel, places: Sequence[Path], readable: Sequence[Path], user: int
    ) -> None:
        self._channel, self._user = channel, user
        self._places = [str(place) for place in places]
        self._readable = [str(one) for path in readable for one in {path, path.resolve()}]
        self._here: _Facts = {}  # When both were last the same
        self._there: _Facts = {}

    async def sync(self, *, ends: bool = False) -> None:
        """Sends what changed here, then fetches what changed there. Raises OSError.

        `ends`: with the latest program ends all that it left running. Who is cancelled waits.
        """
        if self._readable:
            order = {"roots": self._readable, "user": 0, "ends": False, "removed": []}
            await self._beside(lambda way: _ask(way, order, transfer.listing(self._readable)))
            self._readable = []
        await self._beside(lambda stream: self._sync(stream, ends))

    async def _beside(self, exchange: Callable[[Any], object]) -> None:
        def work() -> None:
            near, far = socket.socketpair()
            near.settimeout(_SILENT_SECONDS)
            # Where nobody reads that waits, too.
            threading.Thread(target=self._channel.open, args=(far, _SERVE), daemon=True).start()
            with near, near.makefile("rwb") as stream:
                exchange(stream)

        try:
            await anyio.to_thread.run_sync(work)
        except Exception as error:
            why = getattr(error, "strerror", None) or error
            said = f"files were not copied to the container, or from it: {why}"
            raise OSError(getattr(error, "errno", None), said) from error

    def _sync(self, stream: Any, ends: bool) -> None:
        here = transfer.listing(self._places)
        sent = {path: facts for path, facts in here.items() if self._here.get(path) != facts}
        order = {"roots": self._places, "user": self._user, "ends": ends}
        order["removed"] = [path for path in self._here if path not in here]
        there = _ask(stream, order, sent)
        inside = tuple(f"{place}/" for place in self._places)
        for path in there:
            if not f"{path}/".startswith(inside) or os.path.normpath(path) != path:
                raise OSError(f"{path!r} is not in its directories")
        for place in self._places:
            if there.get(place, [""])[0] != "directory":
                raise OSError(f"{place} is gone inside, or was replaced")
        changed = {p: f for p, f in there.items() if p not in sent and self._there.get(p) != f}
        gone = [path for path in here if path not in there]
        transfer.write_line(stream, [*changed])
        stream.flush()
        transfer.receive(stream, gone, changed.__contains__)
        self._here, self._there = transfer.listing(self._places) if changed or gone else here, there


def _ask(stream: Any, order: dict[str, Any], sent: _Facts) -> _Facts:
    """What is in the roots inside, when what is sent is there."""
    transfer.write_line(stream, order)
    transfer.send(stream, sent)
    found: _Facts = transfer.read_line(stream)
    return found
