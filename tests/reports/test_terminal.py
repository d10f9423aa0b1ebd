"""On a terminal: conversations as they are printed, the live display, and sessions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from skillup.engines.session_files import SessionEntry, SessionSummary
from skillup.plan import Job, Plan
from skillup.reports.terminal.conversation import ConversationStream
from skillup.reports.terminal.progress import PlainReporter, RunProgress
from skillup.reports.terminal.run import LiveReporter
from skillup.reports.text import plain
from skillup.schema.grade import CheckResult
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem
from skillup.sessions.index import foot_lines, head_lines, print_entries
from skillup.trial.request import TrialEvent
from tests.support.graded import a_grade, a_turn
from tests.support.plans import jobs_of

JOB = "a/p/with_skill/1"


class Stream:
    """A conversation's stream, and what it printed."""

    def __init__(self, width: int = 80, **more: Any) -> None:
        self.file = io.StringIO()
        console = Console(file=self.file, width=width, highlight=False, color_system=None, **more)
        self.stream = ConversationStream(console, lambda text: text.replace("s3cret", "***"))

    def item(self, item: TranscriptItem) -> None:
        self.stream.add(TrialEvent(JOB, "item", item=item), "a")

    def message(self, text: str, turn: int = 1) -> None:
        self.stream.add(TrialEvent(JOB, "message_sent", turn, 0, text), "a")

    @property
    def text(self) -> str:
        return self.file.getvalue()


def call(name: str = "Bash", **arguments: object) -> TranscriptItem:
    made = ToolCall(id="1", name=name, kind="shell", arguments=arguments)
    return TranscriptItem(type="tool_call", tool_call=made)


def answer(content: str, status: str = "success") -> TranscriptItem:
    result = ToolResult.model_validate({"call_id": "1", "status": status, "content": content})
    return TranscriptItem(type="tool_result", tool_result=result)


def test_messages_calls_and_results_are_blocks_with_the_trials_name() -> None:
    shown = Stream()
    shown.message("Delete all.", turn=2)
    shown.item(call(command="ls\npwd"))
    shown.item(answer("a.log"))
    shown.item(answer("no", "error"))
    shown.item(call(content="one: 1\ntwo: 2\n", file="a.txt"))
    shown.item(TranscriptItem(type="message", text="There are 3."))

    assert shown.text == (
        "a  turn 2  user\n    Delete all.\n"
        "a  turn 2  agent calls Bash\n    ls\n    pwd\n"
        "a  turn 2  Bash gave\n    a.log\n"
        "a  turn 2  Bash failed\n    no\n"
        "a  turn 2  agent calls Bash\n"
        "    content: one: 1\n    two: 2\n    \n    file: a.txt\n"
        "a  turn 2  agent\n    There are 3.\n"
    )


def test_neither_controls_nor_markup_nor_secrets_reach_the_terminal() -> None:
    shown = Stream()
    shown.item(TranscriptItem(type="message", text="[bold]\x1b[2J\x1b]0;x\x07\r[/bold]\u202e"))
    shown.item(call("\x1b[31m", command="\x9b2J s3cret"))
    shown.message("key s3cret")
    assert plain(shown.text) == shown.text
    assert "[bold]" in shown.text
    assert "key ***" in shown.text
    assert "s3cret" not in shown.text


def test_checks_are_printed_turn_by_turn_when_the_trial_has_ended() -> None:
    shown = Stream()
    good = CheckResult(name="asks", kind="contains", passed=True, score=1)
    bad = CheckResult(name="polite", kind="contains", passed=False, score=0, found="rude")
    grade = a_grade(turns=[a_turn(checks=[good])], assertions=[bad])
    shown.stream.end(JOB, "a", grade)

    assert shown.text == (
        "a  checks of turn 1\n    passed   asks\n"
        "a  checks of the conversation\n    FAILED   polite: rude\n"
    )


# The live display.


