"""What a run had planned, from `run.json`, and how far it has come, from its journal."""

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
    """The job in whose name the shared turns ran."""
    after_turn: int


@dataclass(slots=True)
class Progress:
    """What the journal says."""

    started: set[str] = field(default_factory=set)
    """Jobs that began since the run was last opened, and are not over."""
    since: dict[str, str] = field(default_factory=dict)
    """When each job began last."""
    ever_started: set[str] = field(default_factory=set)
    forks: dict[str, Fork] = field(default_factory=dict)
    decided: dict[CaseKey, dict[str, Any]] = field(default_factory=dict)
    """What `--until-decided` came to so far: ``{verdict, threshold, error_rate, trials}``."""
    ended: bool = False
    """The last event is that the result was written."""
    first_time: str | None = None
    last_time: str | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        """An event that is not as it should be is passed over."""
        kind, job, time = event.get("event"), event.get("job"), event.get("time")
        if isinstance(time, str):
            self.first_time = self.first_time or time
            self.last_time = time
        if kind in ("run_created", "run_reopened", "result_written"):
            self.started.clear()
            self.ended = kind == "result_written"
        elif kind == "case_decided":
            key = CaseKey(*(str(event.get(n)) for n in ("suite", "case", "engine", "variant")))
            self.decided[key] = {name: event.get(name) for name in _DECISION}
        elif not isinstance(job, str):
            return
        elif kind in ("trial_started", "trial_continued"):
            self.started.add(job)
            self.ever_started.add(job)
            if isinstance(time, str):
                self.since[job] = time
        elif kind in ("trial_finished", "trial_left"):
            self.started.discard(job)
        elif kind == "trial_retried":
            self.forks.pop(job, None)
        elif kind == "trial_forked":
            parent, after = event.get("parent"), event.get("after_turn")
            if isinstance(parent, str) and isinstance(after, int) and parent != job:
                self.forks[job] = Fork(parent, after)


def progress_of(events: Iterable[Mapping[str, Any]]) -> Progress:
    """Read the journal."""
    found = Progress()
    for event in events:
        found.add(event)
    return found


def turn_under_way(raw: Path) -> int | None:
    """The turn that a running trial is at, by the raw streams that there are; None: none yet."""
    try:
        names = [entry.name for entry in raw.iterdir()]
    except OSError:
        return None
    return max((int(match[1]) for name in names if (match := _TURN.match(name))), default=None)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A trial, whether it ran or not."""

    n: int
    """Its place in the plan, from 1: what the page calls it."""
    id: str
    key: CaseKey
    """Its suite is empty where `run.json` does not say."""
    trial: int
    title: str | None = None
    tags: tuple[str, ...] = ()


def planned_jobs(info: Mapping[str, Any], more: Iterable[str] = ()) -> list[PlannedJob]:
    """The jobs of `info` (`run.json`); then those of `more`, the ids of other known jobs.

    What is missing in `info`, or is not as it should be, is left out.
    """
    listed, about = info.get("jobs"), info.get("suites")
    ids = [job for job in listed if isinstance(job, str)] if isinstance(listed, list) else []
    suites = {
        name: suite
        for name, suite in (about.items() if isinstance(about, dict) else ())
        if isinstance(suite, dict) and isinstance(suite.get("cases") or {}, dict)
    }

    def of_case(key: CaseKey, field: str) -> Any:
        values = suites.get(key.suite, {}).get(field)
        return values.get(key.case_id) if isinstance(values, dict) else None

    found = []
    for n, job in enumerate(dict.fromkeys([*ids, *more]), start=1):
        key, trial = planned_key(job, suites)
        title, tags = of_case(key, "titles"), of_case(key, "tags")
        texts = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
        found.append(
            PlannedJob(n, job, key, trial, title if isinstance(title, str) else None, texts)
        )
    return found
