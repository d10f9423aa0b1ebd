"""Files whose content stands in the case itself (``context.files``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from skillup.schema.templates import UnresolvedNameError, render
from skillup.workspace.failure import PreparationError
from skillup.workspace.full_disk import refuse_full_disk
from skillup.workspace.paths import path_problem


def write_inline_files(
    workspace: Path, files: Mapping[str, str], variables: Mapping[str, str] | None
) -> None:
    """Writes each file, its templates filled in, over what a fixture may have put there.

    `variables`: None where the files' texts are no templates.

    Raises PreparationError for a path that leaves the workspace or is in the way of another, and
    for a name without a value (kind ``template``); FullDiskError.
    """
    for path, content in files.items():
        problem = path_problem(path)
        if problem is not None:
            raise PreparationError(f"`context.files` has the path {path!r}: {problem}")
        try:
            text = content if variables is None else render(content, variables)
        except UnresolvedNameError as error:
            message = f"{error}, but `context.files` needs it for {path!r}; define it in `vars`"
            raise PreparationError(message, kind="template") from None
        try:
            _write(workspace / path, text)
        except OSError as error:
            refuse_full_disk(error, workspace)
            reason = error.strerror or str(error)
            raise PreparationError(
                f"`context.files` cannot write {path!r}: {reason}; "
                "is there a directory, a file or a link of the fixture in its way?"
            ) from error


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # A new file, rather than new content: the fixture's may be read-only, or a link elsewhere.
    if os.path.lexists(target):
        target.unlink()
    target.write_bytes(text.encode("utf-8", "replace"))
