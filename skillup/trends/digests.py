"""Which cases were edited between two runs: `run.json` has a digest of each as it was held."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skillup.trends.outcomes import RunOutcomes
from skillup.trends.planned import planned_key


def digests_of(info: Mapping[str, Any], known: Collection[str]) -> dict[tuple[str, str], str]:
    """By suite and case, from a `run.json`; `known`: the suites of the run's grades.

    A case that was held in two forms, as by `--resume`, has none; nor has any of an older version.
    """
    digests = info.get("case_digests")
    if not isinstance(digests, dict):
        return {}
    suites = info.get("suites") or {}
    found = {}
    for label, digest in digests.items():
        if isinstance(digest, str):
            key, _ = planned_key(f"{label}///1", suites, known)
            found[key.suite, key.case_id] = digest
    return found


def edited_cases(a: RunOutcomes, b: RunOutcomes) -> list[tuple[str, str]]:
    """Suite and id of cases that both runs planned, and that were not the same in them."""
    before = {(trial.key.suite, trial.key.case_id) for trial in a.trials}
    cases = dict.fromkeys((trial.key.suite, trial.key.case_id) for trial in b.trials)
    return [
        case
        for case in cases
        if case in before
        and case in a.digests
        and case in b.digests
        and a.digests[case] != b.digests[case]
    ]
