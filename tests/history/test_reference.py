"""What a run is compared with: nights of its repository and branch, pins, what was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.history.comparison import Comparison
from skillup.history.index import add_run
from skillup.history.reference import LABEL, Reference, accept, is_comparable, pin, reference_for
from skillup.history.runs import About, CaseKey, RunOutcomes
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


def reference(b: RunOutcomes, url: str, **given: str) -> Reference:
    return reference_for(b, url, Path("/nowhere"), **given)


def chosen(b: RunOutcomes, url: str, **given: str) -> list[str]:
    return [run.run_id for run in reference(b, url, **given).nights]


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
    assert found.why == "the last 6 nights on fix and main"


def test_only_nights_of_the_same_selection_without_uncommitted_changes_count(index: str) -> None:
    add_run(index, a_night(1))
    add_run(index, a_night(2, cases=["one", "six"]))
    add_run(index, a_night(3, dirty=True))
    add_run(index, replace(a_night(4), run_id="part", shard="1/2"))
    add_run(index, replace(a_night(4), run_id="decided", until_decided=True))
    add_run(index, a_night(5))
    assert chosen(a_night(4), index) == ["r-main-01", "r-main-02"]
    assert chosen(a_night(4, dirty=True), index) == ["r-main-01", "r-main-02", "r-main-03"]
    assert chosen(a_night(4, cases=["two"]), index) == ["r-main-01"]
    # At least half of its cases have to be there.
    assert chosen(a_night(4, cases=["two", "three"]), index) == ["r-main-01"]
    assert chosen(a_night(4, cases=["two", "three", "four"]), index) == []
    none = reference(a_night(4, cases=["two", "three", "four"]), index)
    assert none.why.startswith("of 5 earlier runs of this repository none was on main")
    assert chosen(replace(a_night(6), shard="1/2"), index) == ["part"]
    assert chosen(replace(a_night(6), until_decided=True), index) == [
        *("r-main-01", "r-main-02", "decided", "r-main-05")
    ]
    assert chosen(a_night(1), index) == []
    assert chosen(a_night(4), index, baseline="r-main-05") == ["r-main-05"]
    with pytest.raises(UsageError, match="is the run that is to be compared"):
        reference(a_night(5), index, baseline="r-main-05")


@pytest.mark.parametrize(
    ("earlier", "tonight", "asked", "expected"),
    [
        ("ab", "abcde", "same", True),  # others were taken out for a night
        ("ab", "abcde", "", False),
        ("a", ["a", a_key("b", engine="other"), a_key("c", engine="other")], "", False),
        ("a", ["a", a_key("a", variant="without_skill")], "", True),
        (["a"], [a_key("a", engine="other")], "same", False),
    ],
)
def test_a_night_had_half_of_the_cases_or_was_asked_for_the_same(
    earlier: Sequence[str], tonight: Sequence[str | CaseKey], asked: str, *, expected: bool
) -> None:
    before, run = (
        replace(a_run("r", dict.fromkeys(cases, "e")), selection_key=asked)
        for cases in (earlier, tonight)
    )
    assert is_comparable(before, run) == expected


def pinned(b: RunOutcomes, url: str) -> str | None:
    found = reference(b, url).pinned
    return found.run_id if found is not None else None


def test_a_pinned_run_stands_beside_the_nights_and_one_of_a_label_outranks_that_of_a_branch(
    index: str,
) -> None:
    runs = [a_night(n, label="beta" if n == 3 else "") for n in (1, 2, 3, 4)]
    for run in runs:
        add_run(index, run)
    pin(index, REPOSITORY, "main", "r-main-02")
    pin(index, REPOSITORY, f"{LABEL}beta", "r-main-03")
    ids = [run.run_id for run in runs]
    found = reference(a_night(9), index)
    assert (found.why, pinned(a_night(9), index)) == ("pinned for main", ids[1])
    assert chosen(a_night(9), index) == ids
    assert {*found.accepted.values()} == {ids[1]}
    assert pinned(a_night(9, "fix", target="main"), index) == ids[1]
    assert pinned(a_night(9, label="beta"), index) == ids[2]
    assert pinned(a_night(9, label="gamma"), index) == ids[1]
    assert pinned(a_night(9, repository="other"), index) is None
    assert chosen(a_night(9), index, baseline="previous") == ids[-1:]
    # The pinned run itself has the nights before it; those before it are told of a newer one.
    assert (chosen(runs[1], index), pinned(runs[1], index)) == (ids[:1], None)
    assert chosen(runs[0], index) == ids[1:2]
    pin(index, REPOSITORY, "main", None)
    assert pinned(a_night(9), index) is None


def accepted(b: RunOutcomes, url: str) -> dict[str, str]:
    return {key.case_id: run_id for key, run_id in reference(b, url).accepted.items()}


def test_what_was_accepted_begins_anew_with_a_night(index: str) -> None:
    one, two = a_key("one"), a_key("two")
    for number in (1, 2, 3, 4):
        add_run(index, a_night(number))
    by_day = a_night(2, cases=["one"])
    by_day = replace(by_day, run_id="r-by-day", started_at="2026-01-02T12:00:00.000Z")
    add_run(index, by_day)
    accept(index, a_night(1), [one, two])
    accept(index, by_day, [one])
    assert accepted(a_night(9), index) == {"one": "r-by-day", "two": "r-main-01"}
    assert accepted(a_night(9, "fix"), index) == {"one": "r-by-day", "two": "r-main-01"}
    # What was accepted later says nothing of an earlier night.
    assert accepted(a_night(2), index) == {"two": "r-main-01"}
    accept(index, a_night(4), [two])
    assert accepted(a_night(9), index)["two"] == "r-main-04"
    assert accepted(a_night(4), index)["two"] == "r-main-04"


def red(b: RunOutcomes, url: str) -> list[str]:
    return [key.case_id for key in Comparison(reference(b, url), b).assessment.red]


def test_a_pinned_run_is_the_reference_until_a_case_is_accepted(index: str) -> None:
    good, broken = "ppp", "fff"
    add_run(index, a_night(1, marks=broken))
    add_run(index, a_night(2, marks=broken, cases=["one", "two", "three"]))
    add_run(index, a_night(3, marks=good))
    accept(index, a_night(2), [a_key("one")])
    # What the pinned run says comes after what was accepted before it was pinned.
    pin(index, REPOSITORY, "main", "r-main-03")
    for number in (4, 5, 6):
        add_run(index, a_night(number, marks=broken))
    tonight = a_night(7, marks=broken)
    assert red(tonight, index) == ["one", "two"]
    accept(index, a_night(5), [a_key("one")])
    assert red(tonight, index) == ["two"]
    # Of a case that it has no verdict on, the nights are the reference.
    other = a_night(8, marks=broken, cases=["one", "two", "three"])
    found = reference(other, index)
    assert "three" not in {key.case_id for key in found.accepted}
    assert "r-main-02" in [run.run_id for run in found.nights]


def test_a_case_that_got_worse_more_nights_ago_than_are_read_one_by_one_stays_red(
    index: str,
) -> None:
    day = datetime(2025, 1, 1, tzinfo=UTC)
    nights = []
    for number in range(150):
        night = a_run(f"n{number:03}", {"one": "ppp" if number < 30 else "fff", "two": "ppp"})
        began = (day + timedelta(days=number)).isoformat()
        nights.append(replace(night, started_at=began, about=About(branch="main")))
        add_run(index, nights[-1])
    found = reference(nights[-1], index)
    assert 60 < len(found.nights) < 120
    [(key, said)] = Comparison(found, nights[-1]).assessment.red.items()
    assert key.case_id == "one"
    assert said.since is not None
    assert said.since <= "n042"
    # Of old nights always the same ones are read, or each night would look at the past anew.
    read = [
        {run.run_id for run in reference(night, index).nights if run.run_id < "n040"}
        for night in nights[105:]
    ]
    assert all(later <= earlier for earlier, later in pairwise(read))
    assert sum(later != earlier for earlier, later in pairwise(read)) <= 5
