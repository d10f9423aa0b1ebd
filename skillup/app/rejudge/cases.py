"""The cases that records are judged by instead of their own."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from skillup.app.planning import FALLBACK_VARIABLE
from skillup.errors import UsageError
from skillup.load.discover import find_suites, suite_root
from skillup.redaction.secrets import Secrets, masking_bytes
from skillup.reports.text import shown_id
from skillup.schema.case import Case
from skillup.schema.record import FileState, Record
from skillup.store.files import no_mask, to_json
from skillup.store.places import RUN_FILE

if TYPE_CHECKING:
    from skillup.schema.suite import Suite

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class EditedCase:
    """A case as its file says now."""

    case: Case
    suite: str
    root: Path
    """What its paths are relative to."""
    suite_settings: Suite
    """What its suite says of all its cases."""
    branch_of: str | None
    """The case that this one is one path of; None: it has no branches."""


def load_edited(paths: Sequence[Path]) -> list[EditedCase]:
    """The cases of suites, folders of suites, and case files.

    Raises UsageError, and InvalidFilesError with all that is wrong. Warnings go to stderr.
    """
    from skillup.judges.models.client import with_judge_model
    from skillup.load.suites import load_paths
    from skillup.reports.terminal.listing import problem_line

    loaded = load_paths(paths)
    sys.stderr.writelines(problem_line(warning) + "\n" for warning in loaded.warnings)
    model = os.environ.get(FALLBACK_VARIABLE) or None  # as `skillup run` does
    found = []
    for suite in loaded.or_raise().suites:
        for item in suite.cases:
            case = with_judge_model(item.case, None, model, suite.suite)
            edited = EditedCase(case, suite.name, suite.root, suite.suite, item.branch_of)
            found.append(edited)
    if not found:
        raise UsageError("--cases: no case there", hint="give a suite, a folder or a case file")
    return found


def file_stamps(paths: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """When the files beside and below `paths`, and of their suites, were written; their sizes."""
    folders = {path if path.is_dir() else path.parent for path in paths}
    with suppress(UsageError):
        folders |= {suite_root(suite.path) for suite in find_suites(paths)}
    stamps = {}
    for place, names, files in chain.from_iterable(map(os.walk, folders)):
        names[:] = [n for n in names if n[0] != "." and n not in ("node_modules", "__pycache__")]
        if RUN_FILE in files:  # judging writes there
            names.clear()
            continue
        for file in files:
            with suppress(OSError):
                status = os.stat(path := os.path.join(place, file))  # noqa: PTH116, PTH118 - fast
                stamps[path] = (status.st_mtime_ns, status.st_size)
    return stamps


def case_for(record: Record, same_id: Sequence[EditedCase]) -> EditedCase | None:
    """Of the cases with the record's id its own: that of its suite, if there are several.

    Raises UsageError if it may be any of several.
    """
    own = [edited for edited in same_id if edited.suite == record.suite]
    if len(same_id) > 1 and not own:
        suites = ", ".join(edited.suite for edited in same_id)
        raise UsageError(
            f"the case {record.case_id} may be that of several suites: {suites}",
            hint="give --cases one of them",
        )
    return next(iter([*own[-1:], *same_id]), None)


def masked(model: M, secrets: Secrets, *, exclude_unset: bool = False) -> M:
    """`model` without secrets. Raises ValueError if it is none of its kind without them."""
    if not secrets:
        return model
    data = model.model_dump(mode="json", by_alias=True, exclude_unset=exclude_unset)
    text = to_json(data, secrets.mask, indent=None)
    same = text == to_json(data, no_mask, indent=None)
    return model if same else type(model).model_validate_json(text)


def masked_cases(edited: Sequence[EditedCase], secrets: Secrets) -> list[EditedCase]:
    """As a run would have recorded them, so that what is unchanged reads the same.

    Raises UsageError for a case that is none without its secrets.
    """
    found = []
    for item in edited:
        try:
            found.append(replace(item, case=masked(item.case, secrets, exclude_unset=True)))
        except ValueError:
            raise UsageError(
                f"{secrets.mask(shown_id(item.case.id))}: a key stands where it cannot be masked",
                hint="take the value of the key out of the case",
            ) from None
    return found


def with_references(
    record: Record, edited: EditedCase, mask: Callable[[str], str]
) -> tuple[Record, Mapping[str, bytes]]:
    """The record with the files of the suite that the edited case names, as they are now.

    And their contents, masked as a run's, by SHA-256. Those that are not there any more stay as the
    record has them.
    """
    from skillup.judges.grade import as_written
    from skillup.trial.artifacts import read_reference, reference_paths

    contents: dict[str, bytes] = {}
    references = dict(record.references)
    for name in reference_paths(edited.case, as_written(record, edited.case).initial_variables):
        found = read_reference(name, edited.root)
        if found is None:
            continue
        content, executable = masking_bytes(mask)(found[0]), found[1]
        sha = hashlib.sha256(content).hexdigest()
        contents[sha] = content
        references[name] = FileState(sha256=sha, size=len(content), executable=executable)
    # Scripts, and the files of judges, are those beside the edited case.
    update = {"references": references, "suite_root": str(edited.root)}
    return record.model_copy(update=update), contents
