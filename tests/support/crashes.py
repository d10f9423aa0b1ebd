"""A run that was disturbed beside one that was not: what must be the same, to the byte.

What is left out, and why nothing else is:

- ids and moments, which differ between any two runs: `run_id`, `session_id`, `started_at`, and the
  ids of sessions wherever else they stand; so does the hash of a session's file, which has its id
  in it (the length of the file and the number of its messages are compared);
- the name of the run's scratch directory, which the system chose, and below it in which of the
  trials' directories shared turns were held (that of the first which was still to be held);
- durations and the use of the machine, which depend on what else it does;
- that a trial was gone on with, or begun anew, after an earlier start of the run: the notes of the
  record that say just that.

Answers, transcripts, tool calls, files and their hashes, captures, checks, scores, tokens, attempts
and verdicts are compared, and so is the set of trials.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from pathlib import Path
from typing import Any

_CHANGING = {"run_id", "session_id", "started_at", "duration_ms", "prefix_sha256"}
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_SCRATCH = re.compile(r"[^\s\"=]*/skillup-[a-z0-9_]{8}/(?:[0-9a-f]{12}/(?=shared-\d))?")
_GONE_ON_WITH = re.compile(r"(resumed|begun anew with turn 1, not resumed) after turn \d+: ")


def state_of(run: Path) -> dict[str, str]:
    """By name, every result and record of the run, as text that two runs can be compared by."""
    files = {
        "result.json": run / "result.json",
        **{
            str(path.relative_to(run)): path
            for name in ("record.json", "grading.json", "attempt-*.json")
            for path in run.glob(f"trials/**/{name}")
        },
    }
    return {name: _canonical(path) for name, path in sorted(files.items())}


def differences(one: Path, other: Path) -> str:
    """What differs between two runs, line by line; empty if nothing does."""
    left, right = state_of(one), state_of(other)
    lines: list[str] = []
    for name in sorted({*left, *right}):
        before, after = (side.get(name, "").splitlines() for side in (left, right))
        names = f"{one.name}/{name}", f"{other.name}/{name}"
        lines += difflib.unified_diff(before, after, *names, n=1)
    return "\n".join(lines)


def _canonical(path: Path) -> str:
    value = _without(json.loads(path.read_text(encoding="utf-8")))
    text = _UUID.sub("SESSION", json.dumps(value, indent=1, sort_keys=True))
    return _SCRATCH.sub("SCRATCH/", text)


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _CHANGING}
        if "notes" in kept:
            kept["notes"] = [n for n in kept["notes"] if not _GONE_ON_WITH.match(n)]
        return {name: _without(item) for name, item in kept.items()}
    return [_without(item) for item in value] if isinstance(value, list) else value


def missing_blobs(run: Path) -> list[str]:
    """Contents of files that a record names and the run has not, or has otherwise."""
    named: set[str] = set()
    for path in run.glob("trials/**/record.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        lists = [turn["files_changed"] for turn in record["turns"]]
        for files in (record["initial_files"], *lists):
            states = [state for state in (files or {}).values() if state is not None]
            named |= {state["sha256"] for state in states if state.get("kept") and state["sha256"]}
    return [sha for sha in sorted(named) if not _is_whole(run / "blobs" / sha[:2] / sha)]


def _is_whole(blob: Path) -> bool:
    return blob.is_file() and hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def finished(run: Path) -> dict[str, bytes]:
    records = run.glob("trials/**/record.json")
    return {str(path.relative_to(run)): path.read_bytes() for path in records}
