"""Descendants that hide, and what a killed skillup left: found, ended and reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from skillup.process.run import run_process
from skillup.process.tree import (
    ProcessRow,
    end_leftovers,
    process_register,
    read_row,
    read_table,
    row_of_psutil,
    send_signal,
)
from tests.support.children import GUARD_SECONDS, Children, is_alive

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs adopted orphans")

# A tool that throws its environment away; "hidden" is how it notes itself.
BARE = """
def bare(env={}):
    note("hidden")
    os.execve("/bin/sleep", ["sleep", "300"], env)
"""


@pytest.mark.parametrize("read", [read_row, row_of_psutil])
def test_a_row_says_who_a_process_is_and_whether_it_is_dead(
    read: Callable[[int], ProcessRow | None],
) -> None:
    row = read(os.getpid())
    assert row is not None
    assert (row.pid, row.parent, row.zombie) == (os.getpid(), os.getppid(), False)
    assert row.session == os.getsid(0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        row = read(child.pid)
        assert row is not None
        assert not row.zombie
        child.send_signal(signal.SIGKILL)
        while (row := read(child.pid)) is not None and not row.zombie:
            pass
        assert row is not None
    assert read(child.pid) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process name itself")
def test_a_name_with_spaces_and_parentheses_confuses_nobody() -> None:
    program = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) R (b c', 0, 0, 0); print(1); input()"
    with subprocess.Popen(
        [sys.executable, "-uc", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        row = read_row(child.pid)
        assert row is not None
        assert (row.name, row.parent) == ("a) R (b c", os.getpid())
        child.kill()


def test_a_pid_used_again_is_another_process() -> None:
    with subprocess.Popen(["sleep", "300"]) as child:
        row = read_table()[child.pid]
        send_signal(row._replace(started=row.started - 100), signal.SIGKILL)
        send_signal(row, signal.SIGTERM)
    assert child.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("daemon(lambda: (close_output(), linger()))", id="not on the pipes"),
        pytest.param(
            "daemon(lambda: (ignore(signal.SIGINT, signal.SIGTERM), linger()))",
            id="forked twice, without parent, and ignores polite signals",
        ),
        pytest.param(
            "detached(lambda: (note(), [say('on') or time.sleep(0.05) for _ in range(999)]))",
            id="writes on and on",
        ),
    ],
)
def test_what_outlives_a_normal_exit_is_ended_and_named(children: Children, body: str) -> None:
    lines: list[bytes] = []
    outcome = children.run(f"{body}; wait_for_notes(2); say('after')", lines.append)
    assert (outcome.ended_by, outcome.exit_code) == ("exit", 0)
    assert b"after" in lines
    (left,) = outcome.leftover
    assert left.pid in children.pids()
    assert left.name
    assert outcome.survivors == ()


def test_helpers_that_end_with_their_parent_are_no_leftovers(children: Children) -> None:
    body = """
        ours, theirs = os.pipe()
        def helper():
            os.close(theirs)
            os.read(ours, 1)  # until the parent is gone
            os._exit(0)
        detached(helper)
        time.sleep(0.3)
    """
    assert children.run(body).leftover == ()


@linux_only
def test_an_orphan_that_changed_its_environment_is_found(
    children: Children, tmp_path: Path
) -> None:
    """S7: a child with the marker changed and a session of its own survived the run.

    And many short-lived orphans leave no zombies.
    """
    marker = {"SKILLUP_TRIAL_MARKER": "1-2", "SKILLUP_OWNER": "1-2"}
    body = "for _ in range(20): daemon(lambda: time.sleep(0.01))\n"
    body += f"{BARE}daemon(lambda: bare({marker}))\nwait_for_notes(2)"
    before = len(psutil.Process().children())
    with process_register(tmp_path / "processes", own_process=True):
        outcome = children.run(body)
    assert [left.pid for left in outcome.leftover] == children.pids("hidden")
    assert not is_alive(children.pids("hidden")[0])
    assert len(psutil.Process().children()) == before


def test_a_process_without_parent_and_environment_is_known_by_its_session(
    children: Children,
) -> None:
    body = f"{BARE}if os.fork() == 0: os.fork() or bare(); os._exit(0)\nwait_for_notes(2)"
    outcome = children.run(body)
    assert [left.pid for left in outcome.leftover] == children.pids("hidden")


def test_a_wrapper_that_dies_first_hides_neither_its_program_nor_its_successors(
    children: Children,
) -> None:
    """Like the node wrapper of a CLI; and a program that forks whenever it is to stop."""
    body = """
        def stop(*_):
            pid = os.fork()
            if pid == 0:
                os.setsid()
                note("successor")
                watch()
            os._exit(0)
        def watch():
            signal.signal(signal.SIGINT, stop)
            signal.signal(signal.SIGTERM, stop)
            note("program")
            while True: time.sleep(1)
        detached(watch)
        wait_for_notes(2)
        time.sleep(300)
    """
    outcome = children.run(body, timeout_seconds=1.5)
    assert (outcome.ended_by, outcome.signal) == ("timeout", signal.SIGINT)
    assert len(outcome.leftover) >= 1
    assert outcome.survivors == ()


def test_the_end_of_one_turn_does_not_touch_another(children: Children) -> None:
    async def both() -> None:
        async def longer() -> None:
            body = """
                daemon(linger)
                while not os.path.exists("first-is-over"): time.sleep(0.01)
            """
            outcome = await run_process(children.request(body))
            assert len(outcome.leftover) == 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(longer)
            mine = await anyio.to_thread.run_sync(children.wait_for_pids, 2)
            outcome = await run_process(children.request("daemon(linger); wait_for_notes(4)"))
            assert len(outcome.leftover) == 1
            assert sorted(process.pid for process in children.alive()) == mine
            await anyio.Path(children.directory / "first-is-over").touch()

    anyio.run(both)
    children.assert_none_left()


@linux_only
def test_an_orphan_that_two_turns_may_have_started_waits_for_the_older(
    children: Children, tmp_path: Path
) -> None:
    async def both() -> None:
        async def older() -> None:
            body = f"wait_for_notes(2)\n{BARE}daemon(bare)\n"
            body += "while not os.path.exists('younger-is-over'): time.sleep(0.01)"
            outcome = await run_process(children.request(body))
            assert [left.name for left in outcome.leftover] == ["sleep"]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(older)
            await anyio.to_thread.run_sync(children.wait_for_pids, 1)
            outcome = await run_process(children.request("wait_for_notes(3)"))
            assert outcome.leftover == ()
            assert psutil.pid_exists(children.pids("hidden")[0])
            await anyio.Path(children.directory / "younger-is-over").touch()

    with process_register(tmp_path / "processes", own_process=True):
        anyio.run(both)
    assert not any(is_alive(pid) for pid in children.pids())


@pytest.fixture
def register(tmp_path: Path) -> Path:
    return tmp_path / "state" / "processes"


@contextmanager
def owner(children: Children, register: Path, body: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program like skillup, in a process of its own, that runs ``body``."""
    program = f"""
        import anyio
        from pathlib import Path
        from skillup.process.run import ProcessRequest, run_process
        from skillup.process.tree import process_register
        argv = (sys.executable, {str(children.script(body))!r})
        with process_register(Path({str(register)!r})):
            anyio.run(run_process, ProcessRequest(argv, Path.cwd(), dict(os.environ)))
    """
    argv = [sys.executable, str(children.script(program))]
    with subprocess.Popen(argv, env=children.env) as process:
        try:
            yield process
        finally:
            process.kill()


