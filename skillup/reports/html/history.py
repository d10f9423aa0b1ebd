"""How the run's cases fared before, from the index of past runs, where there is one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from skillup.errors import IndexTroubleError, RunDirectoryError
from skillup.reports.html.page_data import CaseHistory

_RUNS = 20
"""The newest so many of each suite, this one included."""


def index_url_of(run: Path, index: str | None) -> str:
    """The index that knows the run, as ``--index``: by default that of its own workspace."""
    from skillup.history.index import index_url
    from skillup.history.runs import workspace_of

    return index_url(index, os.environ, workspace_of(run), write=False)


def history_data(run: Path, index: str | None) -> list[CaseHistory] | None:
    """The runs up to this one, for each of its cases; None: there is no index that can be read.

    `index`: the URL or file that was named; None: `SKILLUP_INDEX`, else the one beside the runs.
    """
    url = index_url_of(run, index)
    if not url or ("://" not in url and not Path(url).is_file()):
        return None
    try:
        return _read(run, url)
    except (IndexTroubleError, RunDirectoryError):
        return None


def _read(run: Path, url: str) -> list[CaseHistory]:
    from skillup.history.index import CaseInRun, RunHead, open_index, tallies_of_all_runs
    from skillup.history.runs import by_case, read_run
    from skillup.history.series import SeriesFilter, histories

    outcomes = read_run(run)
    head = RunHead(outcomes.run_id, outcomes.started_at)
    own = [CaseInRun(head, key, tally) for key, tally in by_case(outcomes.trials).items()]
    keys = {row.key for row in own}
    with open_index(url, write=False) as connection:
        indexed = tallies_of_all_runs(connection, sorted({key.suite for key in keys}))
    here = (head.started_at, head.run_id)
    before = [
        row for row in indexed if row.key in keys and (row.run.started_at, row.run.run_id) < here
    ]
    return [
        _case(suite.runs, case)
        for suite in histories([*before, *own], SeriesFilter(), _RUNS)
        for case in suite.cases
    ]


def _case(runs: Sequence[Any], case: Any) -> CaseHistory:
    failing = case.failing
    fell = case.fell
    since = None
    if failing is not None:
        since = {**_head(failing.first), "runs": failing.runs}
    elif fell is not None:
        since = {
            **_head(fell.first),
            "runs": fell.runs,
            "before": list(fell.before),
            "since": list(fell.since),
        }
    marks = [
        {
            **_head(run),
            "passed": tally.passed,
            "held": tally.judged,
            "error": tally.errors,
            "score": tally.score,
        }
        for run, tally in zip(runs, case.tallies, strict=True)
        if tally.state != "absent"
    ]
    found = {**case.key._asdict(), "marks": marks, "failing_since": since}
    return cast("CaseHistory", found)


def _head(run: Any) -> Mapping[str, str]:
    return {"run_id": run.run_id, "started_at": run.started_at}
