"""Who begins next, and how many at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from skillup.executors.scheduler import Scheduler
from skillup.plan import Job
from tests.support.plans import a_plan

BRANCHES = [{"name": "x", "turns": ["x"]}, {"name": "y", "turns": ["y"]}]


def held(
    admission: Scheduler, jobs: Sequence[Job], length: Callable[[Job], int]
) -> tuple[list[str], int]:
    """The order in which jobs began, `length` moments each; and the most that ran at once."""
    began: list[str] = []
    running = most = 0

    async def hold(job: Job) -> None:
        nonlocal running, most
        async with admission.place([job]):
            began.append(f"{job.loaded.case.id}{job.trial}")
            running += 1
            most = max(most, running)
            for _ in range(length(job)):
                await anyio.lowlevel.checkpoint()
            running -= 1

    async def main() -> None:
        admission.expect(jobs)
        async with anyio.create_task_group() as group:
            for job in reversed(jobs):  # whoever asks first is no matter
                group.start_soon(hold, job)

    anyio.run(main)
    return began, most


def test_every_case_has_its_turn_before_one_has_the_next(tmp_path: Path) -> None:
    jobs = a_plan(tmp_path, {"a": {}, "b": {}, "c": {}}, trials=2).jobs
    began, most = held(Scheduler(2), jobs, lambda _: 20)
    assert [*sorted(began[:2]), *began[2:]] == ["a1", "b1", "c1", "a2", "b2", "c2"]
    assert most == 2


def test_the_rest_of_a_family_does_not_wait_for_later_trials(tmp_path: Path) -> None:
    turns = {"turns": [{"content": "hi", "branches": BRANCHES}]}
    jobs = a_plan(tmp_path, {"a": {"input": turns}}, trials=4).jobs
    assert [f"{job.loaded.case.id}{job.trial}" for job in jobs][:5] == [
        "a/x1", "a/x2", "a/x3", "a/x4", "a/y1",
    ]  # fmt: skip
    began, _ = held(Scheduler(1), [*jobs[2:4], jobs[5]], lambda _: 1)
    assert began == ["a/y2", "a/x3", "a/x4"]


def test_a_slow_case_does_not_take_all_places(tmp_path: Path) -> None:
    jobs = a_plan(tmp_path, {"a": {}, "b": {}}, trials=6).jobs
    slow = {"a": 400, "b": 20}
    began, _ = held(Scheduler(2), jobs, lambda job: slow[job.loaded.case.id])
    assert [*sorted(began[:2]), *began[2:7]] == ["a1", "b1", "b2", "b3", "b4", "b5", "b6"]


def test_both_variants_of_a_trial_begin_close_together(tmp_path: Path) -> None:
    jobs = a_plan(
        tmp_path, {"a": {}, "b": {}}, trials=2, variants=("with_skill", "without_skill")
    ).jobs
    began, _ = held(Scheduler(1), jobs, lambda _: 20)
    assert began == ["a1", "a1", "b1", "b1", "a2", "a2", "b2", "b2"]


def test_an_engine_that_is_slow_does_not_take_all_places(tmp_path: Path) -> None:
    jobs = a_plan(tmp_path, {"a": {}, "b": {}, "c": {}}, engines=("p", "q")).jobs
    engines: list[str] = []

    def length(job: Job) -> int:
        engines.append(job.profile.name)
        return 400 if job.profile.name == "p" else 20

    held(Scheduler(2), jobs, length)
    assert sorted(engines[:2]) == ["p", "q"]
    assert engines[2:] == ["q", "q", "p", "p"]


def test_one_case_alone_may_have_all_places(tmp_path: Path) -> None:
    jobs = a_plan(tmp_path, {"a": {}}, trials=6).jobs
    assert held(Scheduler(3), jobs, lambda _: 20)[1] == 3


def test_where_there_is_no_room_the_next_waits_and_the_only_one_does_not(tmp_path: Path) -> None:
    jobs = a_plan(tmp_path, {"a": {}}, trials=5).jobs
    asked: list[int] = []

    def has_room(running: int) -> bool:
        asked.append(running)
        return running < 2

    began, most = held(Scheduler(4, has_room=has_room), jobs, lambda _: 20)
    assert len(began) == 5
    assert most == 2
    assert 0 not in asked
    never = Scheduler(4, has_room=lambda _: False)
    assert held(never, jobs, lambda _: 20) == (["a1", "a2", "a3", "a4", "a5"], 1)


def test_whoever_gives_up_waiting_leaves_the_place_to_others(tmp_path: Path) -> None:
    first, second, third = a_plan(tmp_path, {"a": {}}, trials=3).jobs
    admission = Scheduler(1)
    began: list[int] = []

    async def hold(job: Job) -> None:
        async with admission.place([job]):
            began.append(job.trial)
            await anyio.lowlevel.checkpoint()

    async def main() -> None:
        admission.expect([first, second, third])
        async with anyio.create_task_group() as group, admission.place([first]):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await hold(second)
            group.start_soon(hold, third)
            await anyio.wait_all_tasks_blocked()
            assert began == []

    anyio.run(main)
    assert began == [3]


def test_what_it_takes_to_choose_grows_with_the_jobs_and_not_with_their_square(
    tmp_path: Path,
) -> None:
    """F16: 4,000 cases cost three seconds."""

    def lines_for(count: int) -> int:
        jobs = a_plan(tmp_path / str(count), {f"c{n}": {} for n in range(count)}).jobs
        lines = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal lines
            if not frame.f_code.co_filename.endswith("admission.py"):
                return None
            lines += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            began, _ = held(Scheduler(4), jobs, lambda _: 1)
        finally:
            sys.settrace(before)
        assert len(began) == count
        return lines

    assert lines_for(400) < 3 * lines_for(200)
