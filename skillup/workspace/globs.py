"""Globs over POSIX paths: ``**`` any number of directories, ``*`` and ``?`` within one name,
``[a-z]``, ``[!a-z]`` and ``{a,b}``. A backslash takes the next character literally.

Agents choose the paths, so matching takes time in proportion to a path's length: braces are written
out, names compared one by one, and nothing that a star has passed is tried again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_PARTS = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|\*+|.", re.DOTALL)
_MOST_ALTERNATIVES = 1000

_Name = re.Pattern[str] | None
"""One name of a path; None: any number of directories."""


def matches_glob(path: str, pattern: str) -> bool:
    """Whether the whole relative path matches. Upper and lower case differ.

    Raises re.error if the pattern is no glob.
    """
    names = path.split("/")
    return any(len(glob) in _places(glob, names)[-1] for glob in _compiled(pattern))


def matches_any_glob(path: str, patterns: Sequence[str]) -> bool:
    """Whether the path, or a directory that it is in, matches one of the patterns.

    So ``drafts`` and ``drafts/`` mean all that is below as ``drafts/**`` does.
    """
    names = path.split("/")
    return any(
        len(glob) in places
        for pattern in patterns
        for glob in _compiled(pattern.rstrip("/"))
        for places in _places(glob, names)
    )


def may_match_below(directory: str, pattern: str) -> bool:
    """Whether something in the directory could match, or make a directory that does be there."""
    names = directory.split("/")
    for glob in _compiled(pattern):
        places = _places(glob, names)
        if places[-1] or any(len(glob) in some for some in places):
            return True
    return False


def _places(glob: Sequence[_Name], names: Sequence[str]) -> list[set[int]]:
    """How many parts of the glob may have matched, after each of the names."""

    def closed(places: set[int]) -> set[int]:
        for place in sorted(places):
            while place < len(glob) and glob[place] is None:  # of no directories at all
                place += 1
                places.add(place)
        return places

    now, found = closed({0}), []
    for name in names:
        after = set()
        for place in now:
            if place < len(glob):
                expected = glob[place]
                if expected is None:
                    after.add(place)
                elif expected.fullmatch(name):
                    after.add(place + 1)
        now = closed(after)
        found.append(now)
    return found


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[tuple[_Name, ...], ...]:
    """The pattern without braces (``a{b,c}`` is ``ab`` and ``ac``), as the names of its path."""
    pending, found = [_PARTS.findall(pattern.removeprefix("./"))], []
    while pending:
        parts = pending.pop()
        start = end = -1
        for place, part in enumerate(parts):
            if part == "{":
                start = place
            elif part == "}" and start >= 0:
                end = place
                break
        if end < 0:
            found.append(parts)
        else:
            head, tail = parts[:start], parts[end + 1 :]
            pending.extend([*head, *one, *tail] for one in _split(parts[start + 1 : end], ","))
        if len(pending) + len(found) > _MOST_ALTERNATIVES:
            raise re.error(f"its braces come to more than {_MOST_ALTERNATIVES} alternatives")
    globs = []
    for parts in found:
        names = [None if one == ["**"] else _name(one) for one in _split(parts, "/")]
        # What is below a directory is not the directory itself.
        globs.append((*names, _name(["*"])) if names[-1] is None else tuple(names))
    return tuple(dict.fromkeys(globs))


def _split(parts: Sequence[str], separator: str) -> list[list[str]]:
    between: list[list[str]] = [[]]
    for part in parts:
        if part == separator:
            between.append([])
        else:
            between[-1].append(part)
    return between


def _name(parts: Sequence[str]) -> re.Pattern[str]:
    pieces = [""]
    for part in parts:
        if part[0] == "*":
            pieces.append("")
        elif part == "?":
            pieces[-1] += "."
        elif part[0] == "[" and len(part) > 1:
            no = "^" if part[1] in "!^" else ""
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", part[1 + len(no) : -1])
            pieces[-1] += f"[{no}{inner}]"
        else:
            pieces[-1] += re.escape(part[-1])
    first, *rest = pieces
    if not rest:
        return re.compile(first, re.DOTALL)
    passed = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return re.compile(f"{first}{passed}.*{rest[-1]}", re.DOTALL)
