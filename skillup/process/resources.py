"""How much memory a turn takes, looked up now and then.

The same looks tell the tree which processes there are, before their parents die.
"""

from __future__ import annotations

from itertools import chain, repeat

import anyio

from skillup.process.tree import ProcessTree

# Soon at first, so that short turns are seen at all, then seldom: looking costs CPU the turns want.
_PAUSES_SECONDS = (0.02, 0.08, 0.15)
_LATER_PAUSE_SECONDS = 0.25


class ResourceSampler:
    """Samples one tree until it is cancelled."""

    def __init__(self, tree: ProcessTree) -> None:
        self.peak_memory_bytes: int | None = None
        self._tree = tree

    async def run(self) -> None:
        for pause in chain(_PAUSES_SECONDS, repeat(_LATER_PAUSE_SECONDS)):
            await anyio.sleep(pause)
            self.sample()

    def sample(self) -> None:
        """One look; nothing is recorded if nobody is alive any more."""
        resident = sum(row.resident_bytes for row in self._tree.sample())
        if resident:
            self.peak_memory_bytes = max(resident, self.peak_memory_bytes or 0)
