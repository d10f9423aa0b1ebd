"""A judge-debug file of skill-up as what is judged: one execution, with the judge it names."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from skillup.cli.judging_sources import Source, Subject
from skillup.errors import UsageError
from skillup.interop.judge_input import InputPlaces, read_judge_input
from skillup.workspace import BlobStore


def input_source(path: Path, places: InputPlaces) -> Source:
    """The file as a source; the contents of its workspace are kept as long as that is in use.

    Raises UsageError for a folder in `places` that is not there.
    """
    for option, folder in (("--workspace", places.workspace), ("--skill-dir", places.skill_dir)):
        if folder is not None and not folder.is_dir():
            raise UsageError(f"{option} {folder}: there is no such folder")
    source = Source(path, "input", lambda source, *_: _read(source, blobs, places))
    room = tempfile.TemporaryDirectory(prefix="skillup-judge-", ignore_cleanup_errors=True)
    blobs = BlobStore(Path(source.holds.enter_context(room)))
    return source


def _read(source: Source, blobs: BlobStore, places: InputPlaces) -> Iterator[Subject]:
    given = read_judge_input(source.path, blobs, places)
    source.mock_results = given.mock_results
    record = given.record
    job_id = f"{record.case_id}/{record.engine.profile}/{record.variant}/{record.trial}"
    yield Subject(job_id, record, blobs.read_state, None, given.notes)
