"""What a run had planned, from `run.json`: every job, in order, and which case it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skillup.trends.outcomes import CaseKey
from skillup.trends.planned import planned_key


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
        key, trial = planned_key(job, suites, known={*suites})
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
