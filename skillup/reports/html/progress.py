"""How far a run has come, from its journal: what was started, is over, or went on from a fork."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.history.runs import CaseKey, planned_key

_DECISION = ("verdict", "threshold", "error_rate", "trials")
_TURN = re.compile(r"turn-(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a trial left the turns that it shares."""

    parent: str
    """The job in whose name the shared turns were held."""
    after_turn: int


@dataclass(slots=True)
class Progress:
    """What the journal says."""

    started: set[str] = field(default_factory=set)
    """Jobs that were begun since the run was last opened, and are not over."""
    since: dict[str, str] = field(default_factory=dict)
    """When each job was begun last."""
    ever_started: set[str] = field(default_factory=set)
    forks: dict[str, Fork] = field(default_factory=dict)
    decided: dict[CaseKey, dict[str, Any]] = field(default_factory=dict)
    """What `--until-decided` came to so far: ``{verdict, threshold, error_rate, trials}``."""
    ended: bool = False
    """The last thing that was written is the result."""
    first_time: str | None = None
    last_time: str | None = None


def progress_of(events: Iterable[Mapping[str, Any]]) -> Progress:
    """Read the journal; events that are not as they should be are passed over."""
    found = Progress()
    for event in events:
        kind, job = event.get("event"), event.get("job")
        time = event.get("time")
        if isinstance(time, str):
            found.first_time = found.first_time or time
            found.last_time = time
        if kind in ("run_created", "run_reopened"):
            found.started.clear()
            found.ended = False
        elif kind == "case_decided":
            key = CaseKey(*(str(event.get(n)) for n in ("suite", "case", "engine", "variant")))
            found.decided[key] = {name: event.get(name) for name in _DECISION}
        elif kind == "result_written":
            found.ended = True
            found.started.clear()
        elif isinstance(job, str):
            _of_a_job(found, kind, job, event)
    return found


def _of_a_job(found: Progress, kind: Any, job: str, event: Mapping[str, Any]) -> None:
    if kind in ("trial_started", "trial_continued"):
        found.started.add(job)
        if isinstance(event.get("time"), str):
            found.since[job] = event["time"]
        found.ever_started.add(job)
    elif kind in ("trial_finished", "trial_left"):
        found.started.discard(job)
    elif kind == "trial_retried":
        # Held again by itself, or together: then it is forked anew.
        found.forks.pop(job, None)
    elif kind == "trial_forked":
        parent, after = event.get("parent"), event.get("after_turn")
        if isinstance(parent, str) and isinstance(after, int) and parent != job:
            found.forks[job] = Fork(parent, after)


def turn_under_way(raw: Path) -> int | None:
    """The turn that a running trial is at, by the raw streams that there are; None: none yet."""
    try:
        names = [entry.name for entry in raw.iterdir()]
    except OSError:
        return None
    numbers = [int(match[1]) for name in names if (match := _TURN.match(name))]
    return max(numbers, default=None)


# What a run had planned, from `run.json`: every job, in order, and which case it is.


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A trial, held or not."""

    n: int
    """Its place in the plan, from 1: what the page calls it."""
    id: str
    key: CaseKey
    """Its suite is empty where `run.json` does not say."""
    trial: int
    title: str | None = None
    """As `run.json` has it; one of an older version has none."""
    tags: tuple[str, ...] = ()
    """As the title."""


def planned_jobs(info: Mapping[str, Any], more: Iterable[str] = ()) -> list[PlannedJob]:
    """The jobs of `info` (`run.json`); then those of `more`, the ids of other known jobs.

    What is missing in `info`, or is not as it should be, is left out.
    """
    listed = info.get("jobs")
    ids = [job for job in listed if isinstance(job, str)] if isinstance(listed, list) else []
    suites = _suites(info.get("suites"))
    found = []
    for n, job in enumerate(dict.fromkeys([*ids, *more]), start=1):
        key, trial = planned_key(job, suites)
        found.append(PlannedJob(n, job, key, trial, _title(suites, key), _tags(suites, key)))
    return found


def _title(suites: Mapping[str, Any], key: CaseKey) -> str | None:
    titles = suites.get(key.suite, {}).get("titles")
    title = titles.get(key.case_id) if isinstance(titles, dict) else None
    return title if isinstance(title, str) else None


def _tags(suites: Mapping[str, Any], key: CaseKey) -> tuple[str, ...]:
    tags = suites.get(key.suite, {}).get("tags")
    found = tags.get(key.case_id) if isinstance(tags, dict) else None
    return tuple(tag for tag in found if isinstance(tag, str)) if isinstance(found, list) else ()


def _suites(suites: Any) -> dict[str, Any]:
    """Those that are as they should be."""
    if not isinstance(suites, dict):
        return {}
    return {
        name: about
        for name, about in suites.items()
        if isinstance(about, dict) and isinstance(about.get("cases") or {}, dict)
    }
