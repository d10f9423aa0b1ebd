"""Directory trees for tests, written and read as plain dictionaries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def make_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def make_deep(root: Path, depth: int = 1000, name: str = "deep") -> None:
    """Directories of this name within each other, deeper than any path may be long."""
    at = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def tree_of(root: Path) -> dict[str, str]:
    """Every file below ``root`` but those of git, by POSIX path; links as ``-> target``."""
    found: dict[str, str] = {}
    for parent, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        for name in [*names, *directories]:
            path = Path(parent, name)
            relative = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[relative] = f"-> {os.readlink(path)}"  # noqa: PTH115 - as it was written
            elif path.is_file():
                found[relative] = path.read_text(encoding="utf-8", errors="replace")
    return found
