"""Which processes belong to a turn: found again however they hide from their parents.

A process belongs if it is a descendant of one that does; if it was seen to belong before; if it is
in the session of the turn's main process; if its environment carries the marker; or if it is an
orphan that came to us and no other running turn can have started it. Only a process of skillup's
own adopts orphans; there, whatever marker it bears, each is an agent's.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

# The process table. psutil needs ten times as long as /proc/PID/stat, so it is asked only where
# there is no /proc.

_HAS_PROC = Path("/proc/self/stat").exists()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_TICK_TOLERANCE_SECONDS = 0.005


class ProcessRow(NamedTuple):
    """One process."""

    pid: int
    name: str
    zombie: bool
    parent: int
    session: int
    started: float  # Seconds since boot (Linux) or the epoch: comparable within one machine

    @property
    def key(self) -> tuple[int, float]:
        """Names it for good; a pid alone is used again later."""
        return self.pid, self.started


def read_row(pid: int) -> ProcessRow | None:
    """One process, also a zombie; None if there is no such process."""
    if not _HAS_PROC:
        return row_of_psutil(pid)
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    except OSError:  # there is none, or it ended in between
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses.
    opened, closed = text.find(b"("), text.rfind(b")")
    fields = text[closed + 2 :].split()
    if len(fields) < 22:
        return None
    return ProcessRow(
        pid=pid,
        name=text[opened + 1 : closed].decode(errors="replace"),
        zombie=fields[0] in (b"Z", b"X", b"x"),
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]) / _TICKS_PER_SECOND,
    )


def row_of_psutil(pid: int) -> ProcessRow | None:
    """Like :func:`read_row`, on any system."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            zombie = process.status() == psutil.STATUS_ZOMBIE
            name, parent, started = process.name(), process.ppid(), process.create_time()
        return ProcessRow(pid, name, zombie, parent, os.getsid(pid), started)
    except (psutil.Error, OSError):
        return None


def read_table() -> dict[int, ProcessRow]:
    """All processes, by pid."""
    if _HAS_PROC:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    else:
        import psutil

        pids = psutil.pids()
    return {row.pid: row for pid in pids if (row := read_row(pid)) is not None}


def own_children(pid: int | None = None) -> set[int] | None:
    """The pids of our children, also orphans that came to us; None: the system does not say.

    Or of another process's. Of ours only those of the first thread, to which orphans come: what
    other threads start are main processes of running turns.
    """
    own, found = os.getpid(), set[int]()
    try:
        for task in [own] if pid is None else os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            file = os.open(f"/proc/{pid or own}/task/{task}/children", os.O_RDONLY | os.O_CLOEXEC)
            try:
                text = part = os.read(file, 1 << 16)
                while len(part) > 1 << 10:  # Less is the end: the kernel gives a page at a time
                    text += (part := os.read(file, 1 << 16))
                found.update(map(int, text.split()))
            finally:
                os.close(file)
    except OSError:  # No such files, or a thread that ended, and left its children to others
        return None
    return found


def nothing_escaped() -> bool:
    """Whether no process that we started runs but those of running turns; False: it is not known.

    Orphans come to us, so it would be one of our children.
    """
    children = own_children() if _adopting == os.getpid() else None
    return children is not None and children <= {tree.main for tree in running_trees}


def now_as_started() -> float:
    """This moment, as ``started`` of a process that starts now would be, or a tick less."""
    if _HAS_PROC:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - 1 / _TICKS_PER_SECOND
    return time.time()


# The two environment variables by which descendants are recognised after their parents are gone.

TRIAL_VARIABLE = "SKILLUP_TRIAL_MARKER"
OWNER_VARIABLE = "SKILLUP_OWNER"


def new_marker() -> str:
    """A marker nobody else has."""
    return f"{os.getpid()}-{secrets.token_hex(8)}"


def owner_id() -> str:
    """Our own value of ``SKILLUP_OWNER``: the same at every call, another one after a fork."""
    return _owner_id(os.getpid())


@lru_cache(maxsize=1)
def _owner_id(pid: int) -> str:
    row = read_row(pid)
    return f"{pid}-{row.started if row else 0.0:.2f}-{secrets.token_hex(4)}"


def has_assignment(pid: int, assignment: str) -> bool:
    """Whether ``pid`` was started with ``NAME=value``; False where that may not be read."""
    if _HAS_PROC:
        try:
            return assignment.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
    import psutil

    name, _, value = assignment.partition("=")
    try:
        return psutil.Process(pid).environ().get(name) == value
    except (psutil.Error, OSError):
        return False


# Adopting orphans: on Linux a descendant whose parent died becomes a child of this process.

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_adopting: int | None = None  # The process that does; the setting is not inherited over fork


def adopt_orphans(*, enabled: bool) -> None:
    """Makes orphaned descendants our children from now on, or no longer; if the system can."""
    global _adopting
    _adopting = None
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # no C library to ask, or one without prctl
            if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(enabled), 0, 0, 0) == 0:
                _adopting = os.getpid() if enabled else None


