"""Files that are either the old one or the new one, whenever the machine stops."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from skillup.store.errors_of_disk import disk_errors

_TEMPORARY_ENDING = ".skillup-tmp"


def write_atomic(path: Path, data: bytes) -> None:
    """Replaces ``path`` by a file that holds ``data``, synced; its directory must exist.

    Raises RunDirectoryError if that fails; ``path`` is then as it was. Several writers may write
    the same path at once: one of them is the last.
    """
    # In the same directory, because a rename across file systems is a copy.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{_TEMPORARY_ENDING}")
    with disk_errors("write", path):
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(path.parent)


def remove_file(path: Path) -> None:
    """Removes ``path``, if it is there, for good. Raises RunDirectoryError."""
    with disk_errors("remove", path), suppress(FileNotFoundError):
        path.unlink()
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Makes renames in ``directory`` last. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that a writer has not finished."""
    return name.startswith(".") and name.endswith(_TEMPORARY_ENDING)


def remove_temporary_files(directory: Path) -> None:
    """Removes what writers that were killed have left in ``directory``; nobody may be writing."""
    for leftover in directory.glob(f".*{_TEMPORARY_ENDING}"):
        with suppress(OSError):
            leftover.unlink()


def make_directory(directory: Path) -> None:
    """Makes ``directory`` and its parents, and makes that last. Raises RunDirectoryError."""
    missing = []
    at = directory
    while not at.is_dir() and at != at.parent:
        missing.append(at)
        at = at.parent
    with disk_errors("make", directory):
        directory.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_directory(made.parent)


def set_aside(path: Path, suffix: str) -> Path:
    """Renames ``path`` to ``<name>.<suffix>-<n>`` with the first free n from 1; returns that."""
    number = 1
    while True:
        target = path.with_name(f"{path.name}.{suffix}-{number}")
        if not os.path.lexists(target):
            with disk_errors("set aside", path):
                path.rename(target)
            return target
        number += 1
