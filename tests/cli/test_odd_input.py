"""Whatever is given, and however a run is damaged: a message, and never a traceback."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from skillup.cli.entry import run_app
from skillup.store import RunDirectory
from skillup.store.files import pack, unpack
from tests.support.project import Outcome, Project

SUITE = {
    "s/eval.yaml": "name: s\n",
    "s/a.yaml": "input: {prompt: x}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n",
}

DASK = ["--executor", "dask", "--scheduler"]


def refused(outcome: Outcome) -> str:
    """The message; checks that it is a message, and nothing more."""
    assert outcome.exit_code == 2, outcome.stderr
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert "itself failed" not in outcome.stderr
    return outcome.stderr


@pytest.mark.parametrize("verb", ["run", "validate"])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere", "no such file or folder"),
        ("s/notes.txt", "not a YAML file"),
        ("folder", "no eval.yaml in it or below it"),
        ("binary/eval.yaml", "UTF-8"),
        ("nul/eval.yaml", "#x0000"),
        ("loop/eval.yaml", ""),
        ("pipe/eval.yaml", ""),
    ],
)
def test_a_path_that_is_no_suite(project: Project, verb: str, path: str, said: str) -> None:
    project.write({**SUITE, "s/notes.txt": "x", "nul/eval.yaml": "a: \0\n"})
    for name in ("folder/eval.yaml", "binary", "loop", "pipe"):
        (project.root / name).mkdir(parents=True)
    (project.root / "binary/eval.yaml").write_bytes(Path(sys.executable).read_bytes()[:4096])
    (project.root / "loop/eval.yaml").symlink_to("eval.yaml")
    os.mkfifo(project.root / "pipe/eval.yaml")
    assert said in refused(project.run(verb, path))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "full"], "is not empty"),
        (["--out", "full/file"], "full/file"),
        (["--resume", "nowhere"], "there is no run nowhere"),
        (["--resume", "full"], "is no run directory"),
        (["--resume", "other"], "written by another version"),
        (["--resume", "newer"], "is version 9; this skillup reads version 2"),
        (["--resume", "full", "s"], "--resume goes on with what the run was asked to do"),
        (["--retry-errors"], "--resume RUN"),
        (["--var", "novalue"], "not NAME=VALUE"),
        (["-j", "0"], "--parallel"),
        (["--engine", "nope"], "there is no engine `nope`"),
        (["--engine", "scripted", "--engine", "scripted"], "given twice"),
        (["-k", "zzz"], "no case matches the selection"),
        (["--executor", "slurm"], "the executors are local, dask"),
        (["--executor", "dask"], "dask needs the address"),
        (["--scheduler", "tcp://host:1"], "is for --executor dask only"),
        ([*DASK, "host:8786"], "dask needs the address"),
        ([*DASK, "tcp://h:1", "--keep-workspaces"], "workspaces are on the workers"),
        (["--until-decided"], "--until-decided needs the most trials"),
        (["--trials", "9", "--pass-rate", "0.9"], "--pass-rate 0.9: it says what --until-decided"),
        (["--until-decided", "--trials", "9", "--pass-rate", "1"], "must be between 0 and 1"),
        (["--until-decided", "--trials", "9", "--trials-from-turn", "2"], "does not go with"),
    ],
)
def test_an_option_that_cannot_be(project: Project, arguments: list[str], said: str) -> None:
    project.write({**SUITE, "full/file": "x"})
    for name in ("other", "newer"):
        about = {"run_id": "r", "request": {"bogus": 1}}
        RunDirectory.create(project.root / name, about).close()
    with closing(sqlite3.connect(project.root / "newer/run.sqlite")) as file:
        file.execute("PRAGMA user_version = 9")
    given = [] if "--resume" in arguments else ["s"]
    assert said in refused(project.run("run", *given, *arguments))
    assert not (project.root / ".skillup").exists(), "nothing is begun"


# Damaged files, limits of the system: a clear message each.

CASE = "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}"
COLUMNS = (("run", "json"), ("attempts", "record"), ("attempts", "grade"), ("events", "json"))
DAMAGED: Sequence[str | tuple[str, str]] = ("result.json", "run.sqlite", *COLUMNS)
FEW = 'ulimit -n 40; exec "$@"'
VALUES: list[Any] = [
    None, 0, -1, 1e308, True, "", [], {}, "x", [[]], {"a": 1}, "\ud800", 10**30, [None],
]  # fmt: skip
VERBS = (
    ["judge", "damaged", "--json"],
    ["show", "damaged"],
    ["report", "damaged", "--report", "html,markdown,junit"],
    ["export", "damaged", "--format", "files"],
    ["compare", "whole", "damaged"],
    ["run", "--resume", "damaged", "-q"],
)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, part in items:
        yield from places(part, (*place, key))


def damaged(content: bytes, lots: random.Random) -> bytes:
    """JSON with one value another, or missing; or some bytes are others, and the end is missing."""
    if content[:1] == b"{" and lots.random() < 0.8:
        whole = json.loads(content)
        place, new = lots.choice(list(places(whole))[1:]), lots.choice(VALUES)
        around = whole
        for key in place[:-1]:
            around = around[key]
        if lots.random() < 0.3:
            del around[place[-1]]
        else:
            around[place[-1]] = new
        return json.dumps(whole).encode()
    data = bytearray(content)
    for _ in range(3):
        data[lots.randrange(len(data))] = lots.randrange(256)
    return bytes(data[: lots.randrange(len(data))])


def damage(run: Path, what: str | tuple[str, str], lots: random.Random) -> object:
    """A file of the run, or a value in one column of a table."""
    if isinstance(what, str):
        content = damaged((run / what).read_bytes(), lots)
        (run / what).write_bytes(content)
        return what, content
    table, column = what
    with closing(sqlite3.connect(run / "run.sqlite")) as file, file:
        row, value = lots.choice(file.execute(f"SELECT rowid, {column} FROM {table}").fetchall())
        if isinstance(value, str):
            new: str | bytes = damaged(value.encode(), lots).decode(errors="replace")
        else:
            try:
                new = pack(damaged(unpack(value), lots))
            except ValueError:
                new = damaged(value, lots)
        file.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
    return what, row, new


@pytest.mark.slow
def test_damaged_run_files_are_named_and_never_a_defect_of_ours(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """S13: ten of 730 damaged run files were "skillup itself failed", with any of six verbs."""
    project.write({"eval.yaml": "name: s\n", "cases/a.yaml": CASE, "cases/b.yaml": CASE})
    assert project.run("run", ".", "--out", "whole").exit_code == 0
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("TMPDIR", str(project.root))
    lots = random.Random(13)
    for number in range(28):
        shutil.rmtree("damaged", ignore_errors=True)
        shutil.copytree("whole", "damaged", symlinks=True)
        what = damage(Path("damaged"), DAMAGED[number % len(DAMAGED)], lots)
        for verb in VERBS:
            assert run_app(verb) in (0, 1, 2, 3), (what, verb)
            assert "skillup itself failed" not in capsys.readouterr().err, (what, verb)


@pytest.mark.parametrize("verb", ["run", "judge", "show", "view"])
def test_a_name_that_is_too_long_is_the_users(project: Project, verb: str) -> None:
    """S13."""
    outcome = project.run(verb, "x" * 100_000)
    assert outcome.exit_code == 2
    assert "itself failed" not in outcome.stderr


def test_a_current_directory_that_was_deleted_is_the_users(tmp_path: Path) -> None:
    (gone := tmp_path / "gone").mkdir()
    command = ["sh", "-c", 'rmdir "$1"; exec "$0" -m skillup list', sys.executable, str(gone)]
    done = subprocess.run(command, cwd=gone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-2:]) == (
        2,
        ["error: the current directory is not there any more", "  hint: go to another: cd"],
    )


def test_too_few_open_files_are_not_called_a_full_disk(project: Project) -> None:
    """S13: it was "see that the disk has room"."""
    case = 'scripted: [{steps: [{run: "sleep 0.5"}], say: y}]\ninput: {prompt: x}\n'
    project.write({"eval.yaml": "name: s\n", **{f"cases/{n}.yaml": case for n in range(14)}})
    command = [sys.executable, "-m", "skillup", "run", ".", "-j", "14"]
    done = project.shell("sh", "-c", FEW, "sh", *command)
    assert done.returncode in (0, 3)
    assert "disk" not in done.stderr
    assert "itself failed" not in done.stderr
