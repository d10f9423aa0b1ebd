"""How long a run will still go on."""

from __future__ import annotations

import threading

import pytest

from skillup.reports.terminal.run_progress import Eta, about


def test_nothing_is_said_before_two_trials_have_ended() -> None:
    pace = Eta()
    pace.add("a", 10)

    assert pace.left([("a", 1)], ["a"], 1) is None


def test_what_waits_is_shared_by_those_that_are_held_at_once() -> None:
    pace = Eta()
    for _ in range(3):
        pace.add("a", 10)

    assert pace.left([("a", 4), ("a", 6)], ["a"] * 8, 2) == pytest.approx((6 + 4 + 80) / 2)


def test_a_case_takes_what_its_like_took_and_an_unknown_one_the_mean_of_all() -> None:
    pace = Eta()
    pace.add("short", 2)
    pace.add("long", 100)

    assert pace.left([], ["long"], 4) == 100
    assert pace.left([], ["new"], 4) == 51


def test_it_is_never_less_than_what_is_left_of_the_longest() -> None:
    pace = Eta()
    pace.add("short", 2)
    pace.add("long", 100)

    assert pace.left([("long", 10), ("short", 1)], [], 8) == 90
    assert pace.left([("short", 50)], [], 8) == 0  # later than usual: soon, not in the past


def test_trials_that_go_on_longer_than_what_has_ended_are_the_measure_of_their_like() -> None:
    pace = Eta()
    for _ in range(3):
        pace.add("short", 0.1)

    # Nine trials of six seconds wait for three places, and the first of them are under way.
    assert pace.left([("long", 6)] * 3, ["long"] * 9, 3) == pytest.approx(18)
    pace.add("long", 2)
    assert (pace.left([("long", 6)], ["long"] * 9, 1) or 0) >= 9 * 4


def test_thousands_of_trials_of_a_case_are_reckoned_with_once_for_all_of_them() -> None:
    pace = Eta()
    for _ in range(20_000):
        pace.add("a", 10)

    # Each by itself would take minutes.
    assert pace.left([], ["a"] * 200_000, 2) == pytest.approx(1_000_000)


@pytest.mark.usefixtures("threads_take_turns_often")
def test_trials_of_new_cases_may_end_while_it_is_reckoned() -> None:
    pace = Eta()
    failed: list[BaseException] = []
    over = threading.Event()

    def reckon() -> None:
        try:
            while not over.is_set():
                pace.left([], ["new"], 1)
        except RuntimeError as error:  # the dictionary changed under its hands
            failed.append(error)

    thread = threading.Thread(target=reckon)
    thread.start()
    for number in range(3000):
        pace.add(f"case {number}", 1)
    over.set()
    thread.join()

    assert failed == []


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "a few seconds"),
        (42, "about 40 s"),
        (240, "about 4 min"),
        (3600, "about 60 min"),
        (2 * 3600 + 60, "about 2 h"),
        (2.5 * 3600, "about 2 h 30 min"),
    ],
)
def test_a_guess_is_told_no_finer_than_it_is(seconds: float, said: str) -> None:
    assert about(seconds) == said
