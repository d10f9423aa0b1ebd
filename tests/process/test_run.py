"""How a process starts and ends, what it writes, and what is delivered, however it comes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.process.output import OutputStream
from skillup.process.run import CompletedOutput, ProcessRequest, run_process, run_quiet
from tests.support.children import GUARD_SECONDS, Children

FULL = Path("/dev/full")  # every write to it finds the disk full


def appending(path: Path) -> Callable[[bytes], object]:
    path.touch()

    def write(data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)

    return write


def test_lines_copies_exit_code_and_marker(children: Children, tmp_path: Path) -> None:
    lines: list[bytes] = []
    body = """
        say(f'{os.getsid(0) == os.getpid()} {os.environ["SKILLUP_TRIAL_MARKER"]}')
        say(str(len(sys.stdin.buffer.read())))
        os.write(1, bytes(range(256)) * 100 + b'\\nlast')
        os.write(2, b'x' * 20_000 + b' \\xff the end')
        sys.exit(7)
    """
    outcome = children.run(
        body,
        lines.append,
        marker="trial-1",
        stdin=b"x" * 200_000,
        stdout=appending(tmp_path / "out"),
        stderr=appending(tmp_path / "err"),
    )
    assert lines[:2] == [b"True trial-1", b"200000"]
    assert lines[-1] == b"last"
    assert (outcome.exit_code, outcome.signal, outcome.ended_by) == (7, None, "exit")
    assert (tmp_path / "out").read_bytes() == b"\n".join(lines)
    assert (tmp_path / "err").stat().st_size == 20_000 + 10
    assert outcome.stderr_tail.endswith("x \ufffd the end")
    assert len(outcome.stderr_tail) <= 8192
    assert outcome.leftover == outcome.survivors == ()


def test_lines_arrive_while_the_child_runs_and_a_slow_listener_loses_none(
    children: Children,
) -> None:
    lines: list[bytes] = []

    def listen(line: bytes) -> None:
        if not lines:
            (children.directory / "go").touch()
        time.sleep(0.001)
        lines.append(line)

    body = """
        say('-1')
        while not os.path.exists('go'): time.sleep(0.01)
        for number in range(500): say(f'{number} ' + 'x' * 500)
    """
    children.run(body, listen)
    assert [int(line.split()[0]) for line in lines] == list(range(-1, 500))


def test_a_line_of_100_mb_arrives_whole(children: Children) -> None:
    lines: list[bytes] = []
    children.run("for _ in range(100): sys.stdout.buffer.write(b'x' * 1_000_000)", lines.append)
    assert [len(line) for line in lines] == [100_000_000]


def test_secrets_are_masked_on_disk_in_lines_and_in_the_tail(
    children: Children, tmp_path: Path
) -> None:
    lines: list[bytes] = []
    outcome = children.run(
        "say('key=hunter2'); os.write(2, b'oops hunt'); time.sleep(0.1); os.write(2, b'er2')",
        lines.append,
        stdout=appending(tmp_path / "out"),
        stderr=appending(tmp_path / "err"),
        redact=lambda line: line.replace(b"hunter2", b"***"),
    )
    assert lines == [b"key=***"]
    assert (tmp_path / "out").read_bytes() == b"key=***\n"
    assert (tmp_path / "err").read_bytes() == b"oops ***"
    assert outcome.stderr_tail == "oops ***"


def test_a_flood_ends_the_tree(children: Children, tmp_path: Path) -> None:
    outcome = children.run(
        "detached(linger)\nwhile True: os.write(1, b'spam' * 1000 + b'\\n')",
        max_output_bytes=100_000,
        stdout=appending(tmp_path / "out"),
    )
    assert outcome.ended_by == "output_limit"
    assert (tmp_path / "out").stat().st_size == 100_000


def test_a_timeout_ends_the_tree_and_delivers_what_is_written_at_the_interrupt(
    children: Children,
) -> None:
    lines: list[bytes] = []
    body = """
        def stop(*_):
            say("x" * 200_000)
            say("bye")
            sys.exit(5)
        detached(linger); daemon(linger); wait_for_notes(3)
        signal.signal(signal.SIGINT, stop)
        say("ready")
        time.sleep(300)
    """
    outcome = children.run(body, lines.append, timeout_seconds=1, grace_seconds=GUARD_SECONDS)
    assert (outcome.ended_by, outcome.exit_code) == ("timeout", 5)
    assert [len(line) for line in lines] == [5, 200_000, 3]


def test_who_ignores_the_polite_signals_is_killed(children: Children) -> None:
    body = "ignore(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)\ntime.sleep(300)"
    outcome = children.run(body, timeout_seconds=1, grace_seconds=0.2)
    assert outcome.signal == signal.SIGKILL


@pytest.mark.parametrize("by", ["cancelled", "error of the listener"])
def test_cancelling_or_an_error_of_the_listener_ends_the_tree_and_closes_the_copies(
    children: Children, tmp_path: Path, by: str
) -> None:
    raw = tmp_path / "out"
    body = "ignore(signal.SIGINT)\ndetached(linger); wait_for_notes(2); say('x'); time.sleep(300)"
    request = children.request(body, stdout=appending(raw))

    async def stopped_at_the_first_line() -> None:
        with anyio.CancelScope() as scope:

            def listen(_: bytes) -> None:
                if by == "error of the listener":
                    raise LookupError("mine")
                scope.cancel()

            await run_process(request, listen)
        assert scope.cancelled_caught

    if by == "error of the listener":
        with pytest.raises(LookupError, match="mine"):
            anyio.run(stopped_at_the_first_line)
    else:
        anyio.run(stopped_at_the_first_line)
    assert raw.read_bytes() == b"x\n"
    children.assert_none_left()


def test_ctrl_c_ends_the_tree_also_when_pressed_twice(children: Children) -> None:
    """The whole program is interrupted, as at a terminal; the child ignores the polite signals."""
    stubborn = children.script("ignore(signal.SIGINT, signal.SIGTERM); linger()")
    program = f"""
        import anyio
        from pathlib import Path
        from skillup.process.run import ProcessRequest, run_process
        signal.signal(signal.SIGINT, signal.default_int_handler)
        request = ProcessRequest((sys.executable, {str(stubborn)!r}), Path.cwd(), dict(os.environ),
                                 grace_seconds=0.5)
        anyio.run(run_process, request)
    """
    request = children.request(program)

    async def interrupted() -> None:
        async with anyio.create_task_group() as tasks:

            async def press() -> None:
                await anyio.to_thread.run_sync(children.wait_for_pids, 1, "lingering")
                (main,) = children.pids("main")
                for _ in range(2):
                    with suppress(ProcessLookupError):
                        os.kill(main, signal.SIGINT)
                    await anyio.sleep(0.2)

            tasks.start_soon(press)
            outcome = await run_process(request)
            assert outcome.leftover == ()

    anyio.run(interrupted)
    children.assert_none_left()


# What is cancelled before its first step never ran; anyio has a coroutine left then.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("steps", [0, 3])
def test_a_loop_that_is_broken_off_waits_for_no_helper_that_never_began(
    children: Children, steps: int
) -> None:
    """`sys.exit()` in a callback stops the loop; then every task is cancelled by itself."""

    async def broken_off() -> None:
        running = asyncio.ensure_future(run_process(children.request("time.sleep(300)")))
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        done, _ = await asyncio.wait({running}, timeout=GUARD_SECONDS)
        assert done == {running}
        assert running.cancelled()

    asyncio.run(broken_off())
    gc.collect()  # here, where the warning is expected
    children.assert_none_left()


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("stream", "length"), [("stdout", 10), ("stderr", 1_000_000)])
def test_a_full_disk_ends_the_process_and_is_raised(
    children: Children, stream: str, length: int
) -> None:
    body = f"print('x' * {length}, file=sys.{stream})"
    request = children.request(body, **{stream: appending(FULL)})
    with pytest.raises(OSError, match="No space left"):
        anyio.run(run_process, request)


@pytest.mark.parametrize(
    ("command", "timeout_seconds", "expected"),
    [
        (
            "cat; printf '\\n\\n'; printf '\\377' >&2; exit 3",
            None,
            (3, "a\r\nb\n\n", "\ufffd", False, None),
        ),
        ("echo hello; sleep 300", 0.5, (None, "hello\n", "", True, None)),
    ],
)
def test_a_quiet_command_returns_its_output_exactly(
    tmp_path: Path, command: str, timeout_seconds: float | None, expected: tuple[Any, ...]
) -> None:
    options: dict[str, Any] = {"cwd": tmp_path, "env": os.environ}
    options["timeout_seconds"] = timeout_seconds
    run = partial(run_quiet, ("sh", "-c", command), **options, stdin=b"a\r\nb")
    assert anyio.run(run) == CompletedOutput(*expected)


@pytest.mark.parametrize(
    ("argv", "extra", "message"),
    [
        (("no-such-agent",), {}, "no-such-agent: No such file or directory"),
        (("./no-such-agent",), {}, "./no-such-agent: No such file or directory"),
        # The PATH that counts is the request's own.
        (("true",), {"PATH": "/nowhere"}, "true: No such file or directory"),
        (("./plain",), {}, "./plain: Permission denied"),
        (
            ("./headless",),
            {},
            "./headless: the interpreter that its first line names does not exist",
        ),
        (("./words",), {}, "./words: Exec format error"),
        (("true", *["x" * 100_000] * 100), {}, "true: Argument list too long"),
        (("true", "a\0b"), {}, "cannot be passed on"),
        (("true",), {"A": "a\0b"}, "cannot be passed on"),
    ],
    ids=range(9),
)
def test_why_a_program_did_not_start(
    tmp_path: Path, argv: tuple[str, ...], extra: dict[str, str], message: str
) -> None:
    for name, content, mode in (
        ("plain", "#!/bin/sh\n", 0o644),
        ("headless", "#!/no/such/interpreter\n", 0o755),
        ("words", "echo hello\n", 0o755),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / name).chmod(mode)
    request = ProcessRequest(argv, tmp_path, {"PATH": os.defpath, **extra})
    outcome = anyio.run(run_process, request)
    assert (outcome.ended_by, outcome.exit_code, outcome.signal) == ("not_started", None, None)
    assert message in (outcome.start_error or "")


def test_a_missing_working_directory(tmp_path: Path) -> None:
    place = tmp_path / "missing"
    for what in ("No such file or directory", "Not a directory"):
        outcome = anyio.run(run_process, ProcessRequest(("true",), place, {"PATH": os.defpath}))
        assert outcome.start_error == f"{place}: {what}"
        place.touch()


@given(st.lists(st.binary(max_size=12)), st.lists(st.integers(1, 20)))
def test_lines_are_the_same_wherever_the_chunks_fall(texts: list[bytes], sizes: list[int]) -> None:
    expected = [line for text in texts for line in text.split(b"\n")]
    data = b"".join(line + b"\n" for line in expected) + b"last"
    split = OutputStream()
    lines = []
    for size in [*sizes, len(data)]:
        chunk, data = data[:size], data[size:]
        lines += split.feed(chunk)
    assert lines + split.finish() == [*expected, b"last"]


def test_a_secret_that_the_limit_cuts_is_not_half_shown() -> None:
    written = bytearray()
    masked = OutputStream(written.extend, 20, lambda line: line.replace(b"s3cr3t", b"***"))
    assert masked.feed(b"a s3cr3t\n") == [b"a ***"]
    assert masked.feed(b"another s3cr3t") + masked.finish() == []
    assert written == b"a ***\n"
    assert (masked.over_limit, masked.total_bytes) == (True, 23)
