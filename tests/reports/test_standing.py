"""What the live display knows of a run."""

from __future__ import annotations

from pathlib import Path

from skillup.plan import Job, Plan
from skillup.reports.terminal.progress import RunProgress
from skillup.trial import TrialEvent
from tests.reports.test_junit import make_grade
from tests.reports.test_streaming import answer, call
from tests.support.families import jobs_of


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def standing_of(tmp_path: Path, trials: int = 4, **more: object) -> tuple[RunProgress, list[Job]]:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=trials)
    return RunProgress(Plan(tuple(jobs)), **more), jobs  # type: ignore[arg-type]


def test_trials_that_an_earlier_start_has_ended_count_as_done(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "input: {prompt: a}\n", trials=3)
    standing = RunProgress(Plan(tuple(jobs)), finished=[jobs[0].id, "another/run/x/1"])

    assert (standing.done, standing.kept, next(iter(standing.words()))) == (1, 1, "1 kept")


def test_it_adds_up_what_running_and_ended_trials_took(tmp_path: Path) -> None:
    standing, (one, two, *_) = standing_of(tmp_path)
    standing.start(one, 1)
    standing.add(TrialEvent(one.id, "turn_ended", 1, 2, tokens=100, cost_usd=0.5))
    standing.start(two, 1)
    usage = {"input_tokens": 30, "output_tokens": 3}
    standing.end(two, make_grade(usage=usage, cost_usd=0.25))

    assert standing.spent() == (133, 0.75)


def test_another_attempt_keeps_what_the_first_one_took(tmp_path: Path) -> None:
    standing, (one, *_) = standing_of(tmp_path)
    standing.start(one, 1)
    standing.add(TrialEvent(one.id, "turn_ended", 1, 2, tokens=100))
    standing.start(one, 2)
    assert standing.running[one.id].doing == "attempt 2"
    assert standing.spent() == (100, None)

    standing.add(TrialEvent(one.id, "turn_ended", 1, 2, tokens=30))
    standing.end(one, make_grade(usage={"input_tokens": 30, "output_tokens": None}))
    assert standing.spent() == (130, None)


def test_a_trial_that_goes_on_after_shared_turns_counts_them_once(tmp_path: Path) -> None:
    standing, (one, *_) = standing_of(tmp_path)
    standing.start(one, 1)
    standing.add(TrialEvent(one.id, "turn_ended", 1, 2, tokens=100, shared_by=3))
    standing.start(one, 1)
    assert standing.spent() == (100, None)

    standing.end(one, make_grade(usage={"input_tokens": 140, "output_tokens": None}))
    assert standing.spent() == (140, None)


def test_a_message_that_was_sent_is_no_longer_being_sent(tmp_path: Path) -> None:
    standing, (one, *_) = standing_of(tmp_path)
    standing.start(one, 1)
    standing.add(TrialEvent(one.id, "activity", text="sending the message"))
    standing.add(TrialEvent(one.id, "message_sent", 1, text="Hi"))
    assert standing.running[one.id].doing == "waiting for the agent"

    standing.add(TrialEvent(one.id, "turn_started", 2, 2, "And then?"))
    standing.add(TrialEvent(one.id, "message_sent", 2, text="And then?", source="simulator"))
    assert standing.running[one.id].doing == "simulated user: And then?"


def test_a_call_that_has_returned_is_no_longer_told(tmp_path: Path) -> None:
    standing, (one, *_) = standing_of(tmp_path)
    standing.start(one, 1)
    for call_id in ("1", "2"):
        standing.add(TrialEvent(one.id, "item", item=call(call_id)))
        standing.add(TrialEvent(one.id, "activity", text=f"Bash sleep {call_id}"))

    standing.add(TrialEvent(one.id, "item", item=answer("done", call_id="2")))
    assert standing.running[one.id].doing == "Bash sleep 1"
    standing.add(TrialEvent(one.id, "item", item=answer("done", call_id="1")))
    assert standing.running[one.id].doing == "thinks"


def test_how_long_it_will_go_on_comes_from_the_trials_that_ended(tmp_path: Path) -> None:
    clock = Clock()
    standing, (one, two, three, _) = standing_of(tmp_path, clock=clock)
    for job in (one, two):
        standing.start(job, 1)
    clock.now += 10
    standing.end(one, make_grade())
    standing.start(three, 1)
    assert standing.seconds_left() is None
    standing.end(two, make_grade())

    assert standing.seconds_left() == 7.5  # one waits, and one is half done
