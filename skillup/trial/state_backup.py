"""Keeps a conversation's state before every message, so that it can be put back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import SessionRef
from skillup.engines.environment import is_passing
from skillup.schema.record import Checkpoint, Record, SessionFingerprint
from skillup.schema.suite import needs_simulator
from skillup.trial.message import LiveSession
from skillup.trial.request import TrialRequest
from skillup.workspace import Snapshot
from skillup.workspace.trees import Entry, EntryKind, copy_file, list_tree

# Signatures of directory trees: whether one is still as it was, without reading its files.


@dataclass(frozen=True, slots=True)
class FileStat:
    """What tells that an entry of a tree was touched."""

    kind: EntryKind
    size: int = 0
    mtime_ns: int = 0
    mode: int = 0
    link: str = ""


def file_stats(
    root: Path, leave_out: Callable[[str, EntryKind], bool] = lambda _path, _kind: False
) -> dict[str, FileStat]:
    """The mark of everything below `root`, by path. Raises OSError if it cannot be read."""
    return {entry.path: file_stat(root, entry) for entry in list_tree(root, leave_out=leave_out)}


def file_stat(root: Path, entry: Entry) -> FileStat:
    """The mark of one entry of a listing."""
    status = entry.status
    if entry.kind == "file":
        return FileStat("file", status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode))
    if entry.kind == "link":
        return FileStat("link", link=os.readlink(root / entry.path))  # noqa: PTH115 - its spelling
    # A directory's times change with files that come and go, as git's locks do.
    return FileStat(entry.kind)


def digest_of(marks: dict[str, FileStat]) -> str:
    """Over all paths and marks."""
    digest = hashlib.sha256()
    for path, mark in sorted(marks.items()):
        known = f"\0{mark.kind}\0{mark.size}\0{mark.mtime_ns}\0{mark.mode}\0{mark.link}\0"
        digest.update(os.fsencode(path + known))
    return digest.hexdigest()


def workspace_signature(root: Path) -> str | None:
    """Of a workspace with its `.git`; None if it cannot be looked at, or is no directory."""
    try:
        if root.is_symlink():
            return None
        marks = file_stats(root)
    except OSError:
        return None
    return digest_of({path: _without_stat_cache(path, mark) for path, mark in marks.items()})


def _without_stat_cache(path: str, mark: FileStat) -> FileStat:
    """`git status`, which agents run to look, refreshes what the index knows of files' times."""
    if path == ".git/index" or path.endswith("/.git/index"):
        return FileStat(mark.kind, mark.size)
    return mark


# Copies of a trial's home, so that it can be put back to the moment before a message.

COPIES = "checkpoint"
"""The folder of the copies, in the trial's scratch."""

_SLOTS = ("a", "b")
_LARGEST_BYTES = 256 << 20
# As with snapshots of workspaces: a file that was changed this shortly before it was copied may
# have been changed again without its times telling.
_TIMES_TELL_AFTER_NS = 2_500_000_000


@dataclass(frozen=True, slots=True)
class HomeCopy:
    """One copy, as it was when it was made."""

    slot: str
    marks: dict[str, FileStat]

    @property
    def sha256(self) -> str:
        """Over all of it but contents."""
        return digest_of(self.marks)


class HomeCopies:
    """The copies of one trial's home."""

    def __init__(self, home: Path, scratch: Path) -> None:
        self._home = home
        self._place = scratch / COPIES
        self._pinned: str | None = None
        self._copied: dict[str, dict[str, tuple[FileStat, int]]] = {}
        """Of each slot: what each file was copied from, and when (ns)."""

    def take(self) -> HomeCopy | None:
        """A copy of the home as it is now; None if that would be too large.

        Only what has changed since the slot's last copy is copied. Raises OSError.
        """
        entries = [e for e in list_tree(self._home, leave_out=_left_out) if e.kind != "special"]
        if sum(entry.status.st_size for entry in entries if entry.kind == "file") > _LARGEST_BYTES:
            return None
        slot = next(name for name in _SLOTS if name != self._pinned)
        target = self._place / slot
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._place.chmod(0o700)
        started_ns = time.time_ns()
        before, copied = self._copied.pop(slot, {}), {}
        marks = {entry.path: file_stat(self._home, entry) for entry in entries}
        _remove_others(target, marks)
        for entry in entries:
            mark = marks[entry.path]
            known = before.get(entry.path)
            changed_ns = entry.status.st_ctime_ns
            settled = known is not None and changed_ns < known[1] - _TIMES_TELL_AFTER_NS
            if entry.kind == "file" and settled and known is not None and known[0] == mark:
                copied[entry.path] = known
                continue
            _place(self._home, target, entry.path, mark)
            copied[entry.path] = (mark, started_ns)
        self._copied[slot] = copied
        return HomeCopy(slot, marks)

    def pin(self, copy: HomeCopy) -> None:
        """From now on it is `copy` that the next ones must not overwrite."""
        self._pinned = copy.slot

    def find(self, slot: str, sha256: str) -> HomeCopy | None:
        """The copy that an earlier process made and pinned, if it is whole."""
        target = self._place / slot
        if slot not in _SLOTS or target.is_symlink() or not target.is_dir():
            return None
        try:
            copy = HomeCopy(slot, file_stats(target))
        except OSError:
            return None
        if copy.sha256 != sha256:
            return None
        self._pinned = slot
        return copy

    def put_back(self, copy: HomeCopy) -> None:
        """Make the home what it was. Raises OSError."""
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_others(self._home, copy.marks)
        for path, mark in copy.marks.items():
            _place(self._place / copy.slot, self._home, path, mark)


