"""Runs by name; which run is the one before, and whose verdicts are taken where it has none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.history.baseline import earlier_verdicts, find_run, run_before
from skillup.history.index import add_run, all_runs, open_index, rebuild
from skillup.history.runs import CaseKey, RunOutcomes
from tests.support.outcomes import a_key, a_run

NIGHT, CHOSEN = "night", "chosen"
OTHER_ENGINE = a_key("a", engine="other")
BARE = a_key("a", variant="without_skill")


def planned(run_id: str, cases: Sequence[str | CaseKey], selection: str = "") -> RunOutcomes:
    """A run that planned these; for that it is all the same what came of them."""
    return replace(a_run(run_id, dict.fromkeys(cases, "e")), selection_key=selection)


@pytest.mark.parametrize(
    ("later", "runs", "expected"),
    [
        pytest.param(
            planned("3", "abc"), [planned("1", "abc"), planned("2", "b")], "1", id="few by day"
        ),
        pytest.param(
            planned("3", "abc", NIGHT),
            [planned("1", "abc", NIGHT), planned("2", "ab", NIGHT)],
            "2",
            id="a case was taken out for a night, and came again",
        ),
        pytest.param(
            planned("3", "b", CHOSEN), [planned("2", "abc", NIGHT)], "2", id="more than was wanted"
        ),
        pytest.param(planned("2", "abcd"), [planned("1", "abc")], "", id="none planned all"),
        pytest.param(
            planned("3", ["a", OTHER_ENGINE]),
            [planned("1", ["a", OTHER_ENGINE]), planned("2", ["a"])],
            "1",
            id="one engine of two is less",
        ),
        pytest.param(
            planned("3", ["a", BARE]),
            [planned("1", ["a", BARE]), planned("2", "a")],
            "2",
            id="trials without the skill do not matter",
        ),
        pytest.param(planned("3", "abc"), [planned("2", "a"), planned("4", "abc")], "", id="none"),
    ],
)
def test_the_run_before(
    index: str, later: RunOutcomes, runs: list[RunOutcomes], expected: str
) -> None:
    for run in (*runs, later):
        add_run(index, run)
    if expected:
        assert run_before(later, index).run_id == expected
    else:
        with pytest.raises(UsageError, match="no earlier run in the index was asked for the cases"):
            run_before(later, index)


def found(index: str, a: RunOutcomes, b: RunOutcomes, *names: str) -> dict[str, str]:
    """By case, the run whose verdict is taken."""
    with open_index(index, write=False) as connection:
        newest_first = all_runs(connection)[::-1]
    rows = earlier_verdicts(newest_first, a, b, {a_key(name) for name in names})
    return {key.case_id: run.run_id for key, (run, _) in rows.items()}


def test_the_newest_verdict_before_both_runs_is_found(index: str) -> None:
    runs = {
        name: a_run(name, {"one": marks, "two": "e"})
        for name, marks in (("1", "f"), ("2", "p"), ("3", "s"), ("4", "e"), ("5", "f"))
    }
    for run in runs.values():
        add_run(index, run)
    assert found(index, runs["4"], runs["5"], "one", "two") == {"one": "2"}
    assert found(index, runs["5"], runs["4"], "one") == {"one": "2"}
    assert found(index, runs["4"], runs["5"]) == {}


@pytest.mark.parametrize(("first", "expected"), [("p", "1"), ("e", "2")])
def test_a_verdict_is_one_of_a_night_and_only_else_one_of_a_run_of_few_cases(
    index: str, first: str, expected: str
) -> None:
    add_run(index, a_run("1", {"one": first, "two": "p"}))
    add_run(index, replace(a_run("2", {"one": "f"}), selection_key="few"))
    a, b = a_run("3", {"one": "e", "two": "p"}), a_run("4", {"one": "f", "two": "p"})
    assert found(index, a, b, "one") == {"one": expected}


# Names.


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An index of four runs."""
    url = str(tmp_path / "index.sqlite")
    for run_id in ("2026-01", "2026-02", "2026-03", "2027-01"):
        add_run(url, a_run(run_id, {"one": "p"}))
    return url


def a_folder(runs: Path, run_id: str, started_at: str = "2026-01-01T00:00:00.000Z") -> Path:
    """A run directory that is not indexed."""
    path = runs / run_id
    path.mkdir(parents=True)
    info = {"run_id": run_id, "started_at": started_at, "jobs": []}
    (path / "run.json").write_text(json.dumps(info))
    return path


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("2026", "3 runs begin with 2026", "2026-01, 2026-02"),
        ("1999", "there is no run 1999", "2027-01"),
        ("n" * 300, "there is no run nnn", "2027-01"),
        ("", "is empty", "last"),
    ],
)
def test_a_name_of_no_run_or_several(
    url: str, tmp_path: Path, name: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        find_run(name, url, tmp_path)
    assert hint in (raised.value.hint or "")


def test_a_directory_needs_no_index(tmp_path: Path) -> None:
    path = a_folder(tmp_path / "runs", "elsewhere")
    nowhere = str(tmp_path / "none.sqlite")
    for name in (str(path), "else", "last"):
        assert find_run(name, nowhere, tmp_path / "runs").run_id == "elsewhere"
    with pytest.raises(IndexTroubleError, match="there is no index"):
        find_run("nothing", nowhere, tmp_path / "runs")
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        find_run(str(tmp_path), nowhere, tmp_path / "runs")


def test_the_last_run_is_the_newest_of_the_folder_and_without_any_that_of_the_index(
    url: str, tmp_path: Path
) -> None:
    runs = tmp_path / ".skillup" / "runs"
    assert find_run("last", url, runs).run_id == "2027-01"
    a_folder(runs, "killed", "2020-01-02T00:00:00.000Z")
    a_folder(runs, "again", "2020-01-04T00:00:00.000Z")
    assert find_run("last", url, runs).run_id == "again"


def test_a_run_that_another_was_written_over_is_as_it_was_indexed(tmp_path: Path) -> None:
    url, night = str(tmp_path / "index.sqlite"), a_folder(tmp_path, "night")
    add_run(url, a_run("before", {"one": "p"}, path=str(night)))
    assert find_run("before", url, tmp_path / "runs").trials


def test_rebuilding_indexes_the_folder_and_says_what_it_could_not_read(
    url: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    good, bad = a_folder(runs, "good"), a_folder(runs, "bad")
    (bad / "run.json").write_text("{")
    (runs / "notes").mkdir()
    elsewhere = a_folder(tmp_path / "elsewhere", "kept")
    add_run(url, a_run("kept", {"one": "f"}, path=str(elsewhere)))

    done = dict(rebuild(url, runs))

    assert done.keys() == {good, bad, elsewhere}
    assert (done[good], done[elsewhere]) == (None, None)
    assert "damaged" in str(done[bad])
    assert find_run("good", url, tmp_path).path == str(good)
    assert find_run("kept", url, tmp_path).trials == ()
    assert find_run("2026-01", url, tmp_path).run_id == "2026-01"
