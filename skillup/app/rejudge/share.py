"""A large run, judged by several processes at once; this one takes a share like the others.

What is unusual about a trial (a damaged record, a case that cannot be read, a check that a judge
reads), and whatever a worker fails to say, is judged here. So grades, notes and errors, and their
order, are those of one process alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.app.rejudge.cases import EditedCases
from skillup.app.rejudge.sources import RecordSubject, trial_reader, trials_of
from skillup.judges.rejudge.regrade import RegradeItem
from skillup.reports.rejudging_json import RejudgeCounts
from skillup.schema.grade import Grade
from skillup.store.trials import GRADE_FILE, load_grade

if TYPE_CHECKING:
    from skillup.app.rejudge.judging import Rejudging

Said = tuple[str, str]
"""What a worker says of a trial: one of the words below, and a grade as JSON, or nothing."""

AS_BEFORE = "as before"
"""The new grade is the older one, byte for byte; said with it, without its turns and checks."""
NEW = "new"
"""Said with the new grade: it is another one than before, or there is no older one."""
NOT_WANTED = "not wanted"
LEFT_OUT = "left out"
UNSAID: Said = ("", "")

_CHUNK = 32
"""Trials that one process judges in a row."""
_FEWEST = 1500
"""Trials from which on starting a process pays."""
_HEAD = 768
"""Trials that are judged here while the others start."""

Place = tuple[str, Path]
"""A trial's job id and directory."""


@dataclass(frozen=True, slots=True)
class SharedWork:
    """A trial that another process has judged; as much of a Subject as is needed then."""

    job_id: str
    grade: Path
    as_before: bool
    notes: Sequence[str] = ()


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: a process may be held to some of them
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_of(judging: Rejudging) -> Share | None:
    """How the work is shared; None: it is not worth it, or cannot be."""
    if judging.workers < 2 or judging.source.kind != "run" or not sys.executable:
        return None
    places = list(trials_of(judging.source))
    return Share(judging, places) if len(places) >= _FEWEST else None


class Share:
    """Who judges what: the first chunks are judged here, of the rest each process takes turns."""

    def __init__(self, judging: Rejudging, places: Sequence[Place]) -> None:
        self._judging = judging
        self._read = trial_reader(judging.source)
        self._chunks = [places[at : at + _CHUNK] for at in range(0, len(places), _CHUNK)]

    def outcomes(
        self, tally: RejudgeCounts, seen: set[str]
    ) -> Iterator[tuple[RecordSubject | SharedWork, RegradeItem | Grade]]:
        """In order; what is not judged is counted in `tally`. `seen` are those with a record."""
        from skillup.app.rejudge.worker_pool import Crew

        crew = Crew([self._request(worker) for worker in range(1, self._judging.workers)])
        # A reader may stop listening, with this generator half done.
        self._judging.source.holds.callback(crew.close)
        try:
            for number, chunk in enumerate(self._chunks):
                worker = self._owner(number)
                line = crew.line(worker - 1) if worker else None
                for place, said in zip(chunk, _said(line, len(chunk)), strict=True):
                    yield from self._outcome(place, said, tally, seen)
        finally:
            crew.close()

    def _owner(self, number: int) -> int:
        """Who judges the chunk: 0 is this process."""
        later = number - _HEAD // _CHUNK
        return later % self._judging.workers if later > 0 else 0

    def _request(self, worker: int) -> bytes:
        judging = self._judging
        mine = [chunk for number, chunk in enumerate(self._chunks) if self._owner(number) == worker]
        request = {
            "run": str(judging.source.path),
            "chunks": [[(job_id, str(directory)) for job_id, directory in chunk] for chunk in mine],
            "globs": judging.selection.globs,
            "tags": judging.selection.tags,
            "hidden": asdict(judging.hidden),
            "edited": None if judging.edited is None else _as_data(judging.edited),
        }
        return json.dumps(request).encode()

    def _outcome(
        self, place: Place, said: Said, tally: RejudgeCounts, seen: set[str]
    ) -> Iterator[tuple[RecordSubject | SharedWork, RegradeItem | Grade]]:
        job_id, directory = place
        word, text = said
        if word in (NEW, AS_BEFORE):
            path = directory / GRADE_FILE
            if word == AS_BEFORE and self._judging.whole:
                grade = load_grade(path)
            else:
                grade = Grade.model_validate_json(text)
            if grade is not None:
                seen.add(job_id)
                yield SharedWork(job_id, path, word == AS_BEFORE), grade
                return
        elif word:
            seen.add(job_id)
            tally.left_out += word == LEFT_OUT
            return
        subject = self._read(job_id, directory)
        if subject is None:
            return
        seen.add(job_id)
        item = self._judging.item_of(subject, tally)
        if item is not None:
            yield subject, item


def _said(line: bytes | None, count: int) -> Sequence[Said]:
    """Of each trial of a chunk; a worker that was ended may have left half a line."""
    try:
        said = json.loads(line) if line is not None else []
    except ValueError:
        said = []
    return [(word, text) for word, text in said] if len(said) == count else [UNSAID] * count


def _as_data(edited: EditedCases) -> list[dict[str, Any]]:
    return [
        {
            # As records keep it.
            "case": item.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "suite": item.suite,
            "root": str(item.root),
        }
        for item in edited.cases
    ]