def _left_out(path: str, _kind: EntryKind) -> bool:
    return is_passing(path)


def _remove_others(root: Path, wanted: dict[str, FileStat]) -> None:
    """Removes what is not `wanted`, or of another kind; logins and caches stay."""
    for entry in reversed(list(list_tree(root, leave_out=_left_out))):
        mark = wanted.get(entry.path)
        if mark is not None and mark.kind == entry.kind:
            continue
        path = root / entry.path
        if entry.kind == "directory":
            with suppress(OSError):  # a cache may be in it
                path.rmdir()
        else:
            path.unlink()


def _place(source: Path, target: Path, path: str, mark: FileStat) -> None:
    """Copies one entry, in place of what is there; its directory exists."""
    to = target / path
    if mark.kind == "directory":
        to.mkdir(mode=0o700, exist_ok=True)
        return
    if to.is_dir() and not to.is_symlink():
        shutil.rmtree(to)
    to.unlink(missing_ok=True)
    if mark.kind == "link":
        os.symlink(mark.link, to)  # noqa: PTH211 - its exact spelling
    else:
        copy_file(source / path, to, (source / path).lstat())


@dataclass(frozen=True, slots=True)
class BackedUpState:
    """A conversation between two messages."""

    home: HomeCopy | None
    workspace: str | None
    snapshot: Snapshot
    session: SessionRef | None
    fingerprint: SessionFingerprint | None
    messages: int


class StateBackup:
    """Of one conversation; nothing that it does changes what the agent finds."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._shared = live.context.profile.isolation == "shared"
        # Beside the home: shared turns of a family have a scratch of their own.
        self.copies = HomeCopies(live.context.home, live.context.home.parent)
        self._latest: BackedUpState | None = None

    async def keep(self) -> BackedUpState:
        """The state as it is now; not looked at again if no message was sent since."""
        if self._latest is None:
            live = self._live
            home, workspace = await anyio.to_thread.run_sync(self._look)
            self._latest = BackedUpState(
                home, workspace, live.snapshot, live.session, live.fingerprint, live.messages
            )
        return self._latest

    def sent(self) -> None:
        """A message was sent: nothing is any more as it was kept."""
        self._latest = None

    async def put_back(self, kept: BackedUpState) -> str | None:
        """Make all as it was when `kept` was; if that cannot be, why."""
        why = await anyio.to_thread.run_sync(self._put_back, kept)
        if why is None:
            live = self._live
            live.snapshot, live.session = kept.snapshot, kept.session
            live.fingerprint, live.messages = kept.fingerprint, kept.messages
            self._latest = kept
        return why

    def _look(self) -> tuple[HomeCopy | None, str | None]:
        if self._shared:
            return None, None
        try:
            home = self.copies.take()
        except OSError:
            home = None
        return home, workspace_signature(self._live.context.workspace)

    def _put_back(self, kept: BackedUpState) -> str | None:
        if self._shared:
            return "with `isolation: shared` the agent's home cannot be put back"
        if kept.home is None:
            return "the agent's home could not be copied before the message"
        now = workspace_signature(self._live.context.workspace)
        if now is None or now != kept.workspace:
            return "the agent had touched the workspace"
        try:
            self.copies.put_back(kept.home)
        except OSError as refused:
            return f"the agent's home could not be put back: {refused.strerror or refused}"
        return None


def what_was_asked(request: TrialRequest) -> str:
    """A digest of case and engine: a conversation is only gone on with if they are the same."""
    job = request.job
    asked = {
        "case": job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "profile": job.profile.model_dump(mode="json"),
        "version": request.engine_version,
        "variant": job.variant,
        "variables": dict(request.variables),
    }
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


# Noting down what another process needs to go on with a conversation.


def may_be_noted(request: TrialRequest) -> bool:
    """Whether the trial can be gone on with by another process at all.

    What a simulated user would say next is not known to anybody else, and shared turns belong to
    several trials.
    """
    job = request.job
    return (
        request.note_down is not None
        and not job.family
        and job.profile.isolation == "clean"
        and not needs_simulator(job.loaded.case)
    )


async def note_down(
    request: TrialRequest,
    keeper: StateBackup,
    live: LiveSession,
    record: Record,
    variables: dict[str, str],
    elapsed_ms: int,
    held_seconds: float,
) -> None:
    """Have the trial noted down as it is, after a turn; nothing is noted if it is not all known.

    `record` has the turns so far.
    """
    if request.note_down is None or not may_be_noted(request):
        return
    kept = await keeper.keep()
    if kept.home is None or kept.workspace is None or kept.fingerprint is None:
        return
    workspace = live.context.workspace
    skills = {
        name: path.relative_to(workspace).as_posix()
        for name, path in live.context.skills.items()
        if path.is_relative_to(workspace)
    }
    noted = Checkpoint(
        record=record,
        variables=dict(variables),
        messages=kept.messages,
        session=kept.fingerprint,
        chosen_session_id=live.context.session_id,
        skills=skills,
        home_copy=kept.home.slot,
        home_sha256=kept.home.sha256,
        workspace_sha256=kept.workspace,
        asked_sha256=what_was_asked(request),
        elapsed_ms=elapsed_ms,
        held_seconds=held_seconds,
    )
    await anyio.to_thread.run_sync(request.note_down, noted)
    keeper.copies.pin(kept.home)
