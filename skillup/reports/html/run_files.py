"""What the files of a run say: its journal, raw files as links, pictures of turns."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any
from urllib.parse import quote

import imagesize  # type: ignore[import-untyped]
from pydantic import ValidationError

from skillup.dataclass import frozen
from skillup.history.runs import CaseKey
from skillup.schema.record import FileState, Record, TurnRecord
from skillup.store.stored_run import ReadFile

_DECISION = ("verdict", "threshold", "error_rate", "trials")


@frozen
class Fork:
    parent: str  # The job in whose name the shared turns ran
    after_turn: int


class Progress:
    """What the journal says of a run, since it was last opened."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self.started: set[str] = set()  # Jobs that began, and are not over
        self.forks: dict[str, Fork] = {}
        self.decided: dict[CaseKey, dict[str, Any]] = {}
        """What `--until-decided` came to so far: ``{verdict, threshold, error_rate, trials}``."""
        self.ended = False  # The last event is that the result was written
        self.last_time: str | None = None
        for event in events:
            kind, job, time = event.get("event"), event.get("job", ""), event.get("time")
            self.last_time = time or self.last_time
            if kind in ("run_created", "run_reopened", "result_written"):
                self.started.clear()
                self.ended = kind == "result_written"
            elif kind == "case_decided":
                key = CaseKey(*(str(event.get(n)) for n in ("suite", "case", "engine", "variant")))
                self.decided[key] = {name: event.get(name) for name in _DECISION}
            elif kind in ("trial_started", "trial_continued"):
                self.started.add(job)
            elif kind in ("trial_finished", "trial_left"):
                self.started.discard(job)
            elif kind == "trial_retried":
                self.forks.pop(job, None)
            elif kind == "trial_forked" and event["parent"] != job:
                self.forks[job] = Fork(event["parent"], event["after_turn"])


# The files of a trial, as links: streams by turn, the rest by trial.

_STREAM = re.compile(
    r"raw(?:\.attempt-(?P<attempt>\d+))?/turn-(?P<turn>\d{1,6})(?:-follow-up-(?P<step>\d{1,6}))?\."
)
_ATTEMPT = re.compile(r"attempt-(\d{1,6})\.json")
_MAX_LINKS = 200
Link = dict[str, str]


class RawFiles:
    """The files of a run's trials."""

    def __init__(
        self, files: Callable[[str], dict[str, ReadFile]], base: str | None = None
    ) -> None:
        """`files`: of a trial; `base`: what links to them begin with, None: there are none."""
        self._files = files
        self._base = base

    def of_turn(self, job: str, turn: int, follow_up: int = 0, attempt: int = 0) -> list[Link]:
        """The streams of a turn or follow-up; `attempt` 0: that which counts."""
        found = self._links(job, lambda name: _stream(name) == (attempt, turn, follow_up))
        return [{**link, "name": link["name"].rpartition("/")[2]} for link in found]

    def attempts(self, job: str) -> dict[int, tuple[int, Record]]:
        """Records of earlier attempts, by their numbers, each with its place among all there are.

        Of several with a number, as a resumed run has them, the last.
        """
        found = {}
        for name, read in self._files(job).items():
            if match := _ATTEMPT.fullmatch(name):
                with suppress(ValidationError):
                    record = Record.model_validate_json(b"".join(read()))
                    found[record.attempt] = (int(match[1]), record)
        return found

    def of_trial(self, job: str) -> list[Link]:
        """What belongs to no turn: the record, earlier attempts, the simulated user, artifacts."""
        return self._links(job, lambda name: not (name.startswith("raw/") and _stream(name)))

    def _links(self, job: str, is_shown: Callable[[str], bool]) -> list[Link]:
        if self._base is None:
            return []
        names = [name for name in self._files(job) if is_shown(name)][:_MAX_LINKS]
        place = f"{self._base}{quote(job, safe='')}/"
        return [{"name": name, "href": place + quote(name)} for name in names]


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
