"""What differs between two runs, to the byte."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from skillup.store import RunDirectory

# What differs between any two: ids, moments, durations, places that the system chose, how long a
# provider had trials wait, and that a trial was gone on with after an earlier start.
_CHANGING = {"run_id", "session_id", "started_at", "duration_ms", "prefix_sha256"}
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_SCRATCH = re.compile(r"[^\s\"=]*/skillup-[a-z0-9_]{8}/(?:\d+\b/?)?")
_CHANGING_NOTE = re.compile(
    r"(resumed|begun anew with turn 1, not resumed) after turn \d+: |.*had refused others$"
)
_WAITED = re.compile(r"after \d+ s\b")


def state_of(run: Path, ignored: Collection[str]) -> dict[str, str]:
    """By name, every result and record of the run, as text that two runs can be compared by."""
    found = {"result": (run / "result.json").read_bytes()}
    with RunDirectory.open(run) as directory:
        for job in directory.begun_jobs():
            for state, one in directory.all_attempts(job):
                if state in ("retried", "finished"):
                    name = f"{job}, attempt {one.record().attempt}"
                    found |= {name: one.record_json, f"grade of {name}": one.grade_json or b"null"}
    return {name: _canonical(data, ignored) for name, data in found.items()}


def differences(one: Path, other: Path, ignored: Collection[str] = ()) -> str:
    """What differs between two runs, line by line, but for fields that are `ignored`."""
    left, right = state_of(one, ignored), state_of(other, ignored)
    lines: list[str] = []
    for name in sorted({*left, *right}):
        before, after = (side.get(name, "").splitlines() for side in (left, right))
        names = f"{one.name}/{name}", f"{other.name}/{name}"
        lines += difflib.unified_diff(before, after, *names, n=1)
    return "\n".join(lines)


def _canonical(data: bytes, ignored: Collection[str]) -> str:
    value = _without(json.loads(data), {*_CHANGING, *ignored})
    text = _UUID.sub("SESSION", json.dumps(value, indent=1, sort_keys=True))
    return _WAITED.sub("after a while", _SCRATCH.sub("SCRATCH/", text))


def _without(value: Any, changing: Collection[str]) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in changing}
        if "notes" in kept:
            kept["notes"] = [n for n in kept["notes"] if not _CHANGING_NOTE.match(n)]
        return {name: _without(item, changing) for name, item in kept.items()}
    return [_without(item, changing) for item in value] if isinstance(value, list) else value
