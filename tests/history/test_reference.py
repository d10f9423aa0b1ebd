"""What a run is compared with: nights of its repository and branch, pins, what was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.history.comparison import Comparison
from skillup.history.index import add_run, find_run
from skillup.history.reference import LABEL, Reference, accept, pin, reference_for
from skillup.history.runs import About, RunOutcomes
from tests.support.outcomes import a_key, a_run

REPOSITORY = "github.com/o/r"


def a_night(
    number: int,
    branch: str = "main",
    marks: str = "p",
    *,
    cases: Sequence[str] = ("one", "two"),
    repository: str = REPOSITORY,
    dirty: bool = False,
    label: str = "",
    target: str = "",
) -> RunOutcomes:
    about = About(
        branch=branch, repository=repository, dirty=dirty, label=label, target_branch=target
    )
    name = f"{repository.rpartition('/')[2]}-{branch}-{number:02}"
    run = a_run(name, dict.fromkeys(cases, marks), started_at=f"2026-01-{number:02}T00:00:00.000Z")
    return replace(run, about=about, selection_key=",".join(cases))


def reference(b: RunOutcomes, url: str, **given: str) -> Reference | None:
    return reference_for(b, url, Path("/nowhere"), **given)


def chosen(b: RunOutcomes, url: str, **given: str) -> list[str]:
    found = reference(b, url, **given)
    return [run.run_id for run in found.nights] if found is not None else []


def test_three_branches_and_two_repositories_share_an_index(index: str) -> None:
    for number in range(1, 13):
        branch = ("main", "next", "fix")[number % 3] if number > 3 else "main"
        add_run(index, a_night(number, branch))
        add_run(index, a_night(number, branch, repository="other"))
    on_main = [f"r-main-{number:02}" for number in (1, 2, 3, 6, 9, 12)]
    on_fix = [f"r-fix-{number:02}" for number in (5, 8, 11)]
    assert chosen(a_night(20), index) == on_main
    assert chosen(a_night(9), index) == on_main[:4]
    # A branch goes on from the nights of the default branch before it began.
    assert chosen(a_night(20, "fix"), index) == [*on_main[:3], *on_fix]
    assert chosen(a_night(20, "new"), index) == on_main
    assert chosen(a_night(20, "fix", target="main"), index) == on_main
    assert chosen(a_night(20, "fix", target="next"), index) == [
        f"r-next-{number:02}" for number in (4, 7, 10)
    ]
    assert chosen(a_night(20, "fix"), index, branch="fix") == on_fix
    assert chosen(a_night(20, repository="github.com/third"), index) == []
    assert chosen(a_night(20), index, baseline="previous") == on_main[-1:]
    found = reference(a_night(20, "fix"), index)
    assert found is not None
    assert found.why == "the last 6 nights on fix and main"


def test_only_nights_of_the_same_selection_without_uncommitted_changes_count(index: str) -> None:
    add_run(index, a_night(1))
    add_run(index, a_night(2, cases=["one"]))
    add_run(index, a_night(3, dirty=True))
    add_run(index, a_night(5))
    assert chosen(a_night(4), index) == ["r-main-01"]
    assert chosen(a_night(4, dirty=True), index) == ["r-main-01", "r-main-03"]
    assert chosen(a_night(4, cases=["two"]), index) == ["r-main-01"]
    assert chosen(a_night(4, cases=["two", "three"]), index) == []
    assert chosen(a_night(1), index) == []
    assert chosen(a_night(4), index, baseline="r-main-05") == ["r-main-05"]
    with pytest.raises(UsageError, match="is the run that is to be compared"):
        reference(a_night(5), index, baseline="r-main-05")


def test_a_pinned_run_outranks_the_nights_and_one_of_a_label_that_of_a_branch(index: str) -> None:
    runs = [a_night(n, label="beta" if n == 3 else "") for n in (1, 2, 3, 4)]
    for run in runs:
        add_run(index, run)
    pin(index, REPOSITORY, "main", "r-main-02")
    pin(index, REPOSITORY, f"{LABEL}beta", "r-main-03")
    found = reference(a_night(9), index)
    assert found is not None
    assert (found.why, found.newest.run_id) == ("pinned for main", "r-main-02")
    assert chosen(a_night(9, "fix", target="main"), index) == ["r-main-02"]
    assert chosen(a_night(9, label="beta"), index) == ["r-main-03"]
    assert chosen(a_night(9, label="gamma"), index) == ["r-main-02"]
    assert chosen(a_night(9, repository="other"), index) == []
    assert chosen(a_night(9), index, baseline="previous") == ["r-main-04"]
    # The pinned run itself has the nights before it.
    assert chosen(runs[1], index) == ["r-main-01"]
    pin(index, REPOSITORY, "main", None)
    assert chosen(a_night(9), index) == [run.run_id for run in runs]


def accepted(b: RunOutcomes, url: str) -> dict[str, str]:
    found = reference(b, url)
    assert found is not None
    return {key.case_id: run_id for key, run_id in found.accepted.items()}


def test_what_was_accepted_begins_anew_with_a_night(index: str) -> None:
    one, two = a_key("one"), a_key("two")
    for number in (1, 2, 3, 4):
        add_run(index, a_night(number))
    by_day = a_night(2, cases=["one"])
    by_day = replace(by_day, run_id="r-by-day", started_at="2026-01-02T12:00:00.000Z")
    add_run(index, by_day)
    accept(index, a_night(1), [one, two])
    accept(index, by_day, [one])
    # By day only that case was run: its reference begins with the night after it.
    assert accepted(a_night(9), index) == {"one": "r-main-03", "two": "r-main-01"}
    assert accepted(a_night(9, "fix"), index) == {"one": "r-main-03", "two": "r-main-01"}
    accept(index, a_night(4), [two])
    assert accepted(a_night(9), index)["two"] == "r-main-04"
    assert accepted(a_night(4), index)["two"] == "r-main-04"


def test_of_a_pinned_run_what_was_accepted_later_is_as_it_was_then(index: str) -> None:
    for number, marks in ((1, "p"), (2, "f"), (3, "f")):
        add_run(index, a_night(number, marks=marks))
    pin(index, REPOSITORY, "main", "r-main-01")
    accept(index, a_night(2), [a_key("one")])
    found = reference(a_night(9), index)
    assert found is not None
    statuses = {trial.key.case_id: trial.status for trial in found.newest.trials}
    assert statuses == {"one": "FAIL", "two": "PASS"}


def test_a_case_that_got_worse_more_nights_ago_than_are_read_one_by_one_stays_red(
    index: str,
) -> None:
    day = datetime(2025, 1, 1, tzinfo=UTC)
    for number in range(150):
        marks = "ppp" if number < 30 else "fff"
        night = a_run(f"n{number:03}", {"one": marks, "two": "ppp"})
        began = (day + timedelta(days=number)).isoformat()
        add_run(index, replace(night, started_at=began, about=About(branch="main")))
    newest = find_run("n149", index, Path("/nowhere"))
    found = reference(newest, index)
    assert found is not None
    assert len(found.nights) < 80
    comparison = Comparison(found.nights, newest)
    [(key, said)] = comparison.assessment.red.items()
    assert key.case_id == "one"
    assert said.since is not None
    assert said.since <= "n048"
