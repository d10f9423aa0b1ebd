"""Damaged files, limits of the system: a clear message each."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillup.cli.entry import run_app
from tests.support.project import GUARD_SECONDS, Project

CASE = "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}"
TRIAL = "trials/a/scripted/with_skill/1"
FILES = ("run.json", "result.json", "events.jsonl", f"{TRIAL}/record.json", f"{TRIAL}/grading.json")
FEW = 'ulimit -n 40; exec "$@"'
VALUES: list[Any] = [
    None,
    0,
    -1,
    1e308,
    True,
    "",
    [],
    {},
    "x",
    [[]],
    {"a": 1},
    "\ud800",
    10**30,
    [None],
]
VERBS = (
    ["judge", "damaged", "--json"],
    ["show", "damaged"],
    ["report", "damaged", "--report", "html,markdown,junit"],
    ["compare", "whole", "damaged"],
    ["run", "--resume", "damaged", "-q"],
)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, part in items:
        yield from places(part, (*place, key))


def damage(file: Path, lots: random.Random) -> object:
    """One value is another, or missing; or some bytes are others, and the end is missing."""
    if file.suffix == ".json" and lots.random() < 0.8:
        whole = json.loads(file.read_bytes())
        place, new = lots.choice(list(places(whole))[1:]), lots.choice(VALUES)
        around = whole
        for key in place[:-1]:
            around = around[key]
        if lots.random() < 0.3:
            del around[place[-1]]
        else:
            around[place[-1]] = new
        file.write_text(json.dumps(whole))
        return file.name, place, new
    data = bytearray(file.read_bytes())
    for _ in range(3):
        data[lots.randrange(len(data))] = lots.randrange(256)
    file.write_bytes(data[: lots.randrange(len(data))])
    return file.name, bytes(data)


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
    for number in range(40):
        shutil.rmtree("damaged", ignore_errors=True)
        shutil.copytree("whole", "damaged", symlinks=True)
        what = damage(Path("damaged") / FILES[number % len(FILES)], lots)
        if number % 2:
            (Path("damaged") / "events.jsonl").unlink()
        for verb in VERBS:
            assert run_app(verb) in (0, 1, 2, 3), (what, verb)
            assert "skillup itself failed" not in capsys.readouterr().err, (what, verb)


@pytest.mark.parametrize("verb", ["run", "judge", "show", "view"])
def test_a_name_that_is_too_long_is_the_users(project: Project, verb: str) -> None:
    """S13."""
    outcome = project.run(verb, "x" * 100_000)
    assert outcome.exit_code == 2
    assert "itself failed" not in outcome.stderr


def test_too_few_open_files_are_not_called_a_full_disk(project: Project) -> None:
    """S13: it was "see that the disk has room"."""
    case = 'scripted: [{steps: [{run: "sleep 0.5"}], say: y}]\ninput: {prompt: x}\n'
    project.write({"eval.yaml": "name: s\n", **{f"cases/{n}.yaml": case for n in range(14)}})
    done = subprocess.run(
        ["sh", "-c", FEW, "sh", sys.executable, "-m", "skillup", "run", ".", "-j", "14"],
        cwd=project.root, env=project.environment(), capture_output=True, text=True,
        timeout=GUARD_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 3)
    assert "disk" not in done.stderr
    assert "itself failed" not in done.stderr