HIDING = (
    "daemon(lambda: (close_output(), linger())); detached(linger); ignore(signal.SIGPIPE); linger()"
)


def test_what_a_killed_owner_left_is_ended_and_a_live_one_is_not_disturbed(
    children: Children, register: Path
) -> None:
    with ExitStack() as owners:
        killed = owners.enter_context(owner(children, register, HIDING))
        first = set(children.wait_for_pids(4))
        alive = owners.enter_context(owner(children, register, HIDING))
        second = set(children.wait_for_pids(8)) - first
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        ended = end_leftovers(register, grace_seconds=0.3)
        assert {left.pid for left in ended} == first - {killed.pid}
        assert end_leftovers(register) == []
        assert alive.poll() is None
        assert {process.pid for process in children.alive()} == second
        alive.send_signal(signal.SIGINT)
        alive.wait(GUARD_SECONDS)
    children.assert_none_left()
    assert list(register.iterdir()) == []


def test_a_register_of_our_own_one_of_the_dead_and_those_of_others(register: Path) -> None:
    assert end_leftovers(register) == []
    with process_register(register):
        (file,) = register.iterdir()
        stale = json.loads(file.read_text(encoding="utf-8"))
        assert stale["pid"] == os.getpid()
        assert end_leftovers(register) == []
        assert file.exists()
    assert list(register.iterdir()) == []

    # A pid that another process has now counts as dead.
    stale |= {"started": stale["started"] - 1000, "owner": "of-long-ago"}
    foreign = {"pid": 1, "started": 5.0, "owner": "theirs", "host": "elsewhere.invalid"}
    for name, content in {"a": stale, "b": foreign, "c": [1]}.items():
        (register / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (register / "d.json").write_text("{", encoding="utf-8")
    assert end_leftovers(register) == []
    assert sorted(file.stem for file in register.iterdir()) == ["b", "c", "d"]


LIKE_SKILLUP = """
import anyio, json, subprocess
from pathlib import Path
from skillup.process.run import ProcessRequest, run_process
from skillup.process.tree import process_register
async def two_turns():
    async with anyio.create_task_group() as group:
        for _ in range(2):
            argv = (sys.executable, {script!r})
            group.start_soon(run_process, ProcessRequest(argv, Path.cwd(), dict(os.environ)))
"""


def hidden_pids(directory: Path) -> list[int]:
    return [int(file.read_text()) for file in directory.glob("*.hidden")]


def hiding(directory: Path, env: dict[str, str] | None) -> str:
    """An agent that starts a sleep in a session of its own; and ends once two have."""
    return f"""
        import subprocess
        hidden = subprocess.Popen(["sleep", "300"], env={env!r}, start_new_session=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{directory}/{{os.getpid()}}.hidden", "w") as file:
            file.write(str(hidden.pid))
        while len([n for n in os.listdir({str(directory)!r}) if n.endswith(".hidden")]) < 2:
            time.sleep(0.01)
        os._exit(0)
    """


@linux_only
def test_orphans_that_no_turn_could_claim_are_ended_with_the_last(
    children: Children, register: Path, tmp_path: Path
) -> None:
    """S7: whatever marker they bear; in skillup's own process every orphan is an agent's."""
    forged = {"SKILLUP_TRIAL_MARKER": "1-2", "SKILLUP_OWNER": "1-2"}
    program = LIKE_SKILLUP.format(script=str(children.script(hiding(tmp_path, forged))))
    program += f"with process_register(Path({str(register)!r}), own_process=True):"
    program += " anyio.run(two_turns)"
    subprocess.run([sys.executable, str(children.script(program))], env=children.env, check=True)

    assert len(hidden_pids(tmp_path)) == 2
    assert not [pid for pid in hidden_pids(tmp_path) if is_alive(pid)]


def test_what_a_host_program_starts_itself_is_left_alone(
    children: Children, register: Path, tmp_path: Path
) -> None:
    """F3: a child in a session of its own, and a daemon whose parent died, started during turns."""
    program = LIKE_SKILLUP.format(script=str(children.script(hiding(tmp_path, None))))
    program += f"""
async def main():
    async with anyio.create_task_group() as group:
        group.start_soon(two_turns)
        child = subprocess.Popen(["sleep", "300"], start_new_session=True, stdout=2)
        daemon = "sleep 300 >/dev/null 2>&1 & echo $!"
        argv = ["sh", "-c", daemon]
        shown = subprocess.run(argv, start_new_session=True, capture_output=True, text=True)
        print(json.dumps([child.pid, int(shown.stdout)]), flush=True)
with process_register(Path({str(register)!r})):
    anyio.run(main)
"""
    argv = [sys.executable, str(children.script(program))]
    done = subprocess.run(argv, env=children.env, check=True, stdout=subprocess.PIPE)

    started = json.loads(done.stdout)
    try:
        assert [pid for pid in started if psutil.pid_exists(pid)] == started
        assert not [pid for pid in hidden_pids(tmp_path) if is_alive(pid)]
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
