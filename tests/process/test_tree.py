"""Descendants that hide: each is found, ended and reported, and nobody else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil
import pytest

from skillup.process import ProcessRegister, run_process
from tests.support.children import Children, is_alive

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs adopted orphans")


@pytest.fixture
def own_process(tmp_path: Path) -> Iterator[None]:
    """As in a process of skillup's own, where orphans are adopted."""
    with ProcessRegister(tmp_path / "processes", own_process=True):
        yield


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("detached(linger); wait_for_notes(2)", id="in a session of its own"),
        pytest.param("daemon(linger); wait_for_notes(2)", id="forked twice, without parent"),
        pytest.param(
            "daemon(lambda: (close_output(), linger())); wait_for_notes(2)", id="not on the pipes"
        ),
        pytest.param(
            "daemon(lambda: (ignore(signal.SIGINT, signal.SIGTERM), linger())); wait_for_notes(2)",
            id="ignores polite signals",
        ),
    ],
)
def test_what_outlives_a_normal_exit_is_ended_and_named(children: Children, body: str) -> None:
    lines: list[bytes] = []
    outcome = children.run(f"say('before')\n{body}\nsay('after')", lines.append)
    assert (outcome.ended_by, outcome.exit_code) == ("exit", 0)
    assert lines == [b"before", b"after"]
    main, lingering = children.pids() if len(children.pids()) == 2 else (0, 0)
    assert {left.pid for left in outcome.leftover} <= {main, lingering}
    assert len(outcome.leftover) == 1
    assert outcome.leftover[0].name
    assert outcome.survivors == ()


def test_output_of_a_leftover_that_holds_the_pipe_is_not_waited_for(children: Children) -> None:
    lines: list[bytes] = []
    body = """
        def hold():
            note()
            while True:
                say("still here")
                time.sleep(0.05)
        detached(hold)
        wait_for_notes(2)
        say("main is done")
    """
    outcome = children.run(body, lines.append)
    assert b"main is done" in lines
    assert len(outcome.leftover) == 1


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
@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("marker", [{}, {"SKILLUP_TRIAL_MARKER": "1-2", "SKILLUP_OWNER": "1-2"}])
def test_an_orphan_that_changed_its_environment_is_found(
    children: Children, marker: dict[str, str]
) -> None:
    """S7: a child with the marker changed and a session of its own survived the run."""
    body = f"""
        def bare():
            note()
            os.execve("/bin/sleep", ["sleep", "300"], {marker})
        daemon(bare)
        wait_for_notes(2)
    """
    outcome = children.run(body)
    assert [left.pid for left in outcome.leftover] == [children.pids()[-1]]
    assert not is_alive(children.pids()[-1])


def test_a_tool_without_environment_that_was_seen_alive_is_found(children: Children) -> None:
    body = """
        def bare():
            note()
            os.execve("/bin/sleep", ["sleep", "300"], {})
        detached(bare)
        wait_for_notes(2)
        time.sleep(0.8)
    """
    outcome = children.run(body)
    assert [left.pid for left in outcome.leftover] == [children.pids()[-1]]


def test_a_turn_within_the_turn_ends_with_it(children: Children) -> None:
    """An agent may run skillup itself: what that left carries another marker, and is still ours."""
    body = """
        def nested():
            note()
            os.execve("/bin/sleep", ["sleep", "300"], {"SKILLUP_TRIAL_MARKER": "nested"})
        detached(nested)
        wait_for_notes(2)
        time.sleep(0.8)
    """
    outcome = children.run(body)
    assert [left.pid for left in outcome.leftover] == [children.pids()[-1]]


def test_a_wrapper_that_dies_first_does_not_hide_its_program(children: Children) -> None:
    """Like the node wrapper of a CLI: killed at once, while the real program works on."""
    body = """
        def program():
            ignore(signal.SIGINT)
            linger()
        detached(program)
        wait_for_notes(2)
        time.sleep(300)
    """
    outcome = children.run(body, timeout_seconds=1.5)
    assert (outcome.ended_by, outcome.signal) == ("timeout", signal.SIGINT)
    assert [left.pid for left in outcome.leftover] == [children.pids()[-1]]


