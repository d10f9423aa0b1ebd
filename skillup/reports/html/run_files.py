"""What the files of a run say: its journal, raw files as links, pictures of turns."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import imagesize  # type: ignore[import-untyped]

from skillup.frozen import frozen
from skillup.history.runs import CaseKey
from skillup.schema.record import FileState, TurnRecord
from skillup.store.files import read_regular
from skillup.store.places import directory_of_job

_DECISION = ("verdict", "threshold", "error_rate", "trials")


@frozen
class Fork:
    parent: str  # The job in whose name the shared turns ran
    after_turn: int


@dataclass(slots=True)
class Progress:
    started: set[str] = field(default_factory=set)
    """Jobs that began since the run was last opened, and are not over."""
    forks: dict[str, Fork] = field(default_factory=dict)
    decided: dict[CaseKey, dict[str, Any]] = field(default_factory=dict)
    """What `--until-decided` came to so far: ``{verdict, threshold, error_rate, trials}``."""
    ended: bool = False  # The last event is that the result was written
    first_time: str | None = None
    last_time: str | None = None


def progress_of(events: Iterable[Mapping[str, Any]]) -> Progress:
    """Read the journal; an event that is not as it should be is passed over."""
    found = Progress()
    for event in events:
        kind, job, time = event.get("event"), event.get("job"), event.get("time")
        if isinstance(time, str):
            found.first_time = found.first_time or time
            found.last_time = time
        if kind in ("run_created", "run_reopened", "result_written"):
            found.started.clear()
            found.ended = kind == "result_written"
        elif kind == "case_decided":
            key = CaseKey(*(str(event.get(n)) for n in ("suite", "case", "engine", "variant")))
            found.decided[key] = {name: event.get(name) for name in _DECISION}
        elif not isinstance(job, str):
            continue
        elif kind in ("trial_started", "trial_continued"):
            found.started.add(job)
        elif kind in ("trial_finished", "trial_left"):
            found.started.discard(job)
        elif kind == "trial_retried":
            found.forks.pop(job, None)
        elif kind == "trial_forked":
            parent, after = event.get("parent"), event.get("after_turn")
            if isinstance(parent, str) and isinstance(after, int) and parent != job:
                found.forks[job] = Fork(parent, after)
    return found


# The files of a trial, as links: streams by turn, the rest by trial.

_STREAM = re.compile(
    r"raw(?:\.attempt-(?P<attempt>\d+))?/turn-(?P<turn>\d{1,6})(?:-follow-up-(?P<step>\d{1,6}))?\."
)
_MAX_LINKS = 200
Link = dict[str, str]


class RawFiles:
    """The links of one run; `base` is what they begin with, empty for a page that lies in it."""

    def __init__(self, run: Path, forks: Mapping[str, Fork], base: str = "") -> None:
        self._run = run
        self._forks = forks
        self._base = base

    def of_turn(
        self, job: str, turn: int, follow_up: int = 0, attempt: int | None = None
    ) -> list[Link]:
        """The streams of a turn or follow-up; before a fork they are the forked trial's."""
        place = (attempt or 0, turn, follow_up)
        seen: set[str] = set()
        holder: str | None = job
        while holder is not None and holder not in seen:
            seen.add(holder)
            found = self._links(holder, lambda name: _stream(name) == place)
            if found or attempt is not None:
                return [{**link, "name": link["name"].rpartition("/")[2]} for link in found]
            fork = self._forks.get(holder)
            holder = fork.parent if fork is not None and turn <= fork.after_turn else None
        return []

    def record_of_attempt(self, job: str, number: int) -> bytes:
        """Raises OSError if there is none."""
        path = self._trial(job) / f"attempt-{number}.json"
        if path.is_symlink():
            raise FileNotFoundError(path)
        return read_regular(path)

    def of_trial(self, job: str) -> list[Link]:
        """What belongs to no turn: the record, earlier attempts, the simulated user, artifacts."""
        return self._links(job, lambda name: not (name.startswith("raw/") and _stream(name)))

    def _trial(self, job: str) -> Path:
        return self._run / "trials" / directory_of_job(job)

    def _links(self, job: str, is_shown: Callable[[str], bool]) -> list[Link]:
        found: list[Link] = []
        trial = self._trial(job)
        for parent, folders, names in os.walk(trial):
            folders.sort()
            for name in sorted(names):
                path = Path(parent, name)
                relative = path.relative_to(trial).as_posix()
                if not is_shown(relative) or path.is_symlink() or not path.is_file():
                    continue
                if len(found) == _MAX_LINKS:
                    return found
                within = quote(path.relative_to(self._run).as_posix(), errors="surrogateescape")
                found.append({"name": relative, "href": self._base + within})
        return found


def _stream(name: str) -> tuple[int, int, int] | None:
    """The attempt (0: the one that counts), turn and follow-up of a stream."""
    match = _STREAM.match(name)
    if match is None:
        return None
    return int(match["attempt"] or 0), int(match["turn"]), int(match["step"] or 0)


# Pictures that turns made or changed. SVG, which may hold scripts, is text.

Read = Callable[[FileState], bytes | None]
"""The content of a file as it was after a turn; None if it was not kept."""

_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"RIFF": "image/webp",
}
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MAX_PIXELS = 25_000_000  # A few bytes may stand for a picture that no browser can hold
_MAX_LISTED = 50


def add_images(
    steps: Iterable[tuple[Mapping[str, Any], TurnRecord]], read: Read, each: int, room: int
) -> None:
    """Put the pictures that an agent made or changed into the page's `changes` of `steps`.

    ``images: [{path, size, type, width, height, data}]``; without `data` (base64) where it has more
    than `each` bytes or does not fit into the `room` of all, or is none that can be shown.
    """
    for step, record in steps:
        if step["changes"] is None:
            continue
        images: list[dict[str, Any]] = []
        for path in (*step["changes"]["added"], *step["changes"]["modified"]):
            state = (record.files or {}).get(path)
            if not path.lower().endswith(_SUFFIXES) or state is None or state.link is not None:
                continue
            if len(images) < _MAX_LISTED:
                images.append(_image(path, state, read, min(room, each)))
                room -= state.size if "data" in images[-1] else 0
        step["changes"]["images"] = images


def shown_bytes(detail: Mapping[str, Any]) -> int:
    steps = (s for turn in detail.get("turns", ()) for s in (turn, *turn["follow_ups"]))
    changes = (step["changes"] for step in steps if step["changes"] is not None)
    return sum(one["size"] for c in changes for one in c["images"] if "data" in one)


def _image(path: str, state: FileState, read: Read, room: int) -> dict[str, Any]:
    named = {"path": path, "size": state.size}
    if state.size > room:
        return named
    try:
        data = read(state) or b""
        width, height = imagesize.get(BytesIO(data))
    except (OSError, ValueError, struct.error, IndexError):
        return named
    kind = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), None)
    if kind is None or width <= 0 or height <= 0 or width * height > _MAX_PIXELS:
        return named
    encoded = base64.b64encode(data).decode("ascii")
    return {**named, "type": kind, "width": width, "height": height, "data": encoded}
