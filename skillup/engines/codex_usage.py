"""The tokens of one turn of Codex: as its session's file tells them, or the event stream."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillup.engines.codex_session import RolloutPart, read_part
from skillup.engines.transcript import as_count, as_dict
from skillup.schema.record import Usage

_USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
_TOTAL, _STARTED = b'"total_token_usage"', b'"task_started"'
Total = dict[str, Any]
"""The thread's running total: as Codex writes it, empty before the first request."""


def usage_of(before: Total, part: RolloutPart) -> Usage | None:
    """The tokens of the turn that wrote `part`: the sum over its requests.

    Where the requests are not told one by one, the running total less the total `before`.
    """
    if part.usages:
        return Usage(**_sums(part.usages), requests=len(part.usages))
    if part.total is None:
        return None
    return Usage(**_difference(part.total, before))


def usage_by_totals(now: Total | None, before: Total, part: RolloutPart) -> Usage | None:
    """The tokens of a turn whose file was changed during it, so that requests may be missing there.

    `now` is the total that the event stream told. How many requests there were is known only if
    those in the file come to the same.
    """
    if now is None:
        return None
    own = _difference(now, before)
    complete = bool(part.usages) and _sums(part.usages) == own
    return Usage(**own, requests=len(part.usages) if complete else None)


def total_before(path: Path | None, offset: int) -> Total:
    """The thread's running total in the first `offset` bytes of its file."""
    total: Total = {}
    for _, line in _lines_with(_TOTAL, path, offset):
        payload = as_dict(line.get("payload"))
        total = as_dict(as_dict(payload.get("info")).get("total_token_usage")) or total
    return total


def part_of_last_turn(path: Path) -> RolloutPart:
    """What the latest turn wrote, in a file of which nothing else is known any more."""
    starts = [at for at, line in _lines_with(_STARTED, path) if line.get("type") == "event_msg"]
    return read_part(path, max(starts, default=0))


def _lines_with(
    text: bytes, path: Path | None, end: int | None = None
) -> list[tuple[int, dict[str, Any]]]:
    """Each line that holds `text`, and where it begins: few of very many, so few are parsed."""
    found: list[tuple[int, dict[str, Any]]] = []
    if path is None or not path.is_file():
        return found
    at = 0
    with path.open("rb") as file:
        for line in file:
            if end is not None and at + len(line) > end:
                break
            if text in line:
                with suppress(ValueError, RecursionError):
                    found.append((at, as_dict(json.loads(line))))
            at += len(line)
    return found


def _difference(now: Total, before: Total) -> dict[str, int | None]:
    own: Total = {}
    for name in _USAGE_NAMES.values():
        count = as_count(now.get(name))
        difference = None if count is None else count - (as_count(before.get(name)) or 0)
        own[name] = as_count(difference)  # none if the total was set back
    return _sums([own])


def _sums(usages: list[dict[str, Any]]) -> dict[str, int | None]:
    sums: dict[str, int | None] = {}
    for ours, theirs in _USAGE_NAMES.items():
        counts = [as_count(usage.get(theirs)) for usage in usages]
        known = [count for count in counts if count is not None]
        sums[ours] = sum(known) if known else None
    return sums
