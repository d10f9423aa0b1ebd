"""Which index: `--index`, else SKILLUP_INDEX, else the file beside the runs. No SQLAlchemy here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillup.store.place import default_index_path

INDEX_VARIABLE = "SKILLUP_INDEX"
NO_INDEX = "none"


def index_url(
    given: str | None, environment: Mapping[str, str], workspace_root: Path, *, write: bool
) -> str:
    """The URL of the index, in SQLAlchemy's form, or the path of an SQLite file.

    Empty: none is kept (`none` was said). With `write`, the directory of the default one is made;
    raises RunDirectoryError if that cannot be.
    """
    said = given or environment.get(INDEX_VARIABLE)
    if not said:
        return str(default_index_path(workspace_root, make=write))
    return "" if said == NO_INDEX else said
