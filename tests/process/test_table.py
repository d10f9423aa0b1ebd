"""The process table, as the fast reader and as psutil tell it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from skillup.process.tree import (
    ProcessRow,
    Table,
    read_row,
    read_table,
    row_of_psutil,
    rows_of_psutil,
    same_process,
)


def is_zombie(row: ProcessRow | None) -> bool:
    assert row is not None
    return row.zombie


@pytest.mark.parametrize("read", [read_row, row_of_psutil])
def test_a_row_tells_who_a_process_is(read: Callable[[int], ProcessRow | None]) -> None:
    row = read(os.getpid())
    assert row is not None
    assert (row.pid, row.parent, row.zombie) == (os.getpid(), os.getppid(), False)
    assert (row.group, row.session) == (os.getpgid(0), os.getsid(0))
    assert row.cpu_seconds > 0
    assert row.resident_bytes > 1_000_000


@pytest.mark.parametrize("rows", [lambda: read_table().rows.values(), rows_of_psutil])
def test_the_table_holds_us_and_our_ancestors(rows: Callable[[], list[ProcessRow]]) -> None:
    table = Table(iter(list(rows())))
    assert os.getpid() in table.rows
    assert os.getppid() in table.ancestors(os.getpid())
    assert any(child.pid == os.getpid() for child in table.children[os.getppid()])


@pytest.mark.parametrize("read", [read_row, row_of_psutil])
def test_a_dead_child_is_a_zombie_until_it_is_waited_for(
    read: Callable[[int], ProcessRow | None],
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_zombie(read(child.pid)) is False
        child.send_signal(signal.SIGKILL)
        while not is_zombie(read(child.pid)):
            pass
    assert read(child.pid) is None


def test_a_name_with_spaces_and_parentheses_confuses_nobody() -> None:
    program = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) R (b c', 0, 0, 0); print(1); input()"
    if sys.platform != "linux":
        pytest.skip("only Linux lets a process name itself")
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
    row = read_row(os.getpid())
    assert row is not None
    assert same_process(row)
    assert not same_process(row._replace(started=row.started - 100))


def test_a_young_look_is_shared() -> None:
    table = read_table()
    assert read_table(max_age_seconds=60) is table
    assert read_table() is not table
