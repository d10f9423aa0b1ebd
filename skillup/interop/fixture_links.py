"""Which links of a fixture would lead nowhere, because what they lead to is not copied. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

_MOST_HOPS = 40
"""As many as systems follow."""


def broken_links(files: Collection[str], links: Mapping[str, str]) -> list[str]:
    """The links that arrive nowhere among `files`, sorted, and those that lead to such links.

    `files` are all relative paths that are copied, links among them; `links` has what each says.
    """
    there = set(files)
    broken: set[str] = set()
    while True:
        folders = {str(parent) for path in there for parent in PurePosixPath(path).parents}
        found = {path for path in links.keys() & there if not _arrives(path, there, folders, links)}
        if not found:
            return sorted(broken)
        broken |= found
        there -= found


def _arrives(
    path: str, there: Collection[str], folders: Collection[str], links: Mapping[str, str]
) -> bool:
    """Follows `path` part by part, as a system does."""
    ahead, reached, hops = deque(path.split("/")), list[str](), 0
    while ahead:
        part = ahead.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            if not reached:
                return False
            reached.pop()
            continue
        reached.append(part)
        place = "/".join(reached)
        if place in links and place in there:
            reached.pop()
            ahead.extendleft(reversed(links[place].split("/")))
            hops += 1
            if hops > _MOST_HOPS:
                return False
        elif place not in there and place not in folders:
            return False
    return True
