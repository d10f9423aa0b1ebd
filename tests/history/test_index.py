"""The index: what goes in comes out, once, whoever writes at the same time; runs by name, and which
run is the one before.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.history.index import (
    add_run,
    all_runs,
    find_run,
    open_index,
    rebuild,
)
from skillup.history.reference import is_comparable
from skillup.history.runs import About, CaseKey, RunOutcomes
from skillup.store import RunDirectory
from tests.support.outcomes import a_key, a_run


def test_a_run_comes_out_as_it_went_in(index: str) -> None:
    run = a_run("run", {"one": "pfe", "two": "sn"}, cost=0.25, gates={"max_new_failures": 2})
    run = replace(run, until_decided=True, selection_key="night")
    add_run(index, run)
    assert all_runs(index) == [run]


def test_runs_come_out_with_the_oldest_first(index: str) -> None:
    runs = [a_run(name, {"one": "ppfe", "two": "e"}, cost=0.5) for name in "ba"]
    for run in runs:
        add_run(index, run)
    assert all_runs(index) == runs[::-1]


def test_texts_may_hold_anything(index: str) -> None:
    key = a_key("naïve \U0001f9ea 'quoted' \x00 %s ?")
    add_run(index, a_run("run", {key: "p", "half \ud800": "p"}, path="/runs/caf\udce9"))
    (run,) = all_runs(index)
    names = [trial.key.case_id for trial in run.trials]
    assert (run.path, names) == ("/runs/caf?", [key.case_id, "half ?"])


def test_a_run_that_is_there_is_replaced(index: str) -> None:
    add_run(index, a_run("run", {"one": "pn", "two": "p"}))
    resumed = a_run("run", {"one": "pf"})
    add_run(index, resumed)
    assert all_runs(index) == [resumed]


def test_what_fails_in_the_middle_leaves_nothing_behind(index: str) -> None:
    add_run(index, a_run("run", {"one": "p"}))
    with suppress(ZeroDivisionError), open_index(index, write=True) as execute:
        execute("DELETE FROM skillup_runs_7")
        raise ZeroDivisionError
    assert len(all_runs(index)) == 1


def test_a_run_that_cannot_be_read_is_no_defect_of_skillups(index: str) -> None:
    add_run(index, a_run("run", {"one": "p"}))
    with open_index(index, write=True) as execute:
        execute("UPDATE skillup_runs_7 SET outcomes = '{}'")
    with pytest.raises(IndexTroubleError, match="of the run run is damaged"):
        all_runs(index)


WRITER = """
import sys
from skillup.history.index import add_run
from tests.support.outcomes import a_run
index, name = sys.argv[1:]
for number in range(5):
    add_run(index, a_run(f"{name}-{number}", {f"case-{n}": "pfe" for n in range(20)}))
    add_run(index, a_run("shared", {f"case-{n}": "ppp" for n in range(20)}))
