"""Reports of any size, made without holding a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skillup.reports.html.build import packed, page_html

WORDS = "The library is open until six and the list of loans lies on the desk. " * 12


def row(n: int, turns: int) -> dict[str, Any]:
    """A line of the table; every tenth failed."""
    failed = n % 10 == 0
    return {
        "n": n, "job": f"case-{n}/scripted/with_skill/1", "suite": "large", "case_id": f"case-{n}",
        "title": f"Asks for book number {n}", "tags": ["even" if n % 2 == 0 else "odd"],
        "engine": "scripted", "variant": "with_skill", "trial": 1,
        "status": "FAIL" if failed else "PASS", "score": 0.8 if failed else 1.0,
        "reason": "turn 5: not found" if failed else "all checks passed",
        "turns": [{"status": "completed", "ok": not (failed and at == turns)}
                  for at in range(1, turns + 1)],
        "duration_ms": 1000 + n, "cost_usd": 0.01, "tokens": 5000, "error_kind": None,
        "branch_of": None, "flaky": False,
    }  # fmt: skip


def turn(number: int) -> dict[str, Any]:
    """A turn with a call, a long result and a check."""
    answer = f"Answer {number}. {WORDS}"
    check = {
        "name": "contains \"open\"", "kind": "contains", "role": "assertion", "passed": True,
        "score": 1.0, "weight": 1.0, "required": False, "assertable": True,
        "scope": f"turn {number}", "expected": "open", "found": "open", "excerpt": "",
        "error": None, "notes": [], "votes": None, "agreement": None, "children": [],
        "evidence": {"turn": number, "follow_up": None, "in": "response", "item": None,
                     "part": None, "argument": None, "start": 0, "end": 6},
    }  # fmt: skip
    call = {
        "type": "tool", "id": f"call-{number}", "name": "shell", "kind": "shell", "agent": None,
        "arguments": {"command": "cat loans.csv"},
        "result": {"status": "success", "content": WORDS * 4},
    }  # fmt: skip
    return {
        "turn_number": number, "follow_up": None, "status": "completed", "reason": "",
        "source": "case", "content": f"Question {number}?",
        "content_parts": [{"text": f"Question {number}?", "variable": None}],
        "response": answer, "model": "scripted", "started_at": None, "duration_ms": 200,
        "cost_usd": 0.002, "usage": {"input_tokens": 900, "output_tokens": 100},
        "session_id": None, "session_verified": True, "counted_by": None,
        "items": [call, {"type": "message", "text": answer, "agent": None}], "captures": [],
        "changes": None, "checks": [check], "post_condition_passed": None, "error": None,
        "notes": [], "follow_ups": [], "raw": [], "score": 1.0, "passed_on": None,
    }  # fmt: skip


def detail(n: int, turns: int) -> dict[str, Any]:
    """A conversation."""
    line = row(n, turns)
    grade = {key: line[key] for key in ("status", "score", "reason", "cost_usd", "duration_ms")}
    return {
        "n": n, "job": line["job"], "grade": {**grade, "warnings": [], "usage": None},
        "title": line["title"], "case_id": line["case_id"], "suite": "large",
        "engine": {"profile": "scripted", "adapter": "scripted"}, "variant": "with_skill",
        "trial": 1, "attempt": 1, "session_id": None, "started_at": None, "system": None,
        "history": [], "turns": [turn(at) for at in range(1, turns + 1)],
        "conversation_checks": [], "variables": {}, "notes": [], "skills": [], "error": None,
        "skipped": None, "simulated_end": None, "family": None, "raw": [],
    }  # fmt: skip


def repeated(cases: int, trials: int, turns: int) -> list[dict[str, Any]]:
    """Cases with several trials: the 1st fails always, the 2nd at times, the 3rd at its end."""
    rows: list[dict[str, Any]] = []
    for case in range(1, cases + 1):
        for trial in range(1, trials + 1):
            at_end = case == 3
            failed = case == 1 or at_end or (case == 2 and trial % 2 == 0)
            line = row(len(rows) + 1, turns)
            line.update(
                job=f"case-{case}/scripted/with_skill/{trial}", case_id=f"case-{case}",
                title=f"Asks for book number {case}", tags=["even" if case % 2 == 0 else "odd"],
                trial=trial, status="FAIL" if failed else "PASS", flaky=case == 2,
                reason=("a check of it all" if at_end else "turn 5: not found") if failed else
                "all checks passed", end=False if at_end else None,
                turns=[{"status": "completed", "ok": not (failed and at == turns and not at_end)}
                       for at in range(1, turns + 1)],
            )  # fmt: skip
            rows.append(line)
    return rows


def on_engines(
    rows: list[dict[str, Any]], engines: dict[str, float | None]
) -> list[dict[str, Any]]:
    """The same on each of `engines`, whose trials cost so much."""
    found: list[dict[str, Any]] = []
    for line in rows:
        for engine, cost in engines.items():
            found.append({**line, "n": len(found) + 1, "engine": engine, "cost_usd": cost})
    return found


def large_report(
    path: Path,
    cases: int,
    turns: int = 5,
    *,
    trials: int = 1,
    engines: dict[str, float | None] | None = None,
    user_costs: Iterable[float | None] = (),
    **more: Any,
) -> Path:
    """A report of so many cases, on each of `engines`; `more` goes into its index.

    `user_costs`: of simulated users of the first trials.
    """
    rows = [row(n, turns) for n in range(1, cases + 1)]
    if trials > 1:
        rows = repeated(cases, trials, turns)
    if engines:
        rows = on_engines(rows, engines)
    for line, cost in zip(rows, user_costs, strict=False):
        line["simulator"] = {"messages": 2, "cost_usd": cost, "tokens": None, "models": []}
    index: dict[str, Any] = {
        "schema": "skillup.page/1", "mode": "report",
        "run": {"run_id": "large", "started_at": "2026-01-01T00:00:00Z", "finished": True,
                "running": False, "stopped": None, "path": "", "engines": [], "suites": ["large"]},
        "summary": {"cost_usd": 1.0, "usage": {}, "duration_ms": 1000, "judging": None},
        "analysis": None, "rows": rows, "not_run": [], "not_needed": [], "history": None,
        "sides": None, "warnings": [], **more,
    }  # fmt: skip
    details = []
    for line in rows:
        named = {key: line[key] for key in ("job", "case_id", "title", "trial", "n")}
        details.append((str(line["n"]), packed({**detail(line["n"], turns), **named})))
    path.write_bytes(page_html(index, details, title="large"))
    return path
