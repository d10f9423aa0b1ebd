"""Which cases of a long history come first."""

from __future__ import annotations

from skillup.history.index import CaseInRun, RunHead
from skillup.history.runs import CaseKey, by_case
from skillup.history.series import SeriesFilter, SuiteHistory, histories, most_telling
from tests.support.outcomes import a_key, a_run

BARE = a_key("bare", variant="without_skill")
NIGHTS: dict[str | CaseKey, list[str]] = {
    "steady": ["p", "p", "p"],
    BARE: ["f", "f", "f"],
    "wavered": ["f", "p", "p"],
    "refused": ["p", "p", "e"],
    "unsteady": ["pp", "pp", "pf"],
    "broke-first": ["p", "f", "f"],
    "broke-last": ["p", "p", "f"],
}


def history(cases: dict[str | CaseKey, list[str]]) -> SuiteHistory:
    rows = []
    for number in range(3):
        started = f"2026-01-0{number + 1}T00:00:00.000Z"
        marks = {name: nights[number] for name, nights in cases.items()}
        run = a_run(f"{number}", marks, started_at=started)
        head = RunHead(run.run_id, run.started_at)
        rows += [CaseInRun(head, key, own) for key, own in by_case(run.trials).items()]
    (found,) = histories(rows, SeriesFilter(), 20)
    return found


def names(most: int) -> list[str]:
    return [case.key.case_id for case in most_telling(history(NIGHTS).cases, most)]


def test_the_worst_come_first_and_the_latest_of_these_before_the_others() -> None:
    worst = ["broke-last", "broke-first", "unsteady", "refused", "wavered", "steady"]
    assert names(6) == worst
    assert names(2) == worst[:2]


def test_where_all_are_shown_they_stay_in_their_order() -> None:
    order = [name if isinstance(name, str) else name.case_id for name in NIGHTS]
    assert names(7) == names(99) == order
