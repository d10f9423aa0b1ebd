"""Links into the run directory: the raw streams of each turn, and what lies beside the record."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from skillup.reports.html.progress import Fork
from skillup.store.files import read_regular
from skillup.store.places import directory_of_job

_STREAM = re.compile(r"turn-(?P<turn>\d{1,6})(?:-follow-up-(?P<follow_up>\d{1,6}))?\.")
_BESIDE = ("record.json", "grading.json")
_MOST = 200
"""Links: a trial may have collected thousands of files."""

Link = dict[str, str]


class TurnLinks(Protocol):
    """Where the streams of turns are."""

    def of_turn(self, job: str, turn: int, follow_up: int = 0) -> list[Link]:
        """The streams of a turn, or of its follow-up, from 1."""


class RawFiles:
    """The links of one run; `base` is what they begin with, empty for a page that lies in it."""

    def __init__(self, run: Path, forks: Mapping[str, Fork], base: str = "") -> None:
        self._run = run
        self._forks = forks
        self._base = base

    def of_turn(self, job: str, turn: int, follow_up: int = 0) -> list[Link]:
        """The streams of a turn (or of its follow-up, from 1).

        Turns before a fork were held in the name of the trial that was forked.
        """
        is_wanted = _is_stream_of(turn, follow_up)
        seen: set[str] = set()
        holder: str | None = job
        while holder is not None and holder not in seen:
            seen.add(holder)
            found = self._links(holder, "raw", is_wanted)
            if found:
                return found
            fork = self._forks.get(holder)
            holder = fork.parent if fork is not None and turn <= fork.after_turn else None
        return []

    def of_attempt(self, job: str, number: int) -> tuple[list[Link], TurnLinks]:
        """What an attempt that was not counted left: its record and files, and its streams."""
        name, folder = f"attempt-{number}.json", f"raw.attempt-{number}"
        links = self._links(job, "", name.__eq__)
        directory = self._run / "trials" / directory_of_job(job)
        for part in (directory / folder, directory / f"files.attempt-{number}"):
            links += self._within(job, directory, part)
        return links[:_MOST], _AttemptLinks(self._links, folder)

    def record_of_attempt(self, job: str, number: int) -> bytes:
        """Raises OSError if there is none."""
        path = self._run / "trials" / directory_of_job(job) / f"attempt-{number}.json"
        if path.is_symlink():
            raise FileNotFoundError(path)
        return read_regular(path)

    def of_trial(self, job: str) -> list[Link]:
        """What belongs to no turn: the record, earlier attempts, the simulated user, artifacts."""
        directory = self._run / "trials" / directory_of_job(job)
        found = self._links(
            job, "", lambda name: name in _BESIDE or bool(re.fullmatch(r"attempt-\d+\.json", name))
        )
        found += self._links(job, "raw", lambda name: _STREAM.match(name) is None)
        for part in _entries(directory):
            if part.name in ("raw", "files") or part.name.startswith(("raw.", "files.")):
                found += self._within(job, directory, part)
                if len(found) > _MOST:
                    break
        return found[:_MOST]

    def _within(self, job: str, directory: Path, part: Path) -> list[Link]:
        """The files of one of the trial's directories; of ``raw`` only those further down."""
        found: list[Link] = []
        if part.is_symlink():
            return found
        for parent, names, _ in os.walk(part):
            names.sort()
            if Path(parent) != part or part.name != "raw":
                inner = Path(parent).relative_to(directory).as_posix()
                found += self._links(job, inner, lambda _: True)
            if len(found) > _MOST:
                break
        return found

    def _links(self, job: str, folder: str, wanted: Callable[[str], bool]) -> list[Link]:
        trial = self._run / "trials" / directory_of_job(job)
        root = trial / folder if folder else trial
        found: list[Link] = []
        for path in _entries(root):
            if path.is_symlink() or not path.is_file() or not wanted(path.name):
                continue
            relative = path.relative_to(self._run).as_posix()
            href = self._base + quote(relative, safe="/", errors="surrogateescape")
            name = path.relative_to(root if folder == "raw" else trial).as_posix()
            found.append({"name": name, "href": href})
        return found


class _AttemptLinks:
    def __init__(self, links: Callable[[str, str, Callable[[str], bool]], list[Link]], folder: str):
        self._links = links
        self._folder = folder

    def of_turn(self, job: str, turn: int, follow_up: int = 0) -> list[Link]:
        return self._links(job, self._folder, _is_stream_of(turn, follow_up))


def _is_stream_of(turn: int, follow_up: int) -> Callable[[str], bool]:
    def is_wanted(name: str) -> bool:
        match = _STREAM.match(name)
        told = match and (int(match["turn"]), int(match["follow_up"] or 0))
        return told == (turn, follow_up)

    return is_wanted


def _entries(directory: Path) -> list[Path]:
    """Sorted; nothing if it cannot be read."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []
