"""After a killed skillup: the next start finds and ends what it left, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from skillup.process.tree import end_leftovers, process_register
from tests.support.children import GUARD_SECONDS, Children, is_alive


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
    env = {**children.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, str(children.script(program))]
    with subprocess.Popen(argv, env=env) as process:
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux brings orphans to us")
def test_orphans_that_no_turn_could_claim_are_ended_with_the_last(
    children: Children, register: Path, tmp_path: Path
) -> None:
    """S7: whatever marker they bear; in skillup's own process every orphan is an agent's."""
    forged = {"SKILLUP_TRIAL_MARKER": "1-2", "SKILLUP_OWNER": "1-2"}
    program = LIKE_SKILLUP.format(script=str(children.script(hiding(tmp_path, forged))))
    program += f"""
with process_register(Path({str(register)!r}), own_process=True):
    anyio.run(two_turns)
"""
    variables = {**children.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(children.script(program))], env=variables, check=True)

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
    variables = {**children.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, str(children.script(program))]
    done = subprocess.run(argv, env=variables, check=True, stdout=subprocess.PIPE)

    started = json.loads(done.stdout)
    try:
        assert [pid for pid in started if psutil.pid_exists(pid)] == started
        assert not [pid for pid in hidden_pids(tmp_path) if is_alive(pid)]
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