class Clock:
    """Stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def progress_of(tmp_path: Path, trials: int = 4, **more: Any) -> tuple[RunProgress, list[Job]]:
    jobs = jobs_of(tmp_path, "input: {turns: [a, b]}\n", trials=trials)
    return RunProgress(Plan(tuple(jobs)), **more), jobs


def test_it_adds_up_what_running_and_ended_trials_took(tmp_path: Path) -> None:
    progress, (one, two, *_) = progress_of(tmp_path)
    progress.start(one, 1)
    progress.add(TrialEvent(one.id, "turn_ended", 1, 2, tokens=100, cost_usd=0.5))
    progress.start(two, 1)
    usage = {"input_tokens": 30, "output_tokens": 3}
    progress.end(two, a_grade(usage=usage, cost_usd=0.25))
    assert progress.spent() == (133, "$0.75")

    progress.start(one, 2)  # another attempt keeps what the first one took
    assert progress.running[one.id].doing == "attempt 2"
    assert progress.spent() == (133, "$0.75")
    progress.end(one, a_grade(cost_usd=None))
    assert progress.spent()[1] == "≥ $0.25", "one that does not tell is no zero"


def test_what_a_trial_is_doing(tmp_path: Path) -> None:
    progress, (one, *_) = progress_of(tmp_path)
    progress.start(one, 1)
    steps: list[tuple[TrialEvent, str]] = [
        (TrialEvent(one.id, "activity", text="sending the message"), "sending the message"),
        (TrialEvent(one.id, "message_sent", 1, text="Hi"), "waiting for the agent"),
        (TrialEvent(one.id, "activity", text="Bash sleep 1"), "Bash sleep 1"),
        (TrialEvent(one.id, "item", item=answer("done")), "thinks"),
        (TrialEvent(one.id, "turn_started", 2, 2, "And then?"), "simulated user: And then?"),
        (
            TrialEvent(one.id, "message_sent", 2, text="And then?", source="simulator"),
            "simulated user: And then?",
        ),
        (TrialEvent(one.id, "turn_ended", 2, 2), "judging"),
    ]
    for event, doing in steps:
        progress.add(event)
        assert progress.running[one.id].doing == doing


def test_how_long_it_will_go_on_comes_from_the_trials_that_ended(tmp_path: Path) -> None:
    clock = Clock()
    progress, (one, two, three, _) = progress_of(tmp_path, clock=clock)
    for job in (one, two):
        progress.start(job, 1)
    clock.now += 10
    progress.end(one, a_grade())
    progress.start(three, 1)
    assert progress.seconds_left() is None
    progress.end(two, a_grade())
    assert progress.seconds_left() == 7.5  # one waits, and one is half done


def test_the_line_of_a_trial_that_ended_is_one_line_of_the_terminal(tmp_path: Path) -> None:
    """U6: at 80 columns each took two."""
    (job,) = jobs_of(tmp_path, "input: {turns: [a, b]}\n")
    grade = a_grade("c", "f", reason="why it did not pass, in so many words that they fill a line")
    for width, cut in ((80, "…"), (30, "")):
        file = io.StringIO()
        console = Console(file=file, width=width, force_terminal=True, no_color=True)
        PlainReporter(Plan((job,)), lambda c=console: c).trial_finished(job, None, grade)  # type: ignore[arg-type,misc]
        (line,) = file.getvalue().splitlines()
        assert (len(line.strip()) <= width, cut in line) == (True, True), line


def reporter_of(tmp_path: Path, **more: Any) -> tuple[LiveReporter, Job, io.StringIO]:
    (job,) = jobs_of(tmp_path, "input: {turns: [a, b]}\n")
    file = io.StringIO()
    return LiveReporter(Plan((job,)), lambda: Console(file=file, width=120), **more), job, file


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ({"text": ""}, "turn 1/2  0.0 s"),
        ({"text": "Hello"}, "simulated user: Hello"),
        ({"text": "key s3cret"}, "simulated user: key ***"),
    ],
)
def test_the_line_of_a_running_trial(tmp_path: Path, event: dict[str, Any], shown: str) -> None:
    reporter, job, file = reporter_of(tmp_path, mask=lambda text: text.replace("s3cret", "***"))
    reporter.trial_started(job, 1)
    reporter.trial_event(TrialEvent(job.id, "turn_started", 1, 2, **event))
    reporter.console.print(reporter)
    assert shown in file.getvalue()


# A session as people read it.


CALL = ToolCall(id="c", name="Bash", kind="shell", arguments={"command": "ls", "n": 1})


def _entry(role: str, text: str = "", agent: str | None = None, **more: object) -> SessionEntry:
    kind = "message" if role in ("user", "assistant") else role
    item = TranscriptItem.model_validate({"type": kind, "text": text, "agent": agent, **more})
    return SessionEntry(1, "2026-01-01T00:00:00Z", 1, role, item)  # type: ignore[arg-type]


def _result(content: str, status: str = "success") -> SessionEntry:
    result = ToolResult(call_id="c", status=status, content=content)
    return _entry("tool_result", tool_result=result)


def _shown(*entries: SessionEntry, full: bool = False) -> str:
    stream = io.StringIO()
    print_entries(entries, Console(file=stream, width=200), full=full)
    return stream.getvalue()


def test_a_session_is_printed_as_conversations_are() -> None:
    entries = (
        _entry("user", "Look."),
        _entry("tool_call", tool_call=CALL),
        _result("no", "error"),
        _entry("reasoning"),
        _entry("assistant", "seen", agent="a1"),
    )
    assert _shown(*entries) == (
        "turn 1  user\n    Look.\nturn 1  agent calls Bash\n    command: ls\n    n: 1\n"
        "turn 1  Bash failed\n    no\nturn 1  sub-agent a1\n    seen\n"
    )
    content = "\n".join(f"line {number}" for number in range(30))
    assert _shown(_result(content)).endswith("    line 19\n    … 10 lines more\n")
    assert "line 29" in _shown(_result(content), full=True)


def test_nothing_moves_the_cursor_of_the_terminal() -> None:
    evil = "a\x1b[2Jb\x07\x9bc\rd\u202e"
    call = ToolCall(id="c", name=evil, kind="other", arguments={evil: evil})
    entries = [_entry("user", evil, agent=evil), _entry("tool_call", tool_call=call), _result(evil)]
    summary = SessionSummary(session_id=evil, cwd=evil, title=evil, model=evil)
    shown = [
        *head_lines("codex", Path(evil), summary),
        _shown(*entries, full=True),
        *foot_lines(summary),
    ]
    assert not set("\n".join(shown)) & set("\x1b\x07\x9b\r\u202e")


def test_long_results_are_cut_and_say_so() -> None:
    shown = Stream()
    shown.item(answer("\n".join(map(str, range(100)))))
    assert shown.text.endswith("    19\n    … 80 lines more\n")


def test_the_foot_says_what_is_missing() -> None:
    summary = SessionSummary(turns=2, unknown_lines=1, truncated=True)
    foot = list(foot_lines(summary))
    assert foot[1:3] == ["2 turns", "1 line not understood"]
    assert "cut off" in foot[3]
