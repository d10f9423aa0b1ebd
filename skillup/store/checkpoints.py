"""``trials/<job>/checkpoint.json``: an unfinished trial, as far as its last whole turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from skillup.schema.checkpoint import CHECKPOINT_VERSION, Checkpoint
from skillup.store.atomic import set_aside, write_atomic
from skillup.store.errors_of_disk import disk_errors
from skillup.store.json_text import Mask, to_json
from skillup.store.regular import read_regular

CHECKPOINT_FILE = "checkpoint.json"
_UNUSED = "unused"


def save_checkpoint(directory: Path, checkpoint: Checkpoint, mask: Mask) -> None:
    """Stores it in place of an older one; not at all if a variable of it holds a secret.

    What is masked could not be sent any more. Raises RunDirectoryError.
    """
    if any(mask(value) != value for value in checkpoint.variables.values()):
        drop_checkpoint(directory)
        return
    write_atomic(directory / CHECKPOINT_FILE, to_json(checkpoint, mask, indent=None))


def load_checkpoint(directory: Path) -> Checkpoint | None:
    """None if there is none that is whole and of this version."""
    return _load(directory / CHECKPOINT_FILE)


def unused_checkpoints(directory: Path) -> Iterator[Checkpoint]:
    """Those that were set aside, as far as they are whole and of this version."""
    for path in sorted(directory.glob(f"{CHECKPOINT_FILE}.{_UNUSED}-*")):
        found = _load(path)
        if found is not None:
            yield found


def drop_checkpoint(directory: Path) -> None:
    """Removes it: the trial has finished, or is held anew."""
    with disk_errors("remove", directory / CHECKPOINT_FILE), suppress(FileNotFoundError):
        (directory / CHECKPOINT_FILE).unlink()


def set_checkpoint_aside(directory: Path) -> None:
    """Keeps it as ``checkpoint.json.unused-1``: the trial was not gone on with."""
    if (directory / CHECKPOINT_FILE).exists():
        set_aside(directory / CHECKPOINT_FILE, _UNUSED)


def _load(path: Path) -> Checkpoint | None:
    try:
        found = Checkpoint.model_validate_json(read_regular(path))
    except (OSError, ValidationError):
        return None
    return found if found.schema_version == CHECKPOINT_VERSION else None
