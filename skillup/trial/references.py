"""Files of the suite that judging needs are kept with the record: it can be judged without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckKeys
from skillup.schema.record import FileState
from skillup.workspace import BlobStore


def keep_references(case: Case, suite_root: Path, blobs: BlobStore) -> dict[str, FileState]:
    """Store every golden file, script and attachment the case names.

    One that cannot be read is left out; its check then fails, and says so.
    """
    kept: dict[str, FileState] = {}
    for path in [*golden_paths(case), *script_paths(case), *attachment_paths(case)]:
        try:
            content = (suite_root / path).read_bytes()
            executable = bool((suite_root / path).stat().st_mode & 0o100)
        except OSError:
            continue
        kept[path] = FileState(sha256=blobs.put(content), size=len(content), executable=executable)
    return kept


def golden_paths(case: Case) -> list[str]:
    """Each reference file once, in the order of its first use."""
    found = (check.golden_file for check in _checks(case))
    return list(dict.fromkeys(golden.path for golden in found if golden is not None))


def script_paths(case: Case) -> list[str]:
    """Each script that judges once: those of judges, then those of checks."""
    judges = (judge.script_path for judge in case.all_judges() if judge.type == "script")
    checks = (check.script.path for check in _checks(case) if check.script is not None)
    return list(dict.fromkeys([*(path for path in judges if path is not None), *checks]))


def attachment_paths(case: Case) -> list[str]:
    """Each file that agents who judge are shown besides."""
    contexts = (judge.context for judge in case.all_judges())
    found = (item.path for context in contexts if context for item in context.attachments)
    return list(dict.fromkeys(found))


def _checks(case: Case) -> Iterator[CheckKeys]:
    if case.expect is not None:
        yield from _in([case.expect])
    yield from _in(case.assertions)
    for judge in case.all_judges():
        yield from _in([*judge.success, *judge.failure])
    for turn in case.input.all_turns():
        if turn.post_condition is not None:
            yield from _in([turn.post_condition])
        yield from _in(turn.assertions)


def _in(checks: Sequence[CheckKeys]) -> Iterator[CheckKeys]:
    for check in checks:
        yield check
        for children in (check.any_of, check.all_of, check.none_of):
            yield from _in(children or [])
        if isinstance(check, Check):
            yield from _in(check.assertions or [])
