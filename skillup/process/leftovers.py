"""After a skillup that was killed: finding and ending the processes it could not end itself.

Every running skillup has a small JSON file ``<pid>-<started>.json`` in a directory that the caller
chooses, and all its descendants carry its owner id in their environment. A file whose owner is dead
names whom to look for. Where environments may not be read (some programs on macOS) a leftover of a
killed skillup is not found.
"""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from skillup.process.ending import as_leftovers, ending_steps, walk_blocking
from skillup.process.markers import OWNER_VARIABLE, owner_id
from skillup.process.orphans import adopt_orphans
from skillup.process.request import Leftover
from skillup.process.table import now_as_started, read_row
from skillup.process.tree import ProcessTree

_CLOCK_TOLERANCE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Owner:
    """The content of a register file; ``host`` because directories are shared between machines."""

    pid: int
    started: float
    owner: str
    host: str

    def is_alive(self) -> bool:
        row = read_row(self.pid)
        if row is None or row.zombie:
            return False
        return abs(row.started - self.started) < _CLOCK_TOLERANCE_SECONDS


class ProcessRegister:
    """A context in which this process is known as a live owner, so that nobody ends its processes.

    ``register_dir`` is made if need be. ``own_process``: nobody else starts processes in this one,
    so that orphans may be adopted meanwhile (:mod:`skillup.process.orphans`). Raises OSError if the
    file cannot be written.
    """

    def __init__(self, register_dir: Path, *, own_process: bool = False) -> None:
        self._directory = register_dir
        self._own_process = own_process
        self._file: Path | None = None
        self._since = math.inf

    def __enter__(self) -> Self:
        row = read_row(os.getpid())
        self._since = now_as_started()
        owner = _Owner(os.getpid(), row.started if row else 0.0, owner_id(), platform.node())
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file = self._directory / f"{owner.pid}-{owner.started:.2f}.json"
        unfinished = self._file.with_suffix(".tmp")
        unfinished.write_text(json.dumps(asdict(owner)), encoding="utf-8")
        unfinished.replace(self._file)
        if self._own_process:
            adopt_orphans(wanted=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        survivors = end_adopted(self._since)
        if self._file is not None and not survivors:
            self._file.unlink(missing_ok=True)
        if self._own_process:
            adopt_orphans(wanted=False)


def end_adopted(since: float, *, grace_seconds: float = 2.0) -> list[Leftover]:
    """Ends what bears our owner id, and the orphans that came to us since then, after all turns.

    A turn takes only orphans that cannot be another's; those that hid from their parents and from
    the marker while several turns were held are nobody's until all have ended. Blocks; returns
    those that could not be ended. Does nothing while a turn is held.
    """
    if ProcessTree.any_running():
        return []
    assignment = f"{OWNER_VARIABLE}={owner_id()}".encode()
    tree = ProcessTree(None, assignment, started_after=since, takes_orphans=True)
    if not tree.living():
        return []
    walk_blocking(ending_steps(tree, grace_seconds))
    return list(as_leftovers(tree.living()))


def end_leftovers(register_dir: Path, *, grace_seconds: float = 2.0) -> list[Leftover]:
    """Ends what dead owners left, in the same steps as at the end of a turn; returns what it ended.

    Blocks for as long as that takes; call it before the event loop runs. Files of live owners, of
    other machines and of unknown form are left alone. A file whose processes could not all be ended
    stays for the next start.
    """
    ended: list[Leftover] = []
    for file in sorted(register_dir.glob("*.json")):
        owner = _read(file)
        if owner is None or owner.host != platform.node() or owner.is_alive():
            continue
        assignment = f"{OWNER_VARIABLE}={owner.owner}".encode()
        tree = ProcessTree(None, assignment, started_after=owner.started)
        ended += as_leftovers(walk_blocking(ending_steps(tree, grace_seconds)))
        if not tree.living():
            file.unlink(missing_ok=True)
    return ended


def _read(file: Path) -> _Owner | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return _Owner(int(data["pid"]), float(data["started"]), str(data["owner"]), data["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
