"""Jobs by their ids: which case, engine and variant a trial that was not held would have been."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skillup.trends.outcomes import CaseKey


def planned_key(
    job_id: str, suites: Mapping[str, Any], known: Collection[str]
) -> tuple[CaseKey, int]:
    """A job id (`CASE/PROFILE/VARIANT/N`) as the key of its grade, and the trial's number.

    `suites` is that of `run.json`: it names the suite of each case, and its id where the job has
    another name for it. A run of a version that did not: the suite is the one of the run's grades
    (`known`), if there is one only.
    """
    label, engine, variant, trial = [*job_id.rsplit("/", maxsplit=3), "", "", ""][:4]
    number = int(trial) if trial.isdecimal() else 1
    for name, about in suites.items():
        case_id = (about.get("cases") or {}).get(label)
        if case_id is not None:
            return CaseKey(name, str(case_id), engine, variant), number
    suite = next(iter(known)) if len(known) == 1 else ""
    return CaseKey(suite, label, engine, variant), number