running_trees: set[ProcessTree] = set()  # Of all turns that are running in this process


@dataclass(slots=True, eq=False, kw_only=True)
class ProcessTree:
    """The processes of one turn, or without ``main`` all that inherited ``NAME=value``.

    ``main`` is the pid of the turn's own, a leader of its session and a child of ours. Those older
    than ``started_after`` are ignored. Of the names ``spared`` only SIGKILL is sent to:
    what they stand around is to end by itself, and they with it. ``takes_orphans`` claims those
    that came to us and that no turn could claim because several were running.
    """

    assignment: str = field(kw_only=False)
    main: int | None = None
    started_after: float = 0.0
    takes_orphans: bool = False
    spared: frozenset[str] = frozenset()
    known: set[tuple[int, float]] = field(default_factory=set)
    _quiet: bool = False  # By the latest look

    def __post_init__(self) -> None:
        if self.main is not None:
            self.takes_orphans = True
            running_trees.add(self)

    def living(self) -> list[ProcessRow]:
        """The living members by a fresh and thorough look, which also clears away dead orphans.

        A look takes a moment in which a member can fork and die, and both be missed. So the tree
        counts as gone only after two looks in a row that found neither a living member nor a new
        dead one. Where orphans come to us, they stay until we clear them away: one look does.
        """
        if self._is_of([]):
            return []
        while True:
            members = self._members(read_table())
            alive = [row for row in members if not row.zombie]
            reaped = [row for row in members if self._reap(row)]
            was_quiet, self._quiet = self._quiet, not alive and not reaped
            if alive or (was_quiet and self._quiet):
                return alive

    def is_in_one_session(self) -> bool:
        """Whether nothing that the main process started is in another one; by two looks."""
        return self.main is not None and all(self._is_of([self.main]) for _ in range(2))

    def _is_of(self, waiting: list[int]) -> bool:
        """Whether the only children that we have are the main processes of other turns, and
        processes `waiting` to be looked at, whose descendants are all in the main one's session.
        """
        if self.main is None or _adopting != os.getpid():
            return False
        children = own_children()
        others = {tree.main for tree in running_trees if tree is not self}
        if children is None or not children <= others.union(waiting):
            return False
        while waiting:
            below = own_children(waiting.pop())
            rows = [read_row(pid) for pid in below or ()]
            if below is None or any(row and row.session != self.main for row in rows):
                return False
            waiting += below
        return True

    def _members(self, table: dict[int, ProcessRow]) -> list[ProcessRow]:
        own = table.get(os.getpid())
        others = [tree for tree in list(running_trees) if tree is not self]
        not_ours = {0, 1, os.getpid(), *(tree.main for tree in others)}
        above = own
        while above is not None and above.parent not in not_ours:
            not_ours.add(above.parent)
            above = table.get(above.parent)
        rows = [row for row in table.values() if row.pid not in not_ours]
        children: dict[int, list[ProcessRow]] = {}
        for row in rows:
            children.setdefault(row.parent, []).append(row)
        found: dict[int, ProcessRow] = {}
        heads = [row for row in rows if self._is_head(row, own, others)]
        while heads:
            row = heads.pop()
            if row.pid not in found:
                found[row.pid] = row
                heads += children.get(row.pid, ())
        self.known |= {row.key for row in found.values()}
        return list(found.values())

    def _is_head(self, row: ProcessRow, own: ProcessRow | None, others: list[ProcessTree]) -> bool:
        if row.key in self.known:
            return True
        if row.started < self.started_after:
            return False
        if row.session == self.main or has_assignment(row.pid, self.assignment):
            return True
        # We start every process in a session of its own; a child of ours in another session that
        # we did not start is an orphan. While an older turn still runs, it might be that one's.
        is_orphan = (
            self.takes_orphans
            and _adopting == os.getpid()
            and own is not None
            and row.parent == own.pid
            and row.session != own.session
            and not any(row.key in tree.known for tree in others)
            and all(tree.started_after > row.started for tree in others)
        )
        # The marker of another running turn counts; any other may be made up.
        return is_orphan and not any(has_assignment(row.pid, tree.assignment) for tree in others)

    def _reap(self, row: ProcessRow) -> bool:
        """Whether a dead member was an orphan of ours and is now cleared away."""
        if row.parent != os.getpid() or row.pid == self.main:
            return False
        with suppress(ChildProcessError):
            return os.waitpid(row.pid, os.WNOHANG)[0] == row.pid
        return False


_KILL_ROUNDS = 10  # each finds what was forked while the round before was killing
_KILL_PATIENCE_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1
_CLOCK_TOLERANCE_SECONDS = 0.02


