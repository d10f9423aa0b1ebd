"""Files of the suite that judging needs are kept with the record: it can be judged without it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from skillup.errors import InvalidFilesError
from skillup.load.every_check import all_checks
from skillup.load.file_text import read_file
from skillup.load.trust import is_trusted, leaves
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckSet
from skillup.schema.record import FileState
from skillup.workspace import BlobStore


def keep_references(
    case: Case, suite_root: Path, blobs: BlobStore, variables: Mapping[str, str] | None = None
) -> dict[str, FileState]:
    """Store every golden file, script and attachment the case names; see `reference_paths`.

    One that cannot be read is left out; its check then fails, and says so. What is kept is what
    the run found first: an agent that edits the suite changes nothing for the trials after its own.
    """
    kept: dict[str, FileState] = {}
    for path in reference_paths(case, variables):
        file = suite_root / path
        if file not in blobs.references:
            blobs.references[file] = None
            found = read_reference(path, suite_root)
            if found is not None:
                sha, size = blobs.put(found[0]), len(found[0])
                blobs.references[file] = FileState(sha256=sha, size=size, executable=found[1])
        state = blobs.references[file]
        if state is not None:
            kept[path] = state
    return kept


def read_reference(path: str, suite_root: Path) -> tuple[bytes, bool] | None:
    """The content of a file of the suite, and whether it is executable; None: it cannot be read.

    Nothing outside of the project is, unless the user trusts the suite: a template in `path` may
    have become anything by now. Nor is a pipe or a device, which might never end.
    """
    if leaves(path, suite_root) and not is_trusted(os.environ):
        return None
    file = suite_root / path
    try:
        return read_file(file), bool(file.stat().st_mode & 0o100)
    except (OSError, InvalidFilesError):
        return None


def reference_paths(case: Case, variables: Mapping[str, str] | None = None) -> list[str]:
    """Every golden file, script and attachment that the case names with these `variables`.

    Default: its own `vars`.
    """
    scripts, attached = script_paths(case, variables), attachment_paths(case)
    return [*golden_paths(case, variables), *scripts, *attached]


def golden_paths(case: Case, variables: Mapping[str, str] | None = None) -> list[str]:
    """Each reference file once, in the order of its first use."""
    found = (_filled_in(check, "golden_file", case, variables) for _, check, _ in all_checks(case))
    return list(dict.fromkeys(path for path in found if path is not None))


def script_paths(case: Case, variables: Mapping[str, str] | None = None) -> list[str]:
    """Each script that judges once: those of judges, then those of checks."""
    judges = (judge.script_path for judge in case.all_judges() if judge.type == "script")
    checks = (_filled_in(check, "script", case, variables) for _, check, _ in all_checks(case))
    return list(dict.fromkeys(path for path in (*judges, *checks) if path is not None))


def _filled_in(
    check: Check | CheckSet, key: str, case: Case, variables: Mapping[str, str] | None
) -> str | None:
    """The path of the check's file; None if it has none, or a name in it has no value yet."""
    path: str | None = getattr(getattr(check, key), "path", None)
    if path is None or check.literal:
        return path
    try:
        return templates.render(path, case.vars if variables is None else variables)
    except templates.UnresolvedNameError:
        return None


def attachment_paths(case: Case) -> list[str]:
    """Each file that agents who judge are shown besides."""
    contexts = (judge.context for judge in case.all_judges())
    found = (item.path for context in contexts if context for item in context.attachments)
    return list(dict.fromkeys(found))