"""


@pytest.mark.slow
def test_runs_that_end_at_the_same_time_are_all_indexed(index: str) -> None:
    """They also make the tables at the same time, and one of the runs comes from all of them."""
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, index, name], cwd=root) for name in "abc"
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    runs = {run.run_id: run for run in all_runs(index)}
    assert len(runs) == 16
    assert len(runs["shared"].trials) == 60


def test_paths_that_cannot_be_looked_at_here_do_not_end_a_rebuild(tmp_path: Path) -> None:
    """As of other machines' runs, or in other users' homes."""
    url = str(tmp_path / "index.sqlite")
    for run_id, path in (("1", f"/{'n' * 300}"), ("2", str(tmp_path / "gone"))):
        add_run(url, a_run(run_id, {"one": "p"}, path=path))
    assert list(rebuild(url, tmp_path / "runs")) == []
    assert len(all_runs(url)) == 2


def test_no_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(IndexTroubleError, match="there is no index") as raised:
        all_runs(str(tmp_path / "none.sqlite"))
    assert "--rebuild" in (raised.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at" * 40)
    with pytest.raises(IndexTroubleError, match="not a database") as raised:
        add_run(str(path), a_run("run", {"one": "p"}))
    assert "move it away" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:hidden@127.0.0.1:1/none", "127.0.0.1"),
        ("postgresql://me:hidden@/none?host=/no/such/folder", "/no/such/folder"),
        ("postgres://me:hid%zz@127.0.0.1:1/none", "neither"),
        ("postgresql://me:hid@den@127.0.0.1:1/none", "neither"),
        ("postgresql://me:hid/den@127.0.0.1:1/none", "neither"),
        ("postgresql://me:hid?den@127.0.0.1:1/none", "me@127.0.0.1"),
        ("nosuch://me:hidden@host/db", "neither"),
    ],
)
def test_trouble_with_an_address_never_shows_the_password(url: str, message: str) -> None:
    with pytest.raises(IndexTroubleError, match=message) as raised:
        add_run(url, a_run("run", {"one": "p"}))
    assert "hid" not in f"{raised.value.message} {raised.value.hint}"


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(IndexTroubleError, match="driver is not installed") as raised:
        add_run("postgresql://me:hidden@host/db", a_run("run", {"one": "p"}))
    assert raised.value.hint == "pip install 'skillup-eval[postgresql]'"
    assert "hidden" not in raised.value.message


# Which run is the baseline.

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
        pytest.param(planned("2", "abcdefg"), [planned("1", "abc")], "", id="less than half"),
        pytest.param(
            planned("3", ["a", "b", OTHER_ENGINE]),
            [planned("1", ["a", "b", OTHER_ENGINE]), planned("2", ["a"])],
            "1",
            id="another engine is another case",
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
def test_the_night_before(later: RunOutcomes, runs: list[RunOutcomes], expected: str) -> None:
    before = [run.run_id for run in runs if run.run_id < later.run_id and is_comparable(run, later)]
    assert before[-1:] == [expected] * bool(expected)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An index of four runs."""
    url = str(tmp_path / "index.sqlite")
    for run_id in ("2026-01", "2026-02", "2026-03", "2027-01"):
        add_run(url, a_run(run_id, {"one": "p"}))
    return url


def a_folder(runs: Path, run_id: str, started_at: str = "2026-01-01T00:00:00.000Z") -> Path:
    """A run directory that is not indexed."""
    info = {"run_id": run_id, "started_at": started_at, "jobs": []}
    with RunDirectory.create(runs / run_id, info) as made:
        return made.path


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
    with pytest.raises(UsageError, match="there is no run last"):
        find_run("last", url, runs, "another repository")
    a_folder(runs, "killed", "2020-01-02T00:00:00.000Z")
    a_folder(runs, "again", "2020-01-04T00:00:00.000Z")
    assert find_run("last", url, runs).run_id == "again"


def test_a_name_with_a_separator_is_a_path_only(tmp_path: Path) -> None:
    url = str(tmp_path / "index.sqlite")
    for run_id, label in (("a", "night"), ("b", "./night")):
        add_run(url, replace(a_run(run_id, {"one": "p"}), about=About(label=label)))
    assert find_run("night", url, tmp_path).run_id == "a"
    with pytest.raises(RunDirectoryError, match="does not exist"):
        find_run("./night", url, tmp_path)


def test_a_run_that_another_was_written_over_is_as_it_was_indexed(tmp_path: Path) -> None:
    url, night = str(tmp_path / "index.sqlite"), a_folder(tmp_path, "night")
    add_run(url, a_run("before", {"one": "p"}, path=str(night)))
    assert find_run("before", url, tmp_path / "runs").trials


def test_in_a_shared_index_labels_and_the_last_run_are_those_of_the_repository(url: str) -> None:
    for run_id, repository in (("ours", "r"), ("theirs", "other")):
        about = About(repository=repository, label="nightly")
        add_run(url, replace(a_run(f"2028-{run_id}", {"one": "p"}), about=about))
    for name in ("nightly", "last", "2028-ours"):
        assert find_run(name, url, Path("/nowhere"), "r").run_id == "2028-ours"
    assert find_run("2028-theirs", url, Path("/nowhere"), "r").run_id == "2028-theirs"


def test_rebuilding_indexes_the_folder_and_says_what_it_could_not_read(
    url: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    good, bad = a_folder(runs, "good"), a_folder(runs, "bad")
    (bad / "run.sqlite").write_text("{")
    (runs / "notes").mkdir()
    elsewhere = a_folder(tmp_path / "elsewhere", "kept")
    add_run(url, a_run("kept", {"one": "f"}, path=str(elsewhere)))

    done = dict(rebuild(url, runs))

    assert done.keys() == {good, bad, elsewhere}
    assert (done[good], done[elsewhere]) == (None, None)
    assert "is no run of skillup" in str(done[bad])
    assert find_run("good", url, tmp_path).path == str(good)
    assert find_run("kept", url, tmp_path).trials == ()
    assert find_run("2026-01", url, tmp_path).run_id == "2026-01"