class TreeEnding:
    """Signals the living members of a tree until none is left.

    Iterated, it yields how long to sleep, so that the same steps serve a running event loop and
    plain code. ``settle_seconds`` is what the tree gets to end by itself.
    """

    def __init__(
        self, tree: ProcessTree, grace_seconds: float, settle_seconds: float = 0.0
    ) -> None:
        self.leftover: tuple[ProcessRow, ...] = ()  # They outlived the main process
        self.survivors: tuple[ProcessRow, ...] = ()  # Stuck in the kernel, or not ours to signal
        self._tree = tree
        kill = (signal.SIGKILL, _KILL_PATIENCE_SECONDS)
        self._steps: list[tuple[signal.Signals | None, float]] = [
            (None, settle_seconds),
            (signal.SIGINT, grace_seconds),
            (signal.SIGTERM, grace_seconds),
            *[kill] * _KILL_ROUNDS,
        ]

    def __iter__(self) -> Iterator[float]:
        tree = self._tree
        outlived: dict[tuple[int, float], ProcessRow] = {}
        alive = tree.living()
        for number, patience in self._steps:
            if number is not None:
                spared = tree.spared if number != signal.SIGKILL else ()
                for row in alive:
                    if row.name not in spared:
                        send_signal(row, number)
                if all(row.pid != tree.main for row in alive):
                    outlived |= {row.key: row for row in alive}
                    self.leftover = tuple(outlived.values())
            deadline = time.monotonic() + patience
            pause = _FIRST_PAUSE_SECONDS
            while alive and time.monotonic() < deadline:
                yield pause
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                alive = tree.living()
            if not alive:
                return
        self.survivors = tuple(alive)


def kill_running() -> None:
    """SIGKILL for every running turn of this process; whoever supervises them sees them end."""
    for tree in list(running_trees):
        end_tree(tree, 0.0)


def send_signal(row: ProcessRow, number: signal.Signals) -> None:
    """Signals exactly this process, never one that has got its pid since."""
    # Another user's process (a setuid helper) answers PermissionError: it then counts as survivor.
    with suppress(ProcessLookupError, PermissionError):
        now = read_row(row.pid)
        if now is not None and abs(now.started - row.started) < _TICK_TOLERANCE_SECONDS:
            os.kill(row.pid, number)


# After a skillup that was killed: finding and ending the processes it could not end itself.


@contextmanager
def process_register(register_dir: Path, *, own_process: bool = False) -> Iterator[None]:
    """Meanwhile this process is known as a live owner, so that nobody ends its processes.

    ``register_dir`` is made if need be. ``own_process``: nobody else starts processes in this one,
    so that orphans may be adopted meanwhile. Raises OSError if the file cannot be written.
    """
    row, since = read_row(os.getpid()), now_as_started()
    pid, started = os.getpid(), row.started if row else 0.0
    # Of which machine: directories are shared between machines.
    owner = {"pid": pid, "started": started, "owner": owner_id(), "host": platform.node()}
    register_dir.mkdir(parents=True, exist_ok=True)
    file = register_dir / f"{pid}-{started:.2f}.json"
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(json.dumps(owner), encoding="utf-8")
    unfinished.replace(file)
    if own_process:
        adopt_orphans(enabled=True)
    try:
        yield
    finally:
        survivors: tuple[ProcessRow, ...] = ()
        if not running_trees:
            # A turn takes only orphans that cannot be another's; those that hid from their parents
            # and from the marker while several turns ran are nobody's until all have ended.
            assignment = f"{OWNER_VARIABLE}={owner_id()}"
            tree = ProcessTree(assignment, started_after=since, takes_orphans=True)
            survivors = end_tree(tree, 2.0).survivors
        if not survivors:
            file.unlink(missing_ok=True)
        if own_process:
            adopt_orphans(enabled=False)


def end_leftovers(register_dir: Path, *, grace_seconds: float = 2.0) -> list[ProcessRow]:
    """Ends what dead owners left, blocking, in the same steps as at the end of a turn.

    Returns what it ended. Files of live owners, of other machines and of unknown form are left
    alone. A file whose processes could not all be ended stays for the next start.
    """
    ended: list[ProcessRow] = []
    for file in sorted(register_dir.glob("*.json")):
        try:
            owner: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            pid, started = int(owner["pid"]), float(owner["started"])
            assignment, host = f"{OWNER_VARIABLE}={owner['owner']}", owner["host"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        row = read_row(pid)
        lives = row and not row.zombie and abs(row.started - started) < _CLOCK_TOLERANCE_SECONDS
        if lives or host != platform.node():
            continue
        ending = end_tree(ProcessTree(assignment, started_after=started), grace_seconds)
        ended += ending.leftover
        if not ending.survivors:
            file.unlink(missing_ok=True)
    return ended


def end_tree(tree: ProcessTree, grace_seconds: float) -> TreeEnding:
    """Ends it in steps, blocking; without grace, the last resort when there is no time."""
    ending = TreeEnding(tree, grace_seconds)
    for pause in ending:
        time.sleep(pause)
    return ending
