"""Names of tools: an engine's own, and the two ways to write an MCP tool's."""

from __future__ import annotations

import fnmatch
from functools import lru_cache

_RAW = "mcp__"


@lru_cache(maxsize=4096)
def same_tool(wanted: str, name: str, case_sensitive: bool) -> bool:
    """Whether `wanted` names the tool `name`; ``*`` in it stands for anything.

    ``server::tool`` and ``mcp__server__tool`` are the same tool.
    """
    if wanted == name:
        return True
    if not case_sensitive:
        wanted, name = wanted.casefold(), name.casefold()
    names = _spellings(name)
    return any(_matches(one, names) for one in _spellings(wanted))


def _spellings(name: str) -> tuple[str, ...]:
    if "::" in name:
        return name, _RAW + name.replace("::", "__", 1)
    if name.startswith(_RAW):
        return name, name.removeprefix(_RAW).replace("__", "::", 1)
    return (name,)


def _matches(wanted: str, names: tuple[str, ...]) -> bool:
    if "*" not in wanted:
        return wanted in names
    # Only the star is a wildcard here; fnmatch has two more.
    pattern = wanted.replace("[", "[[]").replace("?", "[?]")
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)
