"""The live display on a terminal whose size changes, and while others print: nothing stale, nothing
lost.
"""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from skillup.plan import Job, Plan
from skillup.reports.terminal.layout import OrderlyConsole
from skillup.reports.terminal.live import LiveReporter, rows_by_folding
from skillup.trial import TrialEvent
from tests.reports.test_junit import make_grade
from tests.support.families import jobs_of
from tests.support.records import make_record
from tests.support.screen import Screen


class Tty(io.StringIO):
    """A terminal that keeps what it is sent until it is asked for it."""

    def isatty(self) -> bool:
        return True

    def sent(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


@pytest.fixture(autouse=True)
def _folding_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XTERM_VERSION", "STY"):
        monkeypatch.delenv(name, raising=False)


def console_on(file: Tty) -> OrderlyConsole:
    return OrderlyConsole(file=file, force_terminal=True, width=100, height=24, color_system=None)


def start(reporter: LiveReporter, job: Job) -> None:
    reporter.trial_started(job, 1)
    reporter.trial_event(TrialEvent(job.id, "turn_started", 1, 2))
    reporter.trial_event(TrialEvent(job.id, "activity", text="shell " + "x" * 200))


@pytest.mark.parametrize("columns", [60, 31, 12])
def test_a_terminal_that_is_made_narrower_shows_no_row_twice(tmp_path: Path, columns: int) -> None:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=3)
    file, screen = Tty(), Screen(100)
    console = console_on(file)
    with LiveReporter(Plan(tuple(jobs)), console) as reporter:
        console.print("what was printed before")
        for job in jobs:
            start(reporter, job)
        console.print("and above it")
        reporter.stopping(1)
        screen.write(file.sent())
        assert len(screen.text) == 2 + 3 + 3
        screen.make_narrower(columns)
        console.width = columns
        reporter.stopping(1)
        screen.write(file.sent())
        assert sum("c #1" in row for row in screen.text) == 1
        assert sum("0/3 trials"[: columns - 1] in row for row in screen.text) == 1

    screen.write(file.sent())
    assert "".join(screen.text) == "what was printed beforeand above it"


def test_where_lines_are_cut_off_no_more_is_erased_than_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("XTERM_VERSION", "XTerm(390)")
    (job,) = jobs_of(tmp_path, "input: {turns: [a, b]}\n")
    file = Tty()
    console = console_on(file)
    with LiveReporter(Plan((job,)), console) as reporter:
        start(reporter, job)
        reporter.stopping(1)
        console.width = 40
        file.sent()
        reporter.stopping(1)
        drawn = file.sent()

    assert drawn.count("\x1b[1A") == 3  # of four lines


def test_a_terminal_that_draws_characters_wider_than_reckoned_gets_no_more_rows(
    tmp_path: Path,
) -> None:
    (job,) = jobs_of(tmp_path, "input: {turns: [a, b]}\n")
    file, screen = Tty(), Screen(100)
    console = console_on(file)
    with LiveReporter(Plan((job,)), console) as reporter:
        start(reporter, job)
        reporter.trial_event(TrialEvent(job.id, "activity", text="e\u0301" * 200))
        for _ in range(3):
            reporter.stopping(1)
        console.print("x" * 250)
        screen.write(file.sent())

        assert len(screen.text) == 3 + 4

    screen.write(file.sent())
    assert "".join(screen.text) == "x" * 250


def test_lines_fold_where_characters_have_no_room() -> None:
    assert rows_by_folding(["x" * 79, "", "short"], 80) == 0
    assert rows_by_folding(["x" * 79, "", "x" * 41], 40) == 2
    assert rows_by_folding(["漢" * 20], 21) == 1


@pytest.mark.usefixtures("threads_take_turns_often")
def test_what_is_printed_while_it_is_drawn_is_neither_lost_nor_torn(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=80)
    file = Tty()
    over = threading.Event()
    reporter = LiveReporter(Plan(tuple(jobs)), console_on(file))

    def draw() -> None:
        while not over.is_set():
            reporter.stopping(1)

    with reporter:
        thread = threading.Thread(target=draw)
        thread.start()
        for number, job in enumerate(jobs):
            start(reporter, job)
            if number % 4 == 3:  # so that the display gets lower, and then higher again
                for ended in jobs[number - 3 : number + 1]:
                    reporter.trial_finished(ended, make_record().record, make_grade())
        over.set()
        thread.join()

    screen = Screen(100)
    screen.write(file.sent())
    assert [row.split()[:3] for row in screen.text] == [
        ["PASS", "c", f"#{number}"] for number in range(1, 81)
    ]
