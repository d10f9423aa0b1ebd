"""The index: what goes in comes out, once, whoever writes at the same time; runs by name."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.history.index import add_run, all_runs, find_run, open_index, rebuild
from skillup.history.runs import About
from skillup.store import RunDirectory
from tests.support.outcomes import a_key, a_run


def test_what_goes_in_comes_out_the_oldest_first_and_each_run_once(index: str) -> None:
    """A run that went on replaces itself; texts may hold anything."""
    key = a_key("naïve \U0001f9ea 'quoted' \x00 %s ?")
    odd = a_run("a", {key: "p", "half \ud800": "p"}, path="/runs/caf\udce9")
    whole = a_run("b", {"one": "pfe", "two": "sn"}, cost=0.25, gates={"max_new_failures": 2})
    whole = replace(whole, until_decided=True, selection_key="night")
    for run in (a_run("b", {"one": "n"}), odd, whole):
        add_run(index, run)
    first, second = all_runs(index)
    assert second == whole
    assert first.path == "/runs/caf?"
    assert [trial.key.case_id for trial in first.trials] == [key.case_id, "half ?"]


def test_what_fails_in_the_middle_leaves_nothing_behind_and_damage_is_told(index: str) -> None:
    add_run(index, a_run("run", {"one": "p"}))
    with suppress(ZeroDivisionError), open_index(index, write=True) as execute:
        execute("DELETE FROM skillup_runs_7")
        raise ZeroDivisionError
    assert len(all_runs(index)) == 1
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


def test_no_index_and_a_file_that_is_none_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(IndexTroubleError, match="there is no index") as raised:
        all_runs(str(tmp_path / "none.sqlite"))
    assert "--rebuild" in (raised.value.hint or "")
    assert list(tmp_path.iterdir()) == []
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


# Runs by name.


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


def test_last_labels_and_paths_mean_one_run_each(url: str, tmp_path: Path) -> None:
    runs = tmp_path / ".skillup" / "runs"
    assert find_run("last", url, runs).run_id == "2027-01"
    for run_id, label, repository in (
        ("2028-ours", "nightly", "r"),
        ("2028-path", "./nightly", "r"),
        ("2028-theirs", "nightly", "other"),
    ):
        about = About(label=label, repository=repository)
        add_run(url, replace(a_run(run_id, {"one": "p"}), about=about))
    # In a shared index labels and the last run are those of the repository; ids are of all.
    assert find_run("nightly", url, runs, "r").run_id == "2028-ours"
    assert find_run("last", url, runs, "r").run_id == "2028-path"
    assert find_run("2028-theirs", url, runs, "r").run_id == "2028-theirs"
    with pytest.raises(UsageError, match="there is no run last"):
        find_run("last", url, runs, "a third")
    with pytest.raises(RunDirectoryError, match="does not exist"):
        find_run("./nightly", url, runs)
    a_folder(runs, "killed", "2020-01-02T00:00:00.000Z")
    written_over = a_folder(runs, "again", "2020-01-04T00:00:00.000Z")
    assert find_run("last", url, runs, "r").run_id == "again"
    add_run(url, a_run("before", {"one": "p"}, path=str(written_over)))
    assert find_run("before", url, tmp_path).trials


def test_rebuilding_indexes_the_folder_and_says_what_it_could_not_read(
    url: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    good, bad = a_folder(runs, "good"), a_folder(runs, "bad")
    (bad / "run.sqlite").write_text("{")
    (runs / "notes").mkdir()
    elsewhere = a_folder(tmp_path / "elsewhere", "kept")
    add_run(url, a_run("kept", {"one": "f"}, path=str(elsewhere)))
    # As of other machines' runs, or in other users' homes.
    for run_id, path in (("far", f"/{'n' * 300}"), ("gone", str(tmp_path / "gone"))):
        add_run(url, a_run(run_id, {"one": "p"}, path=path))

    done = dict(rebuild(url, runs))

    assert done.keys() == {good, bad, elsewhere}
    assert (done[good], done[elsewhere]) == (None, None)
    assert "is no run of skillup" in str(done[bad])
    assert find_run("good", url, tmp_path).path == str(good)
    assert find_run("kept", url, tmp_path).trials == ()
    assert {"2026-01", "far", "gone"} < {run.run_id for run in all_runs(url)}
