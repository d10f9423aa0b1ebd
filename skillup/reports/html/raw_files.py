"""Links into the run directory: the raw streams of each turn, and what lies beside the record."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from skillup.reports.html.progress import Fork
from skillup.store.files import read_regular
from skillup.store.places import directory_of_job

_STREAM = re.compile(r"turn-(?P<turn>\d{1,6})(?:-follow-up-(?P<follow_up>\d{1,6}))?\.")
_OF_TRIAL = re.compile(r"record\.json|grading\.json|attempt-\d+\.json")
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
        """The streams of a turn (or of its follow-up, from 1), perhaps of an earlier attempt.

        Turns before a fork ran in the name of the trial that was forked.
        """

        def is_stream(name: str) -> bool:
            match = _STREAM.match(name)
            return match is not None and (turn, follow_up) == (
                int(match["turn"]),
                int(match["follow_up"] or 0),
            )

        if attempt is not None:
            return self._links(job, f"raw.attempt-{attempt}", is_stream)
        seen: set[str] = set()
        holder: str | None = job
        while holder is not None and holder not in seen:
            seen.add(holder)
            found = self._links(holder, "raw", is_stream)
            if found:
                return found
            fork = self._forks.get(holder)
            holder = fork.parent if fork is not None and turn <= fork.after_turn else None
        return []

    def of_attempt(self, job: str, number: int) -> list[Link]:
        """What an earlier attempt left: its record and files."""
        found = self._links(job, "", f"attempt-{number}.json".__eq__)
        for folder in (f"raw.attempt-{number}", f"files.attempt-{number}"):
            found += self._below(job, folder)
        return found[:_MAX_LINKS]

    def record_of_attempt(self, job: str, number: int) -> bytes:
        """Raises OSError if there is none."""
        path = self._trial(job) / f"attempt-{number}.json"
        if path.is_symlink():
            raise FileNotFoundError(path)
        return read_regular(path)

    def of_trial(self, job: str) -> list[Link]:
        """What belongs to no turn: the record, earlier attempts, the simulated user, artifacts."""
        found = self._links(job, "", lambda name: _OF_TRIAL.fullmatch(name) is not None)
        found += self._links(job, "raw", lambda name: _STREAM.match(name) is None)
        for part in _entries(self._trial(job)):
            if part.name.partition(".")[0] in ("raw", "files") and len(found) <= _MAX_LINKS:
                found += self._below(job, part.name)
        return found[:_MAX_LINKS]

    def _below(self, job: str, folder: str) -> list[Link]:
        """The files of one of the trial's directories; of ``raw`` only those further down."""
        found: list[Link] = []
        top = self._trial(job) / folder
        for parent, names, _ in os.walk(top) if not top.is_symlink() else ():
            names.sort()
            inner = Path(parent).relative_to(self._trial(job)).as_posix()
            if inner != "raw":
                found += self._links(job, inner, lambda _: True)
            if len(found) > _MAX_LINKS:
                break
        return found

    def _trial(self, job: str) -> Path:
        return self._run / "trials" / directory_of_job(job)

    def _links(self, job: str, folder: str, is_shown: Callable[[str], bool]) -> list[Link]:
        root = self._trial(job) / folder
        found: list[Link] = []
        for path in _entries(root):
            if path.is_symlink() or not path.is_file() or not is_shown(path.name):
                continue
            relative = path.relative_to(self._run).as_posix()
            href = self._base + quote(relative, safe="/", errors="surrogateescape")
            name = path.relative_to(root if folder == "raw" else self._trial(job)).as_posix()
            found.append({"name": name, "href": href})
        return found


def _entries(directory: Path) -> list[Path]:
    """Sorted; nothing if it cannot be read."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []
