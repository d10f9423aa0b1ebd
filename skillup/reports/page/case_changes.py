"""What of a case was changed between two runs: the records of both hold it as it was run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from skillup.store.names import directory_of_job
from skillup.store.regular import read_regular

_CHECKS = ("assertions", "post_condition", "expected_output")
_BESIDE = {"id", "suite_root"}
_WORDS = {
    "assertions": "checks of the whole conversation",
    "judge": "judge",
    "scripted": "script",
    "trials": "number of trials",
}


def case_changes(a: Path, job_a: str, b: Path, job_b: str) -> list[str]:
    """``["messages", "checks of turn 2", "context"]``; empty if it is the same, or not known.

    `a` and `b` are run directories, the jobs trials with a record in each.
    """
    before, now = _case(a, job_a), _case(b, job_b)
    if before is None or now is None or before == now:
        return []
    return list(dict.fromkeys(_differences(before, now)))


def _case(run: Path, job: str) -> dict[str, Any] | None:
    path = run / "trials" / directory_of_job(job) / "record.json"
    try:
        status = path.stat()
        return _read(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def _read(path: Path, _changed: int, _size: int) -> dict[str, Any] | None:
    record = json.loads(read_regular(path))
    case = record.get("case") if isinstance(record, dict) else None
    return case if isinstance(case, dict) else None


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if name in _BESIDE or old == new:
            continue
        if name == "input" and isinstance(old, dict) and isinstance(new, dict):
            yield from _of_input(old, new)
        else:
            yield _WORDS.get(name, name)


def _of_input(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    turns, later = _turns(old), _turns(new)
    if [_said(turn) for turn in turns] != [_said(turn) for turn in later]:
        yield "messages"
    else:
        for number, (one, other) in enumerate(zip(turns, later, strict=True), start=1):
            if one != other:
                yield f"checks of turn {number}"
    for name in dict.fromkeys([*old, *new]):
        if name not in ("turns", "prompt") and old.get(name) != new.get(name):
            yield name


def _turns(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    turns = given.get("turns")
    if not isinstance(turns, list):
        turns = [given.get("prompt")]
    return [turn if isinstance(turn, dict) else {"content": turn} for turn in turns]


def _said(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name not in _CHECKS}
