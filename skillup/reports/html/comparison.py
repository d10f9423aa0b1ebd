"""Two runs side by side: what became of each case, and which conversations to put together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from skillup.history.comparison import CaseChange, Comparison
from skillup.history.gates import gates_by_suite
from skillup.history.runs import CaseKey, CaseTally, read_run
from skillup.reports.comparison import averages, changed_cases, how_sure, statements
from skillup.reports.html.history import index_url_of
from skillup.reports.html.page_data import Row, Side, SideRow, Sides, Status
from skillup.reports.html.run_data import RunData
from skillup.store.files import read_regular
from skillup.store.places import directory_of_job

_CHECKS = ("assertions", "post_condition", "expected_output")
_CASE_WORDS = {
    "assertions": "checks of the whole conversation",
    "scripted": "script",
    "trials": "number of trials",
}
_CHANGES = {
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
_STATUS: dict[str, Status] = {
    "pass": "PASS",
    "fail": "FAIL",
    "mixed": "FAIL",
    "error": "ERROR",
    "skip": "SKIP",
    "not_held": "NOT_HELD",
}


def sides_of(a: RunData, b: RunData, *, shift: int, index: str | None = None) -> dict[str, Any]:
    """Run A, the earlier one, beside B, whose page it is; A's trial 1 is called `shift` + 1.

    They are compared as by `skillup compare`, with the same `index` and the gates that B recorded.
    Raises RunDirectoryError if one of them holds nothing that can be compared.
    """
    from skillup.history.baseline import compare_with_index

    earlier, later = read_run(a.path), read_run(b.path)
    gates = gates_by_suite(later, {})
    compared = compare_with_index(earlier, later, gates, index_url_of(b.path, index))
    rows_a, rows_b = _by_case(a.rows), _by_case(b.rows)
    rows: list[SideRow] = []
    for change in compared.cases:
        of_a, of_b = rows_a.get(change.key, []), rows_b.get(change.key, [])
        row_a, row_b = _most_telling(of_a, of_b), _most_telling(of_b, of_a)
        edits: list[str] = []
        if row_a is not None and row_b is not None:
            edits = case_changes(a.path, row_a["job"], b.path, row_b["job"])
        # A verdict that another run stands in with is not that of any trial of A.
        shown_a = None if change.key in compared.earlier else row_a
        row = {
            **change.key._asdict(),
            "a": _side(change.a, shown_a, shift),
            "b": _side(change.b, row_b, 0),
            "change": _change(change),
            "case_changes": edits,
            "sure": change.sure,
            "how_sure": how_sure(compared, change),
        }
        rows.append(cast("SideRow", row))
    rows.sort(key=lambda row: _ORDER.index(row["change"]))
    edited = list(dict.fromkeys(row["case_id"] for row in rows if row["case_changes"]))
    news = ["; ".join(_news(compared))] if compared.verdicts.cases else []
    sides: Sides = {
        "a": {"run_id": a.run_id, "started_at": a.started_at, "path": str(a.path)},
        "b": {"run_id": b.run_id, "started_at": b.started_at, "path": str(b.path)},
        # As in a gate, over cases with the skill.
        "summary": [*news, *statements(compared), *averages(compared)],
        "rows": rows,
        "notes": [*compared.notes, *filter(None, [changed_cases(edited, "changed")])],
        "details_of_a": True,
    }
    return dict(sides)


def trials_of_a(sides: dict[str, Any], *, same: bool) -> list[int]:
    """A's trials, as numbers of the page of both, of cases that are the same as before, or not.

    Of those that are the same only those that B has, too.
    """
    rows = [row for row in sides["rows"] if (row["change"] == "same") == same]
    shown = [row["a"] for row in rows if not same or row["b"] is not None]
    return [side["n"] for side in shown if side is not None and side["n"] is not None]


def _news(compared: Comparison) -> Iterator[str]:
    failing, passing = (
        [case for case in compared.counted if case.change == change]
        for change in ("newly_failing", "newly_passing")
    )
    skill = " with the skill" if len(compared.counted) < len(compared.cases) else ""
    noun = "case is" if len(failing) == 1 else "cases are"
    yield f"{len(failing) or 'no'} {noun} newly failing{skill}{_surely(failing)}"
    if passing:
        are = "is" if len(passing) == 1 else "are"
        yield f"{len(passing)} {are} newly passing{_surely(passing)}"


def _surely(cases: Sequence[CaseChange]) -> str:
    """Of cases that ran once in each run, nothing: there is nothing to be sure of."""
    sure = sum(case.sure for case in cases)
    if all(case.p is None for case in cases):
        return ""
    if len(cases) == 1:
        return ", surely" if sure else ", but not surely"
    return f", {sure or 'none'} of them surely"


def _change(change: CaseChange) -> str:
    word = _CHANGES[change.change]
    if word == "not_run" and change.a.state == change.b.state:
        return "same"
    if word == "same" and change.a.score != change.b.score:
        return "changed"
    return word


def _by_case(rows: Iterable[Row]) -> dict[CaseKey, list[Row]]:
    found: dict[CaseKey, list[Row]] = {}
    for row in rows:
        if row["status"] not in ("NOT_HELD", "NOT_NEEDED", "RUNNING", "WAITING"):
            key = CaseKey(row["suite"], row["case_id"], row["engine"], row["variant"])
            found.setdefault(key, []).append(row)
    return found


def _most_telling(own: Sequence[Row], other: Sequence[Row]) -> Row | None:
    """Of several trials the one to look at: the first that did not pass, where any did not."""
    tests: tuple[Callable[[Row], bool], ...] = (
        lambda row: row["status"] == "FAIL",
        lambda row: row["status"] == "ERROR",
        # Else the same repetition as the other side's, so that like is beside like.
        lambda row: any(row["trial"] == o["trial"] and o["status"] != "PASS" for o in other),
        lambda _: True,
    )
    return next((row for test in tests for row in own if test(row)), None)


def _side(tally: CaseTally, row: Row | None, shift: int) -> Side | None:
    if tally.state == "absent":
        return None
    return {
        "status": _STATUS[tally.state],
        "score": tally.score,
        "passed": tally.passed,
        "held": tally.judged,
        "reason": tally.reason,
        "n": None if row is None else row["n"] + shift,
    }


# What of a case was changed between two runs: the records of both have it as it was run.


def case_changes(a: Path, job_a: str, b: Path, job_b: str) -> list[str]:
    """``["messages", "checks of turn 2", "context"]``; empty if it is the same, or not known.

    `a` and `b` are run directories, the jobs trials with a record in each.
    """
    before, now = _case(a, job_a), _case(b, job_b)
    if before is None or now is None or before == now:
        return []
    return list(dict.fromkeys(_differences(before, now)))


def _case(run: Path, job: str) -> dict[str, Any] | None:
    path = run / "trials" / directory_of_job(job) / "record.json"
    try:
        status = path.stat()
        return _read(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def _read(path: Path, _changed: int, _size: int) -> dict[str, Any] | None:
    record = json.loads(read_regular(path))
    case = record.get("case") if isinstance(record, dict) else None
    return case if isinstance(case, dict) else None


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if name in ("id", "suite_root") or old == new:
            continue
        if name != "input" or not isinstance(old, dict) or not isinstance(new, dict):
            yield _CASE_WORDS.get(name, name)
            continue
        turns, later = _turns(old), _turns(new)
        if [_message(turn) for turn in turns] != [_message(turn) for turn in later]:
            yield "messages"
        else:
            pairs = enumerate(zip(turns, later, strict=True), start=1)
            yield from (f"checks of turn {number}" for number, (x, y) in pairs if x != y)
        for field in dict.fromkeys([*old, *new]):
            if field not in ("turns", "prompt") and old.get(field) != new.get(field):
                yield field


def _turns(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    turns = given.get("turns")
    if not isinstance(turns, list):
        turns = [given.get("prompt")]
    return [turn if isinstance(turn, dict) else {"content": turn} for turn in turns]


def _message(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name not in _CHECKS}
