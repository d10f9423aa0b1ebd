"""A run beside others: trends of its cases, and another run's conversations next to its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from skillup.errors import IndexTroubleError, RunDirectoryError
from skillup.history.comparison import CaseChange, Change, gates_by_suite
from skillup.history.index import all_runs, compare_with_index, index_url
from skillup.history.runs import CaseKey, CaseTally, RunOutcomes, read_run, workspace_of
from skillup.history.series import CaseHistory, SeriesFilter, histories
from skillup.reports.comparison import changed_cases, how_sure, news, statements
from skillup.reports.html import page_data
from skillup.reports.html.page_data import PageRow, SideRow
from skillup.reports.html.run_data import RunData

# How the run's cases fared before, from the index of past runs, where there is one.

_RUNS = 20  # The newest so many of each suite, this one included


def _index_url_of(run: Path, index: str | None) -> str:
    """The index that knows the run, as ``--index``: by default that of its own workspace."""
    return index_url(index, os.environ, workspace_of(run), write=False)


def history_data(run: Path, index: str | None) -> list[page_data.PageCaseHistory] | None:
    """The runs up to this one, for each of its cases; None: there is no index that can be read."""
    url = _index_url_of(run, index)
    if not url or ("://" not in url and not Path(url).is_file()):
        return None
    try:
        outcomes = read_run(run)
        keys = {trial.key for trial in outcomes.trials}
        indexed = all_runs(url)
    except (IndexTroubleError, RunDirectoryError):
        return None
    here = (outcomes.started_at, outcomes.run_id)
    before = [
        replace(run, trials=tuple(trial for trial in run.trials if trial.key in keys))
        for run in indexed
        if (run.started_at, run.run_id) < here
    ]
    return [
        _case_history(suite.runs, case)
        for suite in histories([*before, outcomes], SeriesFilter(), _RUNS)
        for case in suite.cases
    ]


def _case_history(runs: Sequence[RunOutcomes], case: CaseHistory) -> page_data.PageCaseHistory:
    def head(run: RunOutcomes) -> dict[str, str]:
        return {"run_id": run.run_id, "started_at": run.started_at}

    since: dict[str, Any] | None = None
    if case.fell is not None:
        since = {**head(case.fell.first), "runs": case.fell.runs}
        since |= {"before": case.fell.fall.before, "since": case.fell.fall.since}
    elif case.failing is not None:
        since = {**head(case.failing.first), "runs": case.failing.runs}
    marks = [
        {
            **head(run),
            "passed": tally.passed,
            "judged": tally.judged,
            "error": tally.errors,
            "score": tally.score,
        }
        for run, tally in zip(runs, case.tallies, strict=True)
        if tally.state != "absent"
    ]
    found = {**case.key._asdict(), "marks": marks, "failing_since": since}
    return cast("page_data.PageCaseHistory", found)


# Two runs side by side: what became of each case, and which conversations to put together.

_CHANGES: dict[Change, page_data.Change] = {
    "newly_failing": "newly_failing",
    "newly_passing": "newly_passing",
    "unsure": "changed",
    "still_failing": "same",
    "still_passing": "same",
    "skipped": "not_run",
    "not_run": "not_run",
    "only_in_a": "only_a",
    "only_in_b": "only_b",
}
_ORDER = ("newly_failing", "newly_passing", "changed", "not_run", "only_a", "only_b", "same")
_STATUS: dict[str, page_data.Status] = {
    "pass": "PASS",
    "fail": "FAIL",
    "mixed": "FAIL",
    "error": "ERROR",
    "skip": "SKIP",
    "not_started": "NOT_RUN",
}


def sides_of(a: RunData, b: RunData, *, shift: int, index: str | None = None) -> dict[str, Any]:
    """Run A, the earlier one, beside B, whose page it is; A's trial 1 is called `shift` + 1.

    They are compared as by `skillup compare`, with the same `index` and the gates that B recorded.
    Raises RunDirectoryError if one of them holds nothing that can be compared.
    """
    earlier, later = read_run(a.path), read_run(b.path)
    gates = gates_by_suite(later, {})
    compared = compare_with_index(earlier, later, gates, _index_url_of(b.path, index))
    rows_a, rows_b = _by_case(a.rows), _by_case(b.rows)
    rows: list[SideRow] = []
    for change in compared.cases:
        of_a, of_b = rows_a.get(change.key, []), rows_b.get(change.key, [])
        row_a, row_b = _representative(of_a, of_b), _representative(of_b, of_a)
        digests = [run.digests.get(change.key[:2]) for run in (earlier, later)]
        # A verdict that another run stands in with is not that of any trial of A.
        shown_a = None if change.key in compared.earlier else row_a
        row = {
            **change.key._asdict(),
            "a": _side(change.a, shown_a, shift),
            "b": _side(change.b, row_b, 0),
            "change": _change(change),
            "case_changed": None not in digests and digests[0] != digests[1],
            "sure": change.sure,
            "how_sure": how_sure(change),
        }
        rows.append(cast("SideRow", row))
    rows.sort(key=lambda row: _ORDER.index(row["change"]))
    edited = list(dict.fromkeys(row["case_id"] for row in rows if row["case_changed"]))
    first = ["; ".join(news(compared))] if compared.verdicts.cases else []
    sides: page_data.Sides = {
        "a": {"run_id": a.run_id, "started_at": a.started_at, "path": str(a.path)},
        "b": {"run_id": b.run_id, "started_at": b.started_at, "path": str(b.path)},
        # As in a gate, over cases with the skill.
        "summary": [*first, *statements(compared)],
        "rows": rows,
        "notes": [*compared.notes, *filter(None, [changed_cases(edited)])],
        "details_of_a": True,
    }
    return dict(sides)


def _change(change: CaseChange) -> page_data.Change:
    word = _CHANGES[change.change]
    if word == "not_run" and change.a.state == change.b.state:
        return "same"
    if word == "same" and change.a.score != change.b.score:
        return "changed"
    return word


def _by_case(rows: Sequence[PageRow]) -> dict[CaseKey, list[PageRow]]:
    found: dict[CaseKey, list[PageRow]] = {}
    for row in rows:
        if row["status"] not in ("NOT_RUN", "NOT_NEEDED", "RUNNING", "WAITING"):
            key = CaseKey(row["suite"], row["case_id"], row["engine"], row["variant"])
            found.setdefault(key, []).append(row)
    return found


def _representative(own: Sequence[PageRow], other: Sequence[PageRow]) -> PageRow | None:
    """Of several trials the one to look at: the first that did not pass, where any did not."""
    tests: tuple[Callable[[PageRow], bool], ...] = (
        lambda row: row["status"] == "FAIL",
        lambda row: row["status"] == "ERROR",
        # Else the same repetition as the other side's, so that like is beside like.
        lambda row: any(row["trial"] == o["trial"] and o["status"] != "PASS" for o in other),
        lambda _: True,
    )
    return next((row for test in tests for row in own if test(row)), None)


def _side(tally: CaseTally, row: PageRow | None, shift: int) -> page_data.Side | None:
    if tally.state == "absent":
        return None
    return {
        "status": _STATUS[tally.state],
        "score": tally.score,
        "passed": tally.passed,
        "judged": tally.judged,
        "reason": tally.reason,
        "n": None if row is None else row["n"] + shift,
    }
