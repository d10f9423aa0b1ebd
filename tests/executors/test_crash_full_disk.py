"""A full disk is the trouble of no case: the run ends, says so, and can be gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.crashes import differences, finished, missing_blobs
from tests.support.project import Outcome, Project
from tests.support.small_disk import run_with_small_disk

SMALL = """
    input: {{turns: [one, two]}}
    assertions: [{{contains: done}}, {{files_exist: [out.txt]}}]
    scripted:
      - turn: 1
        steps: [{{run: "echo {name} >> {log}"}}]
        say: one
      - turn: 2
        steps: [{{write: {{path: out.txt, content: x}}}}]
        say: done
    """
GREEDY = """
    input: {prompt: go}
    assertions: [{contains: done}]
    scripted:
      - steps: [{run: "head -c 8000000 /dev/zero > big.bin || exit 1"}]
        say: done
    """
SMALL_CASES = ("a", "b", "c")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where agents say that they were asked."""
    path = tmp_path / "log.txt"
    path.touch()
    return path


@pytest.fixture
def suite(project: Project, log: Path) -> Project:
    """Some small conversations; `z` is to be the one that needs room."""
    cases = {f"{name}.yaml": SMALL.format(name=name, log=log) for name in SMALL_CASES}
    return project.write({"eval.yaml": "name: full\n", **cases})


def expect_stopped(outcome: Outcome, run: str, says: str) -> None:
    """It ended as infrastructure does, said why, and how to go on."""
    assert outcome.exit_code == 3, outcome.stderr
    assert says in outcome.stderr
    assert "free some space" in outcome.stderr or "ulimit -f" in outcome.stderr
    assert f"skillup run --resume {run}" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def expect_completed(
    project: Project,
    run: Path,
    log: Path,
    before: dict[str, bytes],
    env: dict[str, str] | None = None,
) -> None:
    """`--resume` ran the rest, nothing that had finished, and came to what `calm` came to."""
    before_it = log.read_text(encoding="utf-8").split()
    outcome = project.run("run", "--resume", str(run), env=env)
    assert outcome.exit_code == 0, outcome.stderr
    after = finished(run)
    assert {name: after[name] for name in before} == before
    again = log.read_text(encoding="utf-8").split()[len(before_it) :]
    assert not {Path(name).parts[1] for name in before} & set(again)
    assert differences(project.root / "calm", run) == ""
    assert missing_blobs(run) == []


@pytest.mark.slow
def test_an_agent_that_fills_the_disk_it_works_on_gets_no_verdict(
    suite: Project, log: Path
) -> None:
    suite.write({"z.yaml": GREEDY})
    roomy = {"TMPDIR": str(suite.root / "disk")}  # the same place, where nothing is mounted
    (suite.root / "disk").mkdir()
    assert suite.run("run", ".", "--out", "calm", env=roomy).exit_code == 0
    script = 'TMPDIR="$DISK" $SKILLUP run . -j 1 --out out'
    outcome = run_with_small_disk(suite, script, megabytes=4)
    run = suite.root / "out"
    expect_stopped(outcome, str(run), "no room is left on the disk of ")
    before = finished(run)
    assert {Path(name).parts[1] for name in before} == set(SMALL_CASES)
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    ended = {event["job"].split("/")[0] for event in events if event["event"] == "trial_finished"}
    assert ended == set(SMALL_CASES)
    expect_completed(suite, run, log, before, roomy)


@pytest.mark.slow
def test_a_run_directory_on_a_full_disk_loses_nothing_that_was_in_it(
    suite: Project, log: Path
) -> None:
    suite.write({f"d{n}.yaml": SMALL.format(name=f"d{n}", log=log) for n in range(12)})
    assert suite.run("run", ".", "--out", "calm").exit_code == 0
    script = """
        head -c 980000 /dev/zero > "$DISK/ballast"
        $SKILLUP run . -j 1 --out "$DISK/out"; echo "code $?"
        while head -c 4096 /dev/zero >> "$DISK/ballast"; do :; done 2> /dev/null
        $SKILLUP run --resume "$DISK/out"; echo "code $?"
        rm "$DISK/ballast"
        cp -r "$DISK/out" before
        $SKILLUP run --resume "$DISK/out" >&2; echo "code $?"
        cp -r "$DISK/out" after
        """
    outcome = run_with_small_disk(suite, script, megabytes=1)
    assert outcome.stdout.splitlines()[:2] == ["code 3", "code 3"], outcome
    assert "No space left on device" in outcome.stderr
    assert "free some space" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert outcome.stdout.splitlines()[-1] == "code 0", outcome.stderr
    before, after = finished(suite.root / "before"), finished(suite.root / "after")
    assert before
    assert len(before) < len(after)
    assert {name: after[name] for name in before} == before
    assert differences(suite.root / "calm", suite.root / "after") == ""
    assert missing_blobs(suite.root / "after") == []