def test_a_program_that_forks_a_successor_whenever_it_is_told_to_stop(children: Children) -> None:
    body = """
        def stop(*_):
            pid = os.fork()
            if pid == 0:
                os.setsid()
                note("successor")
                signal.signal(signal.SIGINT, stop)
                signal.signal(signal.SIGTERM, stop)
                while True: time.sleep(1)
            os._exit(0)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)
        say("ready")
        while True: time.sleep(1)
    """
    outcome = children.run(body, timeout_seconds=1.5)
    assert outcome.ended_by == "timeout"
    assert len(outcome.leftover) >= 1
    assert outcome.survivors == ()


def test_a_stopped_process_is_ended_too(children: Children) -> None:
    body = "os.kill(os.getpid(), signal.SIGSTOP)"
    assert children.run(body, timeout_seconds=1).signal == signal.SIGKILL


@pytest.mark.usefixtures("own_process")
def test_many_short_lived_orphans_leave_no_zombies(children: Children) -> None:
    before = len(psutil.Process().children())
    children.run("for _ in range(50): daemon(lambda: time.sleep(0.01))\ntime.sleep(0.2)")
    assert len(psutil.Process().children()) == before


def test_the_end_of_one_turn_does_not_touch_another(children: Children) -> None:
    async def both() -> None:
        first_is_over = anyio.Path(children.directory / "first-is-over")

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
            await first_is_over.touch()

    anyio.run(both)
    children.assert_none_left()


@linux_only
@pytest.mark.usefixtures("own_process")
def test_an_orphan_that_two_turns_may_have_started_waits_for_the_older(children: Children) -> None:
    async def both() -> None:
        async def older() -> None:
            body = """
                wait_for_notes(2)
                def bare():
                    note()
                    os.execve("/bin/sleep", ["sleep", "300"], {})
                daemon(bare)
                while not os.path.exists("younger-is-over"): time.sleep(0.01)
            """
            outcome = await run_process(children.request(body))
            assert [left.name for left in outcome.leftover] == ["sleep"]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(older)
            await anyio.to_thread.run_sync(children.wait_for_pids, 1)
            outcome = await run_process(children.request("wait_for_notes(3)"))
            assert outcome.leftover == ()
            _, _, bare = children.pids()
            assert psutil.pid_exists(bare)
            await anyio.Path(children.directory / "younger-is-over").touch()

    anyio.run(both)
    assert not any(is_alive(pid) for pid in children.pids())


def test_what_was_seen_in_a_turn_is_its_own_though_an_older_one_runs(children: Children) -> None:
    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_process, children.request("time.sleep(300)"))
            await anyio.to_thread.run_sync(children.wait_for_pids, 1)
            body = """
                def bare():
                    note()
                    os.execve("/bin/sleep", ["sleep", "300"], {})
                detached(bare)
                wait_for_notes(3)
                time.sleep(0.8)
            """
            outcome = await run_process(children.request(body))
            assert [left.name for left in outcome.leftover] == ["sleep"]
            tasks.cancel_scope.cancel()

    anyio.run(both)
    assert not any(is_alive(pid) for pid in children.pids())


def test_turns_in_two_threads_keep_apart(children: Children) -> None:
    async def in_threads() -> None:
        def turn(number: int) -> None:
            body = f"daemon(linger); wait_for_notes(2); time.sleep({number} / 10)"
            for _ in range(3):
                outcome = anyio.run(run_process, children.request(body))
                assert (outcome.exit_code, len(outcome.leftover)) == (0, 1)

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(anyio.to_thread.run_sync, turn, number)

    anyio.run(in_threads)
    children.assert_none_left()


def test_children_that_others_started_are_left_alone(children: Children) -> None:
    script = children.script("linger()")
    env = {**os.environ, **children.env}
    with subprocess.Popen([sys.executable, str(script)], env=env, start_new_session=True) as other:
        children.wait_for_pids(1)
        anyio.run(run_process, children.request("daemon(linger); wait_for_notes(3)"))
        assert other.poll() is None
        assert [process.pid for process in children.alive()] == [other.pid]
        other.kill()
    children.assert_none_left()
