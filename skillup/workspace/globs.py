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
    return any(_fits(wanted, names) for wanted in _compiled(pattern.removeprefix("./")))


def matches_any_glob(path: str, patterns: Sequence[str]) -> bool:
    """Whether the path, or a directory that it is in, matches one of the patterns.

    So ``drafts`` and ``drafts/`` mean all that is below as ``drafts/**`` does.
    """
    parts = path.split("/")
    heads = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(matches_glob(head, p.rstrip("/")) for p in patterns for head in heads)


def may_match_below(directory: str, pattern: str) -> bool:
    """Whether something in the directory could match, or make a directory that does be there."""
    for wanted in _compiled(pattern.removeprefix("./")):
        places = {0}
        for name in directory.split("/"):
            for place in sorted(places):
                while place < len(wanted) and wanted[place] is None:
                    place += 1
                    places.add(place)
            if len(wanted) in places:
                return True
            places = {
                place + (expected is not None)
                for place in places
                if (expected := wanted[place]) is None or expected.fullmatch(name)
            }
        if places:
            return True
    return False


def _fits(wanted: Sequence[_Name], names: Sequence[str]) -> bool:
    at = here = 0
    back: tuple[int, int] | None = None
    while here < len(names):
        expected = wanted[at] if at < len(wanted) else None
        if at < len(wanted) and expected is None:
            at += 1
            back = at, here
        elif expected is not None and expected.fullmatch(names[here]):
            at, here = at + 1, here + 1
        elif back is not None:
            # The latest `**` takes one directory more; an earlier one would find nothing new.
            at, here = back = back[0], back[1] + 1
        else:
            return False
    return all(name is None for name in wanted[at:])


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[tuple[_Name, ...], ...]:
    return tuple(dict.fromkeys(map(_names, _alternatives(_PARTS.findall(pattern)))))


def _alternatives(parts: list[str]) -> list[list[str]]:
    """The pattern without braces: ``a{b,c}`` is ``ab`` and ``ac``."""
    pending, found = [parts], []
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
    return found


def _split(parts: Sequence[str], separator: str) -> list[list[str]]:
    between: list[list[str]] = [[]]
    for part in parts:
        if part == separator:
            between.append([])
        else:
            between[-1].append(part)
    return between


def _names(parts: Sequence[str]) -> tuple[_Name, ...]:
    names = [None if one == ["**"] else _name(one) for one in _split(parts, "/")]
    # What is below a directory is not the directory itself.
    return (*names, _name(["*"])) if names[-1] is None else tuple(names)


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
