"""Globs over POSIX paths: ``**`` any number of directories, ``*`` and ``?`` within one name,
``[a-z]``, ``[!a-z]`` and ``{a,b}``. A backslash takes the next character literally.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def matches_glob(path: str, pattern: str) -> bool:
    """Whether the whole relative path matches. Upper and lower case differ."""
    return _compiled(pattern.removeprefix("./")).fullmatch(path) is not None


def matches_any_glob(path: str, patterns: Sequence[str]) -> bool:
    """Whether the path, or a directory that it is in, matches one of the patterns.

    So ``drafts`` and ``drafts/`` mean all that is below as ``drafts/**`` does.
    """
    parts = path.split("/")
    heads = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(matches_glob(head, p.rstrip("/")) for p in patterns for head in heads)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_translate(pattern), re.DOTALL)


_TOKENS = re.compile(
    r"(?P<into>(?:^|(?<=/))\*\*/)|(?P<below>(?:^|(?<=/))\*\*$)|(?P<star>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\]|\\(?P<literal>.)|(?P<brace>[{},])|(?P<other>.)",
    re.DOTALL,
)


def _translate(pattern: str) -> str:
    braces = 0
    balanced = pattern.count("{") == pattern.count("}")
    out: list[str] = []
    for token in _TOKENS.finditer(pattern):
        if token["into"]:
            out.append("(?:[^/]+/)*")
        elif token["below"]:
            out.append(".+")
        elif token["star"]:
            out.append("[^/]*")
        elif token["one"]:
            out.append("[^/]")
        elif token["set"]:
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", token["set"])
            out.append(f"(?!/)[{'^' if token['not'] else ''}{inner}]")
        elif token["brace"] and balanced and (braces or token["brace"] == "{"):
            braces += {"{": 1, "}": -1, ",": 0}[token["brace"]]
            out.append({"{": "(?:", "}": ")", ",": "|"}[token["brace"]])
        else:
            out.append(re.escape(token["literal"] or token[0]))
    return "".join(out)
