"""Tokens of each turn, as the rows of a session file tell them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from skillup.engines.session_entries import SessionFormat
from skillup.engines.session_files import lines_of
from skillup.schema.record import Usage


def usage_of_turns(
    path: Path, format_: SessionFormat, first_lines: Sequence[int], counted: frozenset[int]
) -> list[Usage | None]:
    """For each turn, by its first line; None where the file does not tell.

    Where a session has branches, only the rows in `counted` count. Raises OSError.
    """
    turns: list[dict[str, dict[str, int]]] = [{} for _ in first_lines]
    for line in lines_of(path) if first_lines else ():
        found = format_.tokens(line.row) if isinstance(line.row, dict) else None
        turn = bisect_right(first_lines, line.number) - 1
        if found and turn >= 0 and (format_.left_lines is None or line.number in counted):
            key, counts = found
            turns[turn][key or str(line.number)] = counts
    if not format_.running_total:
        return [_usage(list(parts.values())) for parts in turns]
    usages: list[Usage | None] = []
    before: dict[str, int] = {}
    for parts in turns:
        own = total = next(iter(parts.values()), None)
        if total is not None:
            own = {name: count - before.get(name, 0) for name, count in total.items()}
            # After a compaction, or in a thread of another process, it may begin again.
            own = total if any(count < 0 for count in own.values()) else own
            before = total
        usages.append(_usage([own] if own is not None else []))
    return usages


def _usage(parts: Sequence[dict[str, int]]) -> Usage | None:
    if not parts:
        return None
    names = {name for part in parts for name in part}
    return Usage(**{name: sum(part.get(name, 0) for part in parts) for name in names})
