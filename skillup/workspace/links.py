"""Where symbolic links lead, as seen from a tree that will stand somewhere else."""

from __future__ import annotations

from pathlib import Path

_MOST_LINKS = 40  # what systems allow before they call it a loop


def stays_inside(root: Path, link: str) -> bool:
    """Whether the link at ``link`` (relative to ``root``) never leaves ``root`` on its way.

    Absolute targets leave it, and so does ``../name-of-root/file``: in a copy of the tree they
    would lead back to the original or to nothing. Targets that do not exist may stay inside.
    """
    todo = link.split("/")[::-1]
    at: list[str] = []
    followed = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not at:
                return False
            at.pop()
            continue
        here = root.joinpath(*at, part)
        if here.is_symlink():
            followed += 1
            target = str(here.readlink())
            if target.startswith("/") or followed > _MOST_LINKS:
                return False
            todo.extend(target.split("/")[::-1])
        else:
            at.append(part)
    return True
