"""Reference files of the suite are kept with the record: it can be judged without the suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckKeys
from skillup.schema.record import FileState
from skillup.workspace import BlobStore


def keep_references(case: Case, suite_root: Path, blobs: BlobStore) -> dict[str, FileState]:
    """Store every golden file the case names.

    One that cannot be read is left out; its check then fails, and says so.
    """
    kept: dict[str, FileState] = {}
    for path in golden_paths(case):
        try:
            content = (suite_root / path).read_bytes()
        except OSError:
            continue
        kept[path] = FileState(sha256=blobs.put(content), size=len(content))
    return kept


def golden_paths(case: Case) -> list[str]:
    """Each reference file once, in the order of its first use."""
    return list(dict.fromkeys(_paths(case)))


def _paths(case: Case) -> Iterator[str]:
    if case.expect is not None:
        yield from _in([case.expect])
    yield from _in(case.assertions)
    for judge in case.all_judges():
        yield from _in([*judge.success, *judge.failure])
    for turn in case.input.all_turns():
        if turn.post_condition is not None:
            yield from _in([turn.post_condition])
        yield from _in(turn.assertions)


def _in(checks: Sequence[CheckKeys]) -> Iterator[str]:
    for check in checks:
        if check.golden_file is not None:
            yield check.golden_file.path
        for children in (check.any_of, check.all_of, check.none_of):
            yield from _in(children or [])
        if isinstance(check, Check):
            yield from _in(check.assertions or [])
