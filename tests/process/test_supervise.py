"""run_process: how a process ends, what it says, and what is delivered."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from skillup.process import ProcessRegister, ProcessRequest, run_process
from tests.support.children import GUARD_SECONDS, Children


def test_lines_arrive_in_order_and_the_exit_code_is_told(children: Children) -> None:
    lines: list[bytes] = []
    outcome = children.run("say('one'); say(''); say('three'); sys.exit(7)", lines.append)
    assert lines == [b"one", b"", b"three"]
    assert (outcome.exit_code, outcome.signal, outcome.ended_by) == (7, None, "exit")
    assert outcome.stdout_bytes == len("one\n\nthree\n")
    assert outcome.leftover == outcome.survivors == ()


def test_a_last_line_without_newline_is_delivered(children: Children) -> None:
    lines: list[bytes] = []
    children.run("os.write(1, b'first\\nlast')", lines.append)
    assert lines == [b"first", b"last"]


def test_binary_garbage_passes_through_unchanged(children: Children, tmp_path: Path) -> None:
    lines: list[bytes] = []
    raw = tmp_path / "raw"
    children.run(
        "garbage = bytes(range(256)) * 1000\nsys.stdout.buffer.write(garbage)",
        lines.append,
        stdout_path=raw,
    )
    assert raw.read_bytes() == b"\n".join(lines) == bytes(range(256)) * 1000


def test_lines_arrive_while_the_child_still_runs(children: Children) -> None:
    waited_for = children.directory / "go"

    async def answer(line: bytes) -> None:
        assert line == b"ready"
        await anyio.Path(waited_for).touch()

    body = "say('ready')\nwhile not os.path.exists('go'): time.sleep(0.01)"
    assert children.run(body, answer).exit_code == 0


def test_a_slow_listener_loses_nothing(children: Children) -> None:
    lines: list[bytes] = []

    async def listen(line: bytes) -> None:
        await anyio.sleep(0.001)
        lines.append(line)

    children.run("for number in range(500): say(f'{number} ' + 'x' * 500)", listen)
    assert [int(line.split()[0]) for line in lines] == list(range(500))


def test_a_line_of_100_mb_arrives_whole(children: Children) -> None:
    sizes: list[int] = []
    outcome = children.run(
        "for _ in range(100): sys.stdout.buffer.write(b'x' * 1_000_000)",
        lambda line: sizes.append(len(line)),
    )
    assert sizes == [100_000_000]
    assert outcome.truncated_lines == 0


def test_a_line_over_the_limit_is_cut_and_counted_but_copied_whole(
    children: Children, tmp_path: Path
) -> None:
    lines: list[bytes] = []
    raw = tmp_path / "raw"
    body = "say('a' * 300_000); say('b'); say('c' * 1001)"
    outcome = children.run(body, lines.append, max_line_bytes=1000, stdout_path=raw)
    assert lines == [b"a" * 1000, b"b", b"c" * 1000]
    assert outcome.truncated_lines == 2
    assert raw.stat().st_size == outcome.stdout_bytes == 300_001 + 2 + 1002


def test_raw_copies_and_the_tail_of_stderr_are_kept(children: Children, tmp_path: Path) -> None:
    outcome = children.run(
        "say('out'); os.write(2, b'x' * 20_000 + b' \\xff the end')",
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
    )
    assert (tmp_path / "out").read_bytes() == b"out\n"
    assert (tmp_path / "err").stat().st_size == outcome.stderr_bytes == 20_000 + 10
    assert outcome.stderr_tail.endswith("x \ufffd the end")
    assert len(outcome.stderr_tail) <= 8192


def test_secrets_are_masked_on_disk_in_lines_and_in_the_tail(
    children: Children, tmp_path: Path
) -> None:
    lines: list[bytes] = []
    outcome = children.run(
        "say('key=hunter2'); os.write(2, b'oops hunt'); time.sleep(0.1); os.write(2, b'er2')",
        lines.append,
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
        redact=lambda line: line.replace(b"hunter2", b"***"),
    )
    assert lines == [b"key=***"]
    assert (tmp_path / "out").read_bytes() == b"key=***\n"
    assert (tmp_path / "err").read_bytes() == b"oops ***"
    assert outcome.stderr_tail == "oops ***"


def test_stdin_reaches_the_child_and_is_closed(children: Children) -> None:
    lines: list[bytes] = []
    children.run("say(str(len(sys.stdin.buffer.read())))", lines.append, stdin=b"x" * 200_000)
    children.run("say(str(len(sys.stdin.buffer.read())))", lines.append)
    assert lines == [b"200000", b"0"]


def test_a_child_that_never_reads_its_stdin_is_no_trouble(children: Children) -> None:
    assert children.run("time.sleep(0.3)", stdin=b"x" * 200_000).exit_code == 0
    assert children.run("os.close(0); time.sleep(0.2)", stdin=b"x" * 200_000).exit_code == 0


def test_the_child_leads_a_session_of_its_own_and_carries_the_marker(children: Children) -> None:
    lines: list[bytes] = []
    body = "say(f'{os.getsid(0) == os.getpid()} {os.environ[\"SKILLUP_TRIAL_MARKER\"]}')"
    children.run(body, lines.append, marker="trial-1")
    assert lines == [b"True trial-1"]


def test_a_flood_ends_the_tree(children: Children, tmp_path: Path) -> None:
    outcome = children.run(
        "detached(linger)\nwhile True: os.write(1, b'spam' * 1000 + b'\\n')",
        max_output_bytes=100_000,
        stdout_path=tmp_path / "out",
    )
    assert outcome.ended_by == "output_limit"
    assert (tmp_path / "out").stat().st_size == 100_000


def test_a_timeout_ends_the_tree_and_keeps_what_was_said(children: Children) -> None:
    lines: list[bytes] = []
    body = "detached(linger); daemon(linger); wait_for_notes(3); say('here'); time.sleep(300)"
    outcome = children.run(body, lines.append, timeout_seconds=3)
    assert (outcome.ended_by, outcome.signal, lines) == ("timeout", signal.SIGINT, [b"here"])


def test_what_is_said_at_the_interrupt_is_still_delivered(children: Children) -> None:
    lines: list[bytes] = []
    body = """
        def stop(*_):
            say("x" * 200_000)
            say("bye")
            sys.exit(5)
        signal.signal(signal.SIGINT, stop)
        say("ready")
        time.sleep(300)
    """
    outcome = children.run(body, lines.append, timeout_seconds=1.5, grace_seconds=GUARD_SECONDS)
    assert (outcome.ended_by, outcome.exit_code) == ("timeout", 5)
    assert [len(line) for line in lines] == [5, 200_000, 3]


@pytest.mark.parametrize(
    ("ignored", "ended_with"),
    [
        ("signal.SIGINT", signal.SIGTERM),
        ("signal.SIGINT, signal.SIGTERM, signal.SIGHUP", signal.SIGKILL),
    ],
)
def test_who_ignores_a_signal_gets_the_next(
    children: Children, ignored: str, ended_with: signal.Signals
) -> None:
    body = f"ignore({ignored})\nwhile True: time.sleep(1)"
    assert children.run(body, timeout_seconds=1).signal == ended_with


def test_cancelling_ends_the_tree_and_closes_the_copies(children: Children, tmp_path: Path) -> None:
    raw = tmp_path / "out"
    body = "ignore(signal.SIGINT)\ndetached(linger); wait_for_notes(2); say('x'); time.sleep(300)"
    request = children.request(body, stdout_path=raw)
    finished = False

    async def cancelled_at_the_first_line() -> None:
        nonlocal finished
        with anyio.CancelScope() as scope:
            await run_process(request, lambda _: scope.cancel())
            finished = True
        assert scope.cancelled_caught

    anyio.run(cancelled_at_the_first_line)
    assert not finished
    assert raw.read_bytes() == b"x\n"
    children.assert_none_left()


def test_cancelling_does_not_wait_for_a_listener_that_hangs(children: Children) -> None:
    request = children.request("say('x'); time.sleep(300)")

    async def cancelled_while_listening() -> None:
        with anyio.CancelScope() as scope:

            async def hang(_: bytes) -> None:
                scope.cancel()
                await anyio.sleep_forever()

            await run_process(request, hang)

    anyio.run(cancelled_while_listening)
    children.assert_none_left()


def test_nothing_is_started_for_a_caller_who_is_cancelled_already(children: Children) -> None:
    async def cancelled_before() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run_process(children.request("pass"))

    anyio.run(cancelled_before)
    assert children.pids() == []


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_ends_the_tree_also_when_pressed_twice(children: Children, interrupts: int) -> None:
    """The whole program is interrupted, as at a terminal; the child ignores the polite signals."""
    stubborn = children.script("ignore(signal.SIGINT, signal.SIGTERM); linger()")
    program = f"""
        import anyio
        from pathlib import Path
        from skillup.process import ProcessRegister, ProcessRequest, run_process
        signal.signal(signal.SIGINT, signal.default_int_handler)
        request = ProcessRequest((sys.executable, {str(stubborn)!r}), Path.cwd(), dict(os.environ))
        anyio.run(run_process, request)
    """
    request = children.request(
        program, env={**children.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    )

    async def interrupted() -> None:
        async with anyio.create_task_group() as tasks:

            async def press() -> None:
                main = await anyio.to_thread.run_sync(lambda: children.wait_for_pids(2)[0])
                for _ in range(interrupts):
                    os.kill(main, signal.SIGINT)
                    await anyio.sleep(0.3)

            tasks.start_soon(press)
            outcome = await run_process(request)
            assert outcome.leftover == ()

    anyio.run(interrupted)
    children.assert_none_left()


# What is cancelled before its first step never ran; anyio has a coroutine left then.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("steps", range(6))
def test_a_loop_that_is_broken_off_waits_for_no_helper_that_never_began(
    children: Children, steps: int
) -> None:
    """`sys.exit()` in a callback stops the loop; then every task is cancelled by itself."""

    async def broken_off() -> None:
        held = asyncio.ensure_future(run_process(children.request("time.sleep(300)")))
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        done, _ = await asyncio.wait({held}, timeout=GUARD_SECONDS)
        assert done == {held}
        assert held.cancelled()

    asyncio.run(broken_off())
    gc.collect()  # here, where the warning is expected
    children.assert_none_left()


def test_an_error_of_the_listener_ends_the_tree_and_is_raised_as_it_is(children: Children) -> None:
    request = children.request("detached(linger); wait_for_notes(2); say('x'); time.sleep(300)")

    def complain(_: bytes) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        anyio.run(run_process, request, complain)
    children.assert_none_left()


def test_a_copy_that_cannot_be_made_is_an_error_before_anything_starts(children: Children) -> None:
    request = children.request("pass", stderr_path=children.directory / "missing" / "err")
    with pytest.raises(FileNotFoundError):
        anyio.run(run_process, request)
    assert children.pids() == []


def test_memory_and_cpu_of_the_whole_tree_are_told(children: Children) -> None:
    body = """
        def burn():
            note()
            held = b"x" * 50_000_000
            end = time.process_time() + 0.4
            while time.process_time() < end: pass
            time.sleep(0.6)
        pid = os.fork()
        if pid == 0:
            burn()
            os._exit(0)
        os.waitpid(pid, 0)
    """
    outcome = children.run(body)
    assert outcome.cpu_seconds is not None
    assert outcome.cpu_seconds >= 0.4
    assert outcome.peak_memory_bytes is not None
    assert outcome.peak_memory_bytes > 50_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets us wait for orphans")
def test_cpu_of_a_daemon_that_outlived_its_parent_counts(
    children: Children, tmp_path: Path
) -> None:
    body = """
        def burn():
            close_output()
            end = time.process_time() + 0.4
            while time.process_time() < end: pass
            linger()
        daemon(burn)
        wait_for_notes(2)
    """
    with ProcessRegister(tmp_path / "processes", own_process=True):
        outcome = children.run(body)
    assert len(outcome.leftover) == 1
    assert outcome.cpu_seconds is not None
    assert outcome.cpu_seconds >= 0.4


def test_eight_at_once_keep_their_output_and_their_trees_apart(children: Children) -> None:
    async def eight() -> None:
        async def one(number: int) -> None:
            lines: list[bytes] = []
            body = f"""
                daemon(linger)
                detached(linger)
                for _ in range(2000): say("{number}" * 100)
                time.sleep(0.1 * {number})
            """
            outcome = await run_process(children.request(body), lines.append)
            assert lines == [str(number).encode() * 100] * 2000
            assert (outcome.exit_code, len(outcome.leftover)) == (0, 2)

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(one, number)

    anyio.run(eight)
    children.assert_none_left()


def test_a_request_without_a_program_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="argv"):
        ProcessRequest((), tmp_path, {})
