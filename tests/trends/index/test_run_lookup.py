"""Runs by name, in the index and beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.history.baseline import run_before
from skillup.history.queries import add_run, rebuild
from skillup.history.run_lookup import find_run
from tests.support.outcomes import a_key, a_run


@pytest.fixture
def index(tmp_path: Path) -> str:
    """Four runs; the second one is of another suite, the third of another engine."""
    url = str(tmp_path / "index.sqlite")
    for run_id, key in (
        ("2026-01", a_key("one")),
        ("2026-02", a_key("one", suite="other")),
        ("2026-03", a_key("one", engine="other")),
        ("2027-01", a_key("one")),
    ):
        add_run(url, a_run(run_id, {key: "p"}))
    return url


def a_folder(
    runs: Path,
    run_id: str,
    started_at: str = "2026-01-01T00:00:00.000Z",
    *,
    started_in: Path | None = None,
) -> Path:
    """A run directory that is not indexed."""
    path = runs / run_id
    path.mkdir(parents=True)
    info = {
        "run_id": run_id,
        "started_at": started_at,
        "jobs": [],
        "request": {"directory": str(started_in or runs)},
    }
    (path / "run.json").write_text(json.dumps(info))
    return path


def test_a_run_is_found_by_its_id_and_by_the_beginning_of_it(index: str, tmp_path: Path) -> None:
    assert find_run("2026-02", index, tmp_path).run_id == "2026-02"
    assert find_run("2027", index, tmp_path).run_id == "2027-01"
    assert find_run("last", index, tmp_path).run_id == "2027-01"


def test_a_beginning_of_several_names_some_of_them(index: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="3 runs begin with 2026") as raised:
        find_run("2026", index, tmp_path)
    assert "2026-01, 2026-02" in (raised.value.hint or "")


def test_an_unknown_run_names_the_newest_ones(index: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run 1999") as raised:
        find_run("1999", index, tmp_path)
    assert "2027-01" in (raised.value.hint or "")


def test_a_name_that_is_too_long_for_a_file_is_just_unknown(index: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run nnn"):
        find_run("n" * 300, index, tmp_path)


def test_a_directory_needs_no_index(tmp_path: Path) -> None:
    path = a_folder(tmp_path / "runs", "elsewhere")
    nowhere = str(tmp_path / "none.sqlite")
    assert find_run(str(path), nowhere, tmp_path / "runs").run_id == "elsewhere"
    assert find_run("else", nowhere, tmp_path / "runs").run_id == "elsewhere"
    with pytest.raises(IndexTroubleError, match="there is no index"):
        find_run("nothing", nowhere, tmp_path / "runs")


def test_the_last_run_is_the_newest_of_this_machine(tmp_path: Path) -> None:
    """Whether it is in the folder and not indexed, or elsewhere, or on no machine but others'."""
    url, workspace = str(tmp_path / "index.sqlite"), tmp_path / "workspace"
    runs = workspace / ".skillup" / "runs"

    def last() -> str:
        return find_run("last", url, runs).run_id

    with pytest.raises(IndexTroubleError, match="there is no index"):
        last()
    add_run(url, a_run("other", {"one": "p"}, started_at="2026-01-09T00:00:00.000Z"))
    assert last() == "other"
    a_folder(runs, "killed", "2026-01-02T00:00:00.000Z")
    assert last() == "killed"
    started = "2026-01-03T00:00:00.000Z"
    elsewhere = a_folder(tmp_path, "elsewhere", started, started_in=workspace / "cases")
    add_run(url, a_run("elsewhere", {"one": "p"}, path=str(elsewhere), started_at=started))
    assert last() == "elsewhere"
    a_folder(runs, "again", "2026-01-04T00:00:00.000Z")
    assert last() == "again"


def test_a_run_that_another_was_written_over_is_not_the_last(tmp_path: Path) -> None:
    url, runs = str(tmp_path / "index.sqlite"), tmp_path / "runs"
    night = a_folder(tmp_path, "night", "2026-01-03T00:00:00.000Z")
    add_run(
        url,
        a_run("before", {"one": "p"}, path=str(night), started_at="2026-01-02T00:00:00.000Z"),
    )
    a_folder(runs, "by-day", "2026-01-01T00:00:00.000Z")
    assert find_run("last", url, runs).run_id == "by-day"


def test_a_directory_that_is_no_run_is_refused(index: str, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        find_run(str(tmp_path), index, tmp_path)


def test_the_run_before_is_one_of_the_same_suite_and_engine(index: str, tmp_path: Path) -> None:
    assert run_before(find_run("last", index, tmp_path), index).run_id == "2026-01"
    with pytest.raises(UsageError, match="no earlier run"):
        run_before(find_run("2026-02", index, tmp_path), index)


def test_rebuilding_indexes_the_folder_and_says_what_it_could_not_read(tmp_path: Path) -> None:
    url, runs = str(tmp_path / "index.sqlite"), tmp_path / "runs"
    good, bad = a_folder(runs, "good"), a_folder(runs, "bad")
    (bad / "run.json").write_text("{")
    (runs / "notes").mkdir()
    done = dict(rebuild(url, runs))
    assert done[good] is None
    assert "damaged" in str(done[bad])
    assert len(done) == 2
    assert find_run("good", url, tmp_path).path == str(good)


def test_rebuilding_keeps_runs_that_are_elsewhere_or_gone(index: str, tmp_path: Path) -> None:
    elsewhere = a_folder(tmp_path / "elsewhere", "kept")
    add_run(index, a_run("kept", {"one": "f"}, path=str(elsewhere)))
    assert dict(rebuild(index, tmp_path / "runs")) == {elsewhere: None}
    assert find_run("kept", index, tmp_path).trials == ()
    assert find_run("2026-01", index, tmp_path).run_id == "2026-01"
