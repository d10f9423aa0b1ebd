"""Reports of any size, made without holding a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

from skillup.judges import grade_record
from skillup.reports.html.build import packed, page_html
from skillup.reports.html.detail import ORDINARY, detail_of
from skillup.reports.html.run_data import graded_row, planned_rows
from skillup.reports.html.run_files import RawFiles
from skillup.schema.record import TranscriptItem, TurnRecord
from tests.browser.pages import address_of
from tests.support.pages import Page
from tests.support.records import call, make_record, make_turn, read_file

WORDS = "The library is open until six and the list of loans lies on the desk. " * 12


def written(path: Path, page: Page, title: str = "made") -> str:
    """The address of a report with this data."""
    details = {n: packed(detail) for n, detail in page.details.items()}
    path.write_bytes(page_html(page.index, details, title=title))
    return address_of(path)


def _turn(number: int) -> TurnRecord:
    """With a call, a long result and an answer."""
    command = call("shell", "shell", command="cat loans.csv")
    answer, question = f"Answer {number}. {WORDS}", f"Question {number}?"
    turn = make_turn(answer, content=question, calls=[command], results=[WORDS * 4])
    message = TranscriptItem(type="message", text=answer)
    return turn.model_copy(update={"transcript": [*turn.transcript, message]})


def _conversation(turns: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of so many turns, each with a check, as a row and as it is read."""
    numbers = range(1, turns + 1)
    given = [{"content": f"Question {n}?", "assertions": [{"contains": "open"}]} for n in numbers]
    case = {"id": "case", "input": {"turns": given}}
    record = make_record(*map(_turn, numbers), case=case, suite="large").record
    grade = grade_record(record, read_file)
    (planned,) = planned_rows({"jobs": ["case/scripted/with_skill/1"]})
    raw = RawFiles(lambda _: {})
    detail = detail_of(1, planned["job"], record, grade, limits=ORDINARY, raw=raw)
    return {**graded_row(planned, grade, None), "tokens": 5000}, detail


def made(
    cases: int,
    turns: int = 5,
    *,
    trials: int = 1,
    engines: Mapping[str, float | None] | None = None,
    user_costs: Iterable[float | None] = (),
    **more: Any,
) -> Page:
    """So many cases, on each of `engines`, whose trials cost so much; `more` goes into the index.

    Every tenth failed; of cases with several trials the 1st always, the 2nd at times, the 3rd at
    its end. `user_costs`: of simulated users of the first trials.
    """
    template, conversation = _conversation(turns)
    rows: list[dict[str, Any]] = []
    details: dict[int, dict[str, Any]] = {}
    costs = (engines or {"scripted": 0.01}).items()
    for case, trial, (engine, cost) in product(range(cases), range(trials), costs):
        number, n = case + 1, len(rows) + 1
        at_end = trials > 1 and number == 3
        failed = number % 10 == 0
        if trials > 1:
            failed = at_end or number == 1 or (number == 2 and trial % 2 == 1)
        verdict: dict[str, Any] = {"status": "PASS", "score": 1.0, "reason": "all checks passed"}
        if failed:
            reason = "a check of it all" if at_end else "turn 5: not found"
            verdict = {"status": "FAIL", "score": 0.8, "reason": reason}
        named = {"n": n, "job": f"case-{number}/{engine}/with_skill/{trial + 1}", "engine": engine}
        named |= {"case_id": f"case-{number}", "title": f"Asks for book number {number}"}
        named["trial"] = trial + 1
        row = {**template, **named, **verdict, "end": False if at_end else None, "cost_usd": cost}
        row["tags"] = ["odd" if number % 2 else "even"]
        row["flaky"] = trials > 1 and number == 2
        row["turns"] = [dict(turn) for turn in template["turns"]]
        row["turns"][-1]["ok"] = not failed or at_end
        rows.append(row)
        own = deepcopy(conversation)
        details[n] = {**own, **named, "grade": {**own["grade"], **verdict}}
    for row, cost in zip(rows, user_costs, strict=False):
        row["simulator"] = {"messages": 2, "cost_usd": cost, "tokens": None, "models": []}
    index: dict[str, Any] = {
        "schema": "skillup.page/1", "mode": "report",
        "run": {"run_id": "large", "started_at": "2026-01-01T00:00:00Z", "finished": True,
                "running": False, "stopped": None, "path": "", "engines": [], "suites": ["large"]},
        "summary": {"cost_usd": 1.0, "usage": {}, "duration_ms": 1000, "judging": None},
        "analysis": None, "rows": rows, "not_run": [], "not_needed": [], "history": None,
        "sides": None, "compared": [], "warnings": [], **more,
    }  # fmt: skip
    return Page(index, details)
