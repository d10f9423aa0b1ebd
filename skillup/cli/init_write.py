"""Writing what `skillup init` makes: all of it or nothing, and never outside the directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from skillup.errors import UsageError

_IGNORED = ".skillup/"


def existing(root: Path, files: Mapping[str, str]) -> list[str]:
    """Which of `files` are there already, and what else `evals/` holds; paths within `root`."""
    evals = root / "evals"
    there = {
        name for name in files if not name.startswith("evals/") and os.path.lexists(root / name)
    }
    if os.path.lexists(evals) and not evals.is_dir():
        there.add("evals")
    elif evals.is_dir():
        there |= {f"evals/{path.name}" for path in evals.iterdir()}
    return sorted(there)


def ignore_line(root: Path) -> str | None:
    """What .gitignore has to hold once the line is added; None if it keeps runs out already.

    Also None where .gitignore is a link: what it leads to may be shared with others.
    """
    path = root / ".gitignore"
    if path.is_symlink():
        return None
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint="make it readable, or a file"
        ) from error
    if {line.strip().strip("/") for line in text.splitlines()} & {".skillup", "**/.skillup"}:
        return None
    return text + ("" if not text or text.endswith("\n") else "\n") + _IGNORED + "\n"


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write `files` below `root`, in place of those that are there.

    Everything is written aside first and then renamed, so that trouble on the way (or Ctrl-C)
    leaves `root` as it was. Raises UsageError if it cannot be done, or if a link in `root` would
    lead it elsewhere.
    """
    for name in files:
        _require_inside(root, root / name)
    made = not root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".init-", dir=root))
        try:
            for name, text in files.items():
                path = aside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode("utf-8", "surrogateescape"))
            for name in files:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (aside / name).replace(root / name)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        if made and root.is_dir() and not any(root.iterdir()):
            root.rmdir()
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}",
            hint="choose a directory that can be written to",
        ) from error


def _require_inside(root: Path, path: Path) -> None:
    real = root.resolve()
    if real not in path.parent.resolve().parents and real != path.parent.resolve():
        raise UsageError(
            f"{path.parent} leads out of {root}", hint="make it a directory, or choose another one"
        )
