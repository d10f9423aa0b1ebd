"""The live display fits its terminal, whatever runs in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from skillup.plan import Job, Plan
from skillup.reports.terminal.run_progress import RunProgress, view, without_middle
from skillup.reports.text import plain
from skillup.trial import TrialEvent
from tests.reports.test_junit import make_grade
from tests.support.families import jobs_of

HOSTILE = "\x1b[2J\x1b]0;title\x07漢字🙂‍↔️\r\n\t\u202eshell rm -rf " + "x" * 300


def running(tmp_path: Path, count: int, doing: str = "shell ls") -> tuple[RunProgress, list[Job]]:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=count)
    standing = RunProgress(Plan(tuple(jobs)))
    for job in jobs:
        standing.start(job, 1)
        standing.hear(TrialEvent(job.id, "turn_started", 1, 2))
        standing.hear(TrialEvent(job.id, "turn_ended", 1, 2, tokens=1234, cost_usd=0.5))
        standing.hear(TrialEvent(job.id, "activity", text=doing))
    return standing, jobs


def lines(standing: RunProgress, width: int, height: int, notice: str = "") -> list[str]:
    def label(job: Job) -> str:
        return f"case 漢字 {job.trial}"

    return [line.plain for line in view(standing, label, width, height, notice)]


@pytest.mark.parametrize("width", [10, 40, 60, 80, 160])
@pytest.mark.parametrize("height", [1, 2, 5, 15, 50])
def test_no_line_is_too_wide_and_no_view_too_high(tmp_path: Path, width: int, height: int) -> None:
    standing, _ = running(tmp_path, 20, HOSTILE)

    shown = lines(standing, width, height, notice="stopping: ending 20 agents")

    assert len(shown) <= max(height - 1, 1)
    assert all(cell_len(line) < max(width, 11) for line in shown)
    assert all(plain(line) == line and "\n" not in line for line in shown)


def test_trials_that_have_no_room_are_counted(tmp_path: Path) -> None:
    standing, _ = running(tmp_path, 20)

    shown = lines(standing, 80, 12)

    assert sum("turn 1/2" in line for line in shown) == 8
    assert "  … and 12 more" in shown


def test_a_line_tells_turn_time_tokens_cost_and_what_is_done(tmp_path: Path) -> None:
    standing, _ = running(tmp_path, 1, "shell npm test")

    first, *_ = lines(standing, 100, 24)

    assert "case 漢字 1  turn 1/2  0.0 s  1.2k tok  $0.50  shell npm test" in first


def test_a_narrow_terminal_keeps_room_for_what_is_done(tmp_path: Path) -> None:
    standing, _ = running(tmp_path, 1, "shell npm test")

    first, *_ = lines(standing, 48, 24)

    assert "1.2k" not in first
    assert "shell npm test" in first


def test_the_foot_counts_and_says_how_long_only_once_it_is_known(tmp_path: Path) -> None:
    standing, jobs = running(tmp_path, 4)
    assert "left" not in lines(standing, 80, 24)[-1]
    standing.end(jobs[0], make_grade(usage={"input_tokens": 900, "output_tokens": 100}))
    standing.end(jobs[1], make_grade(status="FAIL"))

    *_, counts, going = lines(standing, 80, 24)

    assert counts == "2/4 trials  1 passed  1 failed"
    assert going.startswith("2 running, 0.0 s, a few seconds left, 3.5k tokens")


def test_a_notice_stands_at_the_very_bottom(tmp_path: Path) -> None:
    standing, _ = running(tmp_path, 1)

    assert lines(standing, 80, 24, notice="stopping: ending 1 agent")[-1].startswith("stopping")


def test_long_names_differ_on_a_narrow_terminal_and_take_the_room_that_is_left(
    tmp_path: Path,
) -> None:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=2)
    standing = RunProgress(Plan(tuple(jobs)))
    name = "asks-before-it-removes-any-of-the-files-that-were-added-today-"
    labels = [f"{name}{which} #{n}" for which in ("one", "two") for n in (1, 2)]
    called = {}
    for job, label in zip([*jobs, *jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=4)[2:]],
                          labels, strict=True):  # fmt: skip
        called[job.id] = label
        standing.start(job, 1)

    shown = [line.plain for line in view(standing, lambda job: called[job.id], 80, 24)][:4]

    assert len({line[2:] for line in shown}) == 4
    assert all("asks-before-it-" in line for line in shown)
    assert [line.split("  ")[0].rsplit("-", 1)[1] for line in shown] == [
        "one #1", "one #2", "two #1", "two #2"
    ]  # fmt: skip
    assert all(line.index("  ") > 79 * 2 // 5 + 2 for line in shown)


@pytest.mark.parametrize("cells", [0, 1, 2, 5, 9, 30])
@pytest.mark.parametrize("text", ["漢字漢字漢字 #1", "a long name of a case #12", ""])
def test_a_name_without_its_middle_fits(text: str, cells: int) -> None:
    assert cell_len(without_middle(text, cells)) <= max(cells, 1)
