"""The index: what goes in comes out, once, whoever writes at the same time."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.errors import IndexTroubleError
from skillup.history.index import (
    add_run,
    all_runs,
    open_index,
    rebuild,
)
from tests.support.outcomes import a_key, a_run


def test_a_run_comes_out_as_it_went_in(index: str) -> None:
    run = a_run("run", {"one": "pfe", "two": "sn"}, cost=0.25, gates={"max_new_failures": 2})
    run = replace(run, until_decided=True, selection_key="night")
    add_run(index, run)
    with open_index(index, write=False) as reading:
        assert all_runs(reading) == [run]


def test_runs_come_out_with_the_oldest_first(index: str) -> None:
    runs = [a_run(name, {"one": "ppfe", "two": "e"}, cost=0.5) for name in "ba"]
    for run in runs:
        add_run(index, run)
    with open_index(index, write=False) as reading:
        assert all_runs(reading) == runs[::-1]


def test_texts_may_hold_anything(index: str) -> None:
    key = a_key("naïve \U0001f9ea 'quoted' \x00 %s ?")
    add_run(index, a_run("run", {key: "p", "half \ud800": "p"}, path="/runs/caf\udce9"))
    with open_index(index, write=False) as reading:
        (run,) = all_runs(reading)
    names = [trial.key.case_id for trial in run.trials]
    assert (run.path, names) == ("/runs/caf?", [key.case_id, "half ?"])


def test_a_run_that_is_there_is_replaced(index: str) -> None:
    add_run(index, a_run("run", {"one": "pn", "two": "p"}))
    resumed = a_run("run", {"one": "pf"})
    add_run(index, resumed)
    with open_index(index, write=False) as reading:
        assert all_runs(reading) == [resumed]


def test_what_fails_in_the_middle_leaves_nothing_behind(index: str) -> None:
    add_run(index, a_run("run", {"one": "p"}))
    with suppress(ZeroDivisionError), open_index(index, write=True) as writing:
        writing.execute("DELETE FROM skillup_runs_5")
        raise ZeroDivisionError
    with open_index(index, write=False) as reading:
        assert len(all_runs(reading)) == 1


def test_a_run_that_cannot_be_read_is_no_defect_of_skillups(index: str) -> None:
    add_run(index, a_run("run", {"one": "p"}))
    with open_index(index, write=True) as writing:
        writing.execute("UPDATE skillup_runs_5 SET outcomes = '{}'")
    with (
        pytest.raises(IndexTroubleError, match="validation error"),
        open_index(index, write=False) as reading,
    ):
        all_runs(reading)


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
    with open_index(index, write=False) as reading:
        runs = {run.run_id: run for run in all_runs(reading)}
    assert len(runs) == 16
    assert len(runs["shared"].trials) == 60


def test_paths_that_cannot_be_looked_at_here_do_not_end_a_rebuild(tmp_path: Path) -> None:
    """As of other machines' runs, or in other users' homes."""
    url = str(tmp_path / "index.sqlite")
    for run_id, path in (("1", f"/{'n' * 300}"), ("2", str(tmp_path / "gone"))):
        add_run(url, a_run(run_id, {"one": "p"}, path=path))
    assert list(rebuild(url, tmp_path / "runs")) == []
    with open_index(url, write=False) as reading:
        assert len(all_runs(reading)) == 2


def test_no_index_says_how_to_make_one(tmp_path: Path) -> None:
    with (
        pytest.raises(IndexTroubleError, match="there is no index") as raised,
        open_index(str(tmp_path / "none.sqlite"), write=False),
    ):
        pass
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
