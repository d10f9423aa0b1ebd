"""Which workers get trials, and what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from skillup.errors import SkillupError
from skillup.executors.cluster.looking import Looked
from skillup.executors.cluster.pool import Pool

DOUBT = "claude: no login was found: log in; --probe tells whether it works"


class Scheduler:
    """Knows who is there."""

    def __init__(self, *addresses: str) -> None:
        self.present = dict.fromkeys(addresses, 2)

    async def nthreads(self) -> Mapping[str, int]:
        return self.present


def looked(problem: str | None = None, doubt: str | None = None) -> Looked:
    return Looked(problem, {"profiles": {"claude": {"problem": problem, "doubt": doubt}}})


def opened(found: Mapping[str, Looked]) -> list[str]:
    """The workers that get trials."""

    async def look(address: str) -> Looked:
        return found[address]

    async def main() -> list[str]:
        client: Any = Scheduler(*found)
        pool = Pool(client, look, lambda _: None)
        await pool.open()
        return [worker.address for worker in pool.workers]

    return anyio.run(main)


def test_without_a_login_they_get_none_where_others_have_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert opened({"a": looked(), "b": looked(doubt=DOUBT), "c": looked()}) == ["a", "c"]
    assert capsys.readouterr().err == (
        f"worker b: {DOUBT} (other workers have one); it gets no trials\n"
    )


def test_where_none_has_a_login_that_can_be_seen_all_get_trials_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert opened({"a": looked(doubt=DOUBT), "b": looked(doubt=DOUBT)}) == ["a", "b"]
    assert capsys.readouterr().err == f"warning: worker a: {DOUBT}\nwarning: worker b: {DOUBT}\n"


def test_where_none_is_left_each_reason_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SkillupError) as refused:
        opened({"a": looked("claude: there is no program `claude`"), "b": looked("it has none")})
    assert "a: claude: there is no program `claude`; b: it has none" in refused.value.message
    assert capsys.readouterr().err == ""


def test_one_where_something_was_lost_gets_no_more_until_it_has_been_looked_at() -> None:
    answers = [looked(), Looked("the connection to it broke", {}, passing=True), looked()]

    async def look(address: str) -> Looked:
        return answers.pop(0)

    async def main() -> None:
        client: Any = Scheduler("a")
        pool = Pool(client, look, lambda _: None)
        await pool.open()
        async with anyio.create_task_group() as group:
            async with pool.place() as worker:
                pool.doubt(worker)
            group.start_soon(pool.watch)
            async with pool.place() as again:
                assert again is worker
            assert answers == []
            group.cancel_scope.cancel()

    anyio.run(main)


def test_one_that_is_left_out_gets_no_more_and_it_is_said_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    threads: list[int] = []

    async def look(address: str) -> Looked:
        return looked()

    async def main() -> None:
        client: Any = Scheduler("a", "b")
        pool = Pool(client, look, threads.append)
        await pool.open()
        async with pool.place() as worker:
            pool.leave_out(worker, "No space left on device")
        assert [one.address for one in pool.workers] == [{"a": "b", "b": "a"}[worker.address]]

    anyio.run(main)
    assert threads[-1] == 2
    assert "No space left on device; it gets no trials" in capsys.readouterr().err


def test_one_that_could_not_be_asked_is_asked_again() -> None:
    answers = [Looked("it was killed", {}, passing=True), looked()]

    async def look(address: str) -> Looked:
        return answers.pop(0)

    async def main() -> list[str]:
        client: Any = Scheduler("a")
        pool = Pool(client, look, lambda _: None)
        await pool.open()
        return [worker.address for worker in pool.workers]

    assert anyio.run(main) == ["a"]


def test_one_that_stays_doubtful_counts_for_no_place_and_is_left_out_in_the_end() -> None:
    """F10: it still counted, and was sent the suites a hundred times."""
    threads: list[int] = []
    doubtful, looks = False, 0

    async def look(address: str) -> Looked:
        nonlocal looks
        if address == "b" or not doubtful:
            return looked()
        looks += 1
        return Looked("the connection to it broke", {}, passing=True)

    async def main() -> list[str]:
        nonlocal doubtful
        client: Any = Scheduler("a", "b")
        pool = Pool(client, look, threads.append)
        await pool.open()
        doubtful = True
        pool.doubt(next(worker for worker in pool.workers if worker.address == "a"))
        assert threads[-1] == 2
        async with anyio.create_task_group() as group:
            group.start_soon(pool.watch)
            while len(pool.workers) == 2:
                await pool.looked_again()
            group.cancel_scope.cancel()
        return [worker.address for worker in pool.workers]

    assert anyio.run(main) == ["b"]
    assert looks == 5
