"""Writing what `skillup init` makes: all of it or nothing, and never outside the directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
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

    Everything is written aside first and then renamed, and trouble on the way (or Ctrl-C) takes
    back what was done: `root` is as it was. Raises UsageError if it cannot be done, or if a link in
    `root` would lead it elsewhere.
    """
    for name in files:
        _require_inside(root, root / name)
    with ExitStack() as undo:
        try:
            _make_directory(root, undo)
            aside = Path(tempfile.mkdtemp(prefix=".init-", dir=root))
            undo.callback(shutil.rmtree, aside, ignore_errors=True)
            _write_aside(aside / "new", files)
            for number, name in enumerate(files):
                _make_directory((root / name).parent, undo)
                _put(aside / "new" / name, root / name, aside / f"old-{number}", undo)
        except OSError as error:
            raise UsageError(
                f"cannot write {error.filename}: {error.strerror}",
                hint="choose a directory that can be written to",
            ) from error
        undo.pop_all()
        shutil.rmtree(aside, ignore_errors=True)


def _write_aside(new: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))


def _make_directory(path: Path, undo: ExitStack) -> None:
    for missing in reversed([p for p in (path, *path.parents) if not os.path.lexists(p)]):
        missing.mkdir()
        undo.callback(_remove_if_empty, missing)
    path.mkdir(exist_ok=True)  # complains of what is no directory


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def _put(new: Path, place: Path, old: Path, undo: ExitStack) -> None:
    """`new` in the place of what is there, of which `old` becomes a copy."""
    if os.path.lexists(place):
        shutil.copy2(place, old, follow_symlinks=False)
        undo.callback(old.replace, place)
    else:
        undo.callback(place.unlink, missing_ok=True)
    new.replace(place)


def _require_inside(root: Path, path: Path) -> None:
    real = root.resolve()
    if real not in path.parent.resolve().parents and real != path.parent.resolve():
        raise UsageError(
            f"{path.parent} leads out of {root}", hint="make it a directory, or choose another one"
        )
