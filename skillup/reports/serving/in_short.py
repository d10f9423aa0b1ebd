"""A run in a few words, for the list of runs; of a finished one, little of its files is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillup.reports.page.plan_of_run import planned_jobs
from skillup.reports.page.run_data import RunData
from skillup.schema.grade import BASELINE
from skillup.store import RunDirectory
from skillup.store.regular import open_regular
from skillup.store.run_directory import RESULT_FILE
from skillup.store.writer import writer_of

_HEAD = 256 * 1024
_CASES = b'\n  "cases": '

DAMAGED: Mapping[str, Any] = {
    "started_at": None,
    "status": "damaged",
    "suites": [],
    "engines": [],
    "planned": 0,
    "done": 0,
    "counts": {"PASS": 0, "FAIL": 0, "ERROR": 0, "SKIP": 0},
    "pass_rate": None,
    "duration_ms": None,
    "cost_usd": None,
}
"""What is said of a run that cannot be read, beside its name and the problem."""


def in_short(path: Path) -> dict[str, Any] | None:
    """The run in `path`; None: it goes on, or was cut short, and more has to be read.

    Raises RunDirectoryError if it is no run, or `run.json` is damaged.
    """
    info = RunDirectory.open(path).run_info()
    result = _head_of_result(path) if writer_of(path) is None else None
    if result is None:
        return None
    summary = result["summary"]
    names = {"PASS": "pass", "FAIL": "fail", "ERROR": "error", "SKIP": "skip"}
    return {
        "run_id": str(info.get("run_id") or path.name),
        "started_at": _text_or_none(info.get("started_at")),
        "status": "finished" if result.get("finished") is True else "unfinished",
        "problem": None,
        "suites": _names(info.get("suites")),
        "engines": _names(info.get("profiles")),
        "planned": len(planned_jobs(info)),
        # Verdicts are those with the skill; how far the run is, all trials say.
        "done": (summary.get("total") or 0) + ((summary.get("baseline") or {}).get("total") or 0),
        "counts": {status: summary.get(name) or 0 for status, name in names.items()},
        "pass_rate": summary.get("pass_rate"),
        "duration_ms": summary.get("duration_ms"),
        "cost_usd": summary.get("cost_usd"),
    }


def of_data(data: RunData) -> dict[str, Any]:
    """The same of a run that has been read."""
    head, summary = data.head(), data.summary()
    done = sum(row["status"] in DAMAGED["counts"] for row in data.rows)
    statuses = [row["status"] for row in data.rows if row["variant"] != BASELINE]
    counts = {status: statuses.count(status) for status in DAMAGED["counts"]}
    verdicts = counts["PASS"] + counts["FAIL"]
    status = "finished" if head["finished"] else "unfinished"
    return {
        "run_id": data.run_id,
        "started_at": data.started_at or None,
        "status": "running" if data.running else status,
        "problem": None,
        "suites": head["suites"],
        "engines": [engine["profile"] for engine in head["engines"]],
        "planned": len(data.rows),
        "done": done,
        "counts": counts,
        "pass_rate": round(counts["PASS"] / verdicts, 6) if verdicts else None,
        "duration_ms": summary.get("duration_ms"),
        "cost_usd": summary.get("cost_usd"),
    }


def _text_or_none(value: Any) -> str | None:
    """Runs are sorted by when they began: a damaged one must not stand out by its type."""
    return value if isinstance(value, str) else None


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, dict) else []


def _head_of_result(run: Path) -> dict[str, Any] | None:
    """`result.json` up to its grades, which are nearly all of it; None if there is no such file.

    A line break does not stand within a JSON text: what is cut off there is whole.
    """
    try:
        with open_regular(run / RESULT_FILE) as file:
            head = file.read(_HEAD)
        before, found, _ = head.partition(_CASES)
        value = json.loads(before.rstrip().removesuffix(b",") + b"}") if found else None
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("summary"), dict) else None
