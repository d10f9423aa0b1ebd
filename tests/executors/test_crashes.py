"""kill -9 at moments that nobody chose, and full disks: a run loses nothing, and goes on."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from skillup.store import RunDirectory
from tests.support.differences import differences
from tests.support.project import GUARD_SECONDS, Outcome, Project

pytestmark = pytest.mark.slow

KILLS = 8
CASES = 8
CASE = """
    id: {name}
    tags: [crash]
    context: {{files: {{"seed.txt": "{name}"}}}}
    input:
      turns:
        - content: count for {name}
          capture: [{{variable: count, pattern: '(\\d+) files'}}]
          assertions: [{{contains: files}}]
        - content: write <<count>>
          post_condition: {{must_contain_any: [wrote]}}
          assertions: [{{tool_called: {{kind: write}}}}]
        - content: finish
          assertions:
            - prompt: say more
              assertions: [{{contains: more}}]
              contains: {follow_up}
    assertions: [{{files_exist: [out.txt]}}, {{contains: done}}]
    scripted:
      - when: say more
        say: there is more
      - turn: 1
        steps: [{{run: "echo {name} 1 >> {log}"}}, {{delay: 0.05}}]
        say: "there are {number} files"
      - turn: 2
        steps: [{{write: {{path: out.txt, content: "{name}"}}}}, {{run: "echo {name} 2 >> {log}"}}]
        say: wrote it
      - turn: 3
        steps: [{{delay: 0.05}}, {{run: "echo {name} 3 >> {log}"}}]
        say: done with {name}
    """
RETRIED = """
    id: {name}
    input: {{turns: [one, two]}}
    assertions: [{{contains: done}}]
    scripted:
      - turn: 1
        say: one
      - turn: 2
        misbehave: {{error: model_error, times: 1}}
        steps: [{{run: "echo {name} 3 >> {log}"}}]
        say: done
    """


def make_suite(project: Project, log: Path) -> None:
    """Conversations with captures, files, gates, follow-ups, retries and dependencies."""
    retries = "cases: {retry_policy: {max_retries: 1, retry_on: [model_error]}}\n"
    files = {"eval.yaml": "name: crashes\n" + retries}
    for number in range(CASES):
        name = f"c{number}"
        says = "done" if number % 2 else "nothing of the kind"
        files[f"{name}.yaml"] = CASE.format(name=name, number=number, log=log, follow_up=says)
    files["again.yaml"] = RETRIED.format(name="again", log=log)
    files["after.yaml"] = (
        "id: after\ndepends_on: [c1]\ninput: {prompt: go}\n"
        "assertions: [{contains: 'no'}]\nscripted: [{say: yes}]\n"
    )
    project.write(files)


def test_however_often_it_is_killed_the_run_is_that_of_an_undisturbed_one(
    project: Project, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    log.touch()
    make_suite(project, log)
    calm = project.run("run", ".", "-j", "4", "--out", "calm", "--quiet")
    assert calm.exit_code == 1, calm.stderr
    log.write_text("")

    lots = random.Random(20261121)
    wild = project.root / "wild"
    kept: dict[str, bytes] = {}
    sides: dict[str, Counter[str]] = {}
    kills = 0
    while kills < KILLS:
        made = (wild / "run.sqlite").exists()
        arguments = ["--resume", "wild"] if made else [".", "--out", "wild"]
        kills += killed(project, wild, ["run", *arguments, "-j", "4", "--quiet"], lots)
        now = finished(wild)
        assert {name: now.get(name) for name in kept} == kept, "a finished trial changed"
        kept = now
        ran = effects(log)
        for name in (job.split("/")[0] for job in now):
            sides.setdefault(name, ran[name])

    outcome = project.run("run", "--resume", "wild", "-j", "4", "--json")
    assert outcome.exit_code == 1, outcome.stderr
    assert differences(project.root / "calm", wild) == ""
    assert {name: finished(wild)[name] for name in kept} == kept
    ran = effects(log)
    assert {name: ran[name] for name in sides} == sides, "a finished trial ran again"
    assert missing_blobs(wild) == []
    assert not (wild / "scratch").is_symlink()


def effects(log: Path) -> dict[str, Counter[str]]:
    """By case, what its agents did outside of their workspaces: each turn, how often."""
    found: dict[str, Counter[str]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        name, turn = line.split()
        found.setdefault(name, Counter())[turn] += 1
    names = [*(f"c{n}" for n in range(CASES)), "again", "after"]
    return {name: found.get(name, Counter()) for name in names}


def killed(project: Project, run: Path, arguments: list[str], lots: random.Random) -> bool:
    """Starts it, and kills it: in one of five while it starts, else while it holds trials.

    That is up to 0.3 s after it has opened its run directory; False: it had ended.
    """
    before = opened(run)
    with project.start(*arguments) as process:
        end = time.monotonic() + GUARD_SECONDS
        at_once = lots.random() < 0.2
        while not at_once and opened(run) == before and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.005)
        time.sleep(lots.uniform(0.0, 0.3))
        alive = process.poll() is None
        process.kill()
        process.wait()
    return alive


def opened(run: Path) -> int:
    """How often the run has been made or opened, as its journal says."""
    if not (run / "run.sqlite").exists():
        return 0
    with RunDirectory.open(run) as directory:
        return sum(
            event["event"] in ("run_created", "run_reopened") for event in directory.events()
        )


# A full disk is the trouble of no case: the run ends, says so, and can be gone on with.

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
    assert outcome.exit_code == 3, outcome.stderr
    says = ("no room is left on the disk of ", "free some space", f"run --resume {run}")
    assert [text for text in says if text not in outcome.stderr] == []
    assert "Traceback" not in outcome.stderr
    before = finished(run)
    assert {job.split("/")[0] for job in before} == set(SMALL_CASES)
    ended = {e["job"].split("/")[0] for e in suite.journal("trial_finished", run="out")}
    assert ended == set(SMALL_CASES)
    # The rest runs, nothing that had finished, and comes to what `calm` came to.
    asked = log.read_text().split()
    outcome = suite.run("run", "--resume", str(run), env=roomy)
    assert outcome.exit_code == 0, outcome.stderr
    assert {name: finished(run)[name] for name in before} == before
    assert not set(SMALL_CASES) & set(log.read_text().split()[len(asked) :])
    assert differences(suite.root / "calm", run) == ""
    assert missing_blobs(run) == []


def test_a_run_directory_on_a_full_disk_loses_nothing_that_was_in_it(
    suite: Project, log: Path
) -> None:
    suite.write({f"d{n}.yaml": SMALL.format(name=f"d{n}", log=log) for n in range(12)})
    assert suite.run("run", ".", "--out", "calm").exit_code == 0
    script = """
        head -c 1500000 /dev/zero > "$DISK/ballast"
        $SKILLUP run . -j 1 --out "$DISK/out"; echo "code $?"
        while head -c 4096 /dev/zero >> "$DISK/ballast"; do :; done 2> /dev/null
        $SKILLUP run --resume "$DISK/out"; echo "code $?"
        rm "$DISK/ballast"
        cp -r "$DISK/out" before
        $SKILLUP run --resume "$DISK/out" >&2; echo "code $?"
        cp -r "$DISK/out" after
        """
    outcome = run_with_small_disk(suite, script, megabytes=2)
    assert outcome.stdout.splitlines()[:2] == ["code 3", "code 3"], outcome
    assert outcome.stderr.count("database or disk is full") == 2
    assert outcome.stderr.count("free some space") == 2
    assert "Traceback" not in outcome.stderr
    assert outcome.stdout.splitlines()[-1] == "code 0", outcome.stderr
    before, after = finished(suite.root / "before"), finished(suite.root / "after")
    assert before
    assert len(before) < len(after)
    assert {name: after[name] for name in before} == before
    assert differences(suite.root / "calm", suite.root / "after") == ""
    assert missing_blobs(suite.root / "after") == []


def namespace() -> list[str]:
    """The command that may mount, as root or as anybody where the kernel lets them."""
    if sys.platform == "linux" and shutil.which("unshare"):
        for way in (["unshare", "-rm"], ["unshare", "-m"]):
            tried = subprocess.run(
                [*way, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False
            )
            if tried.returncode == 0:
                return way
    pytest.skip("nobody may mount here: neither root, nor others in a namespace of their own")


def run_with_small_disk(project: Project, script: str, *, megabytes: int) -> Outcome:
    """`sh -c SCRIPT` in the project, where `$DISK` is a file system of so many megabytes.

    It is gone afterwards. `$SKILLUP` is the command line.
    """
    disk = str(project.root / "disk")
    Path(disk).mkdir(exist_ok=True)
    mount = f'mount -t tmpfs -o size={megabytes}m none "$DISK" && '
    env = {"DISK": disk, "SKILLUP": f"{sys.executable} -m skillup"}
    done = project.shell(*namespace(), "sh", "-c", mount + script, env=env)
    return Outcome(done.returncode, done.stdout, done.stderr)


def missing_blobs(run: Path) -> list[str]:
    """Contents of files that a record names and the run has not, or has otherwise."""
    with RunDirectory.open(run) as directory:
        records = [found.record() for found in directory.finished()]
        lists = [record.initial_files for record in records]
        lists += [turn.files for record in records for turn in record.turns]
        states = [state for files in lists for state in (files or {}).values()]
        named = {state.sha256 for state in states if state.kept and state.sha256 is not None}
        assert named
        return sorted(sha for sha in named if directory.blobs.get(sha) is None)


def finished(run: Path) -> dict[str, bytes]:
    """By job, the records."""
    if not (run / "run.sqlite").exists():
        return {}
    with RunDirectory.open(run) as directory:
        return {found.job_id: found.record_json for found in directory.finished()}
