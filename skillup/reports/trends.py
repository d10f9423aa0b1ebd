"""How cases fared over runs, as text: a line of marks for each; and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillup.reports.compare_json import tally_json
from skillup.reports.text import money, plain, seconds, shown_id
from skillup.trends.history import CaseHistory, FailingSince, SuiteHistory
from skillup.trends.index.reading import RunHead
from skillup.trends.outcomes import WITH_SKILL
from skillup.trends.tallies import State

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

TRENDS_VERSION = "skillup.trends/1"

_MARKS: dict[State, tuple[str, str, str, str]] = {
    "pass": ("✓", "+", "green", "passed"),
    "mixed": ("~", "~", "yellow", "passed in part"),
    "fail": ("✗", "x", "red", "failed"),
    "error": ("E", "E", "magenta", "error: not run"),
    "not_held": ("?", "?", "magenta", "not held"),
    "skip": ("-", "-", "dim", "skipped"),
    "absent": ("·", ".", "dim", "not in that run"),
}
"""The mark, the same for terminals without it, its style, and what it means."""


def print_trends(suites: Sequence[SuiteHistory], console: Console) -> None:
    """Every suite with its cases; the newest run is the rightmost mark."""
    from rich.text import Text

    fancy = _can_show(console)
    seen: dict[State, None] = {}
    for suite in suites:
        first, last = suite.runs[0], suite.runs[-1]
        count = f"{len(suite.runs)} run{'s' if len(suite.runs) != 1 else ''}"
        console.print(
            Text.assemble(
                (plain(suite.suite), "bold cyan"),
                f"  {count}, {_day(first)} to {_day(last)}  newest: {plain(last.run_id)}",
            ),
            soft_wrap=True,
        )
        console.print(_table(suite, fancy))
        for case in suite.cases:
            if case.failing is not None:
                line = f"{_name(suite, case)}: {_since(case.failing)}"
                console.print(Text(line), soft_wrap=True)
        console.print()
        seen.update(dict.fromkeys(state for case in suite.cases for state in _states(case)))
    legend = [
        f"{mark if fancy else plain_mark} {meaning}"
        for state, (mark, plain_mark, _, meaning) in _MARKS.items()
        if state in seen
    ]
    console.print(Text("   ".join(legend), style="dim"), soft_wrap=True)


def _can_show(console: Console) -> bool:
    try:
        "✓✗·".encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True


def _states(case: CaseHistory) -> list[State]:
    return [tally.state for tally in case.tallies]


def _table(suite: SuiteHistory, fancy: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("runs", no_wrap=True)
    with_cost = any(case.mean("cost_usd") is not None for case in suite.cases)
    for header in ("passed", "rate", "95 %", "score", "time", *(["cost"] if with_cost else [])):
        table.add_column(header, justify="right", no_wrap=True)
    if len(suite.cases) > 1:
        table.add_row(Text("(all)", style="dim"), _line(suite.states(), fancy))
    for case in suite.cases:
        interval, duration = case.interval, case.mean("duration_ms")
        score = case.mean("score")
        table.add_row(
            Text(_name(suite, case)),
            _line(_states(case), fancy),
            f"{case.passed}/{case.judged}" if case.judged else "–",
            f"{case.passed / case.judged:.0%}" if case.judged else "–",
            f"{interval.low:.0%}–{interval.high:.0%}" if interval else "–",
            "–" if score is None else f"{score:.2f}",
            "–" if duration is None else seconds(round(duration)),
            *([money(case.mean("cost_usd"))] if with_cost else []),
        )
    return table


def _name(suite: SuiteHistory, case: CaseHistory) -> str:
    """The case, with what tells it from the others of the suite."""
    parts = [shown_id(case.key.case_id)]
    if len({other.key.engine for other in suite.cases}) > 1:
        parts.append(case.key.engine)
    if case.key.variant != WITH_SKILL:
        parts.append("(without skill)")
    return plain(" ".join(parts))


def _line(states: Sequence[State], fancy: bool) -> Text:
    from rich.text import Text

    line = Text()
    for state in states:
        mark, plain_mark, style, _ = _MARKS[state]
        line.append(mark if fancy else plain_mark, style=style)
    return line


def _day(run: RunHead) -> str:
    return plain(run.started_at[:10])


def _since(failing: FailingSince) -> str:
    """`failing since RUN (time); last passed in RUN (time)`."""
    first, passed = failing.first, failing.last_pass
    runs = f", {failing.runs} runs" if failing.runs > 1 else ""
    how, fully = ("failing in part", " throughout") if failing.in_part else ("failing", "")
    said = f"{how} since {_run(first)}{runs}; "
    said += f"last passed{fully} in {_run(passed)}" if passed else f"never passed{fully} before"
    if failing.unknown:
        runs = "a run" if failing.unknown == 1 else f"{failing.unknown} runs"
        said += f"; {runs} between them gave no verdict"
    return plain(said)


def _run(run: RunHead) -> str:
    return f"{run.run_id} ({run.started_at[:16].replace('T', ' ')})"


def trends_json(suites: Sequence[SuiteHistory]) -> str:
    """The same as JSON text; what is not known is null."""
    data = {"schema_version": TRENDS_VERSION, "suites": [_suite(suite) for suite in suites]}
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _suite(suite: SuiteHistory) -> dict[str, Any]:
    return {
        "suite": suite.suite,
        "runs": [
            {**run._asdict(), "state": state}
            for run, state in zip(suite.runs, suite.states(), strict=True)
        ],
        "cases": [_case(suite, case) for case in suite.cases],
    }


def _case(suite: SuiteHistory, case: CaseHistory) -> dict[str, Any]:
    failing = case.failing
    return {
        **case.key._asdict(),
        "passed": case.passed,
        "judged": case.judged,
        "pass_rate": case.passed / case.judged if case.judged else None,
        "interval": case.interval,
        **{name: case.mean(name) for name in ("score", "cost_usd", "duration_ms")},
        "failing_since": None
        if failing is None
        else {
            "first": failing.first._asdict(),
            "last_pass": failing.last_pass._asdict() if failing.last_pass else None,
            "runs": failing.runs,
            "in_part": failing.in_part,
            "unknown": failing.unknown,
        },
        "runs": [
            {"run_id": run.run_id, **tally_json(own)}
            for run, own in zip(suite.runs, case.tallies, strict=True)
        ],
    }
