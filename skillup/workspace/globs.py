"""Globs over POSIX paths: ``**`` any number of directories, ``*`` and ``?`` within one name,
``[a-z]``, ``[!a-z]`` and ``{a,b}``. A backslash takes the next character literally.

Agents choose the paths, so matching takes time in proportion to a path's length: braces are written
out, and nothing that a star has passed is tried again (``(?>.*?piece)``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_PARTS = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|\*+|.", re.DOTALL)
_MOST_ALTERNATIVES = 1000


def matches_glob(path: str, pattern: str) -> bool:
    """Whether the whole relative path matches. Upper and lower case differ.

    Raises re.error if the pattern is no glob.
    """
    return any(glob.fullmatch(path) for glob in _compiled(pattern))


def matches_any_glob(path: str, patterns: Sequence[str]) -> bool:
    """Whether the path, or a directory that it is in, matches one of the patterns.

    So ``drafts`` and ``drafts/`` mean all that is below as ``drafts/**`` does.
    """
    globs = (_compiled(pattern.rstrip("/"), "(?:/.*)?") for pattern in patterns)
    return any(glob.fullmatch(path) for compiled in globs for glob in compiled)


def may_match_below(directory: str, pattern: str) -> bool:
    """Whether something in the directory could match, or make a directory that does be there."""
    for name, part in zip(directory.split("/"), pattern.split("/"), strict=False):
        if re.search(r"\*\*|[\[{]", part):
            return True
        if not matches_glob(name, part):
            return False
    return True


@lru_cache(maxsize=1024)
def _compiled(pattern: str, then: str = "") -> tuple[re.Pattern[str], ...]:
    """The pattern without braces (``a{b,c}`` is ``ab`` and ``ac``), as expressions, and `then`."""
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
            found.append(_expression(_split(parts, "/")))
        else:
            head, tail = parts[:start], parts[end + 1 :]
            pending.extend([*head, *one, *tail] for one in _split(parts[start + 1 : end], ","))
        if len(pending) + len(found) > _MOST_ALTERNATIVES:
            raise re.error(f"its braces come to more than {_MOST_ALTERNATIVES} alternatives")
    return tuple(re.compile(one + then, re.DOTALL) for one in dict.fromkeys(found))


def _split(parts: Sequence[str], separator: str) -> list[list[str]]:
    between: list[list[str]] = [[]]
    for part in parts:
        if part == separator:
            between.append([])
        else:
            between[-1].append(part)
    return between


def _expression(names: Sequence[Sequence[str]]) -> str:
    """Of a path whose names are these parts."""
    stretches = [""]  # what stands between two `**`, with a slash behind each name
    for name in names[:-1]:
        if name == ["**"]:
            stretches.append("")
        else:
            stretches[-1] += f"{_name(name)}/"
    # What is below a directory is not the directory itself.
    last = "(?:[^/]*/)*[^/]*" if names[-1] == ["**"] else _name(names[-1])
    return _starred("(?:[^/]*/)", stretches) + last


def _starred(any_one: str, pieces: Sequence[str]) -> str:
    """The pieces with any number of `any_one` between them; only after the last star is there a
    way back.
    """
    first, *rest = pieces
    if not rest:
        return first
    passed = "".join(f"(?>{any_one}*?{piece})" for piece in rest[:-1])
    return f"{first}{passed}{any_one}*{rest[-1]}"


def _name(parts: Sequence[str]) -> str:
    pieces = [""]
    for part in parts:
        if part[0] == "*":
            pieces.append("")
        elif part == "?":
            pieces[-1] += "[^/]"
        elif part[0] == "[" and len(part) > 1:
            no = "^/" if part[1] in "!^" else ""
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", part[1 + bool(no) : -1])
            pieces[-1] += f"(?!/)[{no}{inner}]"
        else:
            pieces[-1] += re.escape(part[-1])
    return _starred("[^/]", pieces)
