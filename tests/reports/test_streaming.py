"""`-v`: the conversation as it is held."""

from __future__ import annotations

import io

from rich.console import Console

from skillup.reports.terminal.conversation import ConversationStream
from skillup.reports.text import plain
from skillup.schema.grade import CheckResult, TurnGrade
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem
from skillup.trial import TrialEvent
from tests.reports.test_junit import make_grade

JOB = "a/p/with_skill/1"


class Heard:
    """A stream, and what it printed."""

    def __init__(self, secret: str = "s3cret") -> None:
        self.file = io.StringIO()
        console = Console(file=self.file, width=80, highlight=False)
        self.stream = ConversationStream(console, lambda text: text.replace(secret, "***"))

    def item(self, item: TranscriptItem, job: str = JOB, label: str = "a") -> None:
        self.stream.add(TrialEvent(job, "item", item=item), label)

    def message(self, text: str, turn: int = 1, **more: str) -> None:
        event = TrialEvent(JOB, "message_sent", turn, 0, text, **more)  # type: ignore[arg-type]
        self.stream.add(event, "a")

    @property
    def text(self) -> str:
        return self.file.getvalue()


def call(call_id: str = "1", **arguments: object) -> TranscriptItem:
    made = ToolCall(id=call_id, name="Bash", kind="shell", arguments=arguments)
    return TranscriptItem(type="tool_call", tool_call=made)


def answer(content: str, status: str = "success", call_id: str = "1") -> TranscriptItem:
    result = ToolResult.model_validate({"call_id": call_id, "status": status, "content": content})
    return TranscriptItem(type="tool_result", tool_result=result)


def test_messages_calls_and_results_are_blocks_with_the_trials_name() -> None:
    heard = Heard()
    heard.message("Delete all.", turn=2)
    heard.item(call(command="ls\npwd"))
    heard.item(answer("a.log"))
    heard.item(answer("no", "error"))
    heard.item(TranscriptItem(type="message", text="There are 3."))

    assert heard.text == (
        "a  turn 2  user\n    Delete all.\n"
        "a  turn 2  agent calls Bash\n    ls\n    pwd\n"
        "a  turn 2  Bash gave\n    a.log\n"
        "a  turn 2  Bash failed\n    no\n"
        "a  turn 2  agent\n    There are 3.\n"
    )


def test_on_a_terminal_long_lines_go_on_below_where_they_began() -> None:
    file = io.StringIO()
    console = Console(file=file, width=30, highlight=False, force_terminal=True, color_system=None)
    item = TranscriptItem(type="message", text="A deletion takes two confirmations.")
    ConversationStream(console).add(TrialEvent(JOB, "item", item=item), "a")

    assert file.getvalue() == "a  agent\n    A deletion takes two\n    confirmations.\n"


def test_an_argument_of_several_lines_stands_below_its_name() -> None:
    heard = Heard()
    heard.item(call(content="one: 1\ntwo: 2\n", file="a.txt"))

    assert "    content:\n        one: 1\n        two: 2\n    file: a.txt\n" in heard.text


def test_long_results_are_cut_and_say_so() -> None:
    heard = Heard()
    heard.item(answer("\n".join(map(str, range(100)))))

    assert heard.text.endswith("    19\n    … 80 lines more\n")


def test_nothing_of_an_agent_reaches_the_terminal_as_control_or_markup() -> None:
    heard = Heard()
    heard.item(TranscriptItem(type="message", text="[bold]\x1b[2J\x1b]0;x\x07\r[/bold]\u202e"))
    heard.item(call("\x1b[31m", command="\x9b2J"))

    assert plain(heard.text) == heard.text
    assert "[bold]" in heard.text


def test_secrets_are_masked() -> None:
    heard = Heard()
    heard.message("key s3cret")
    heard.item(call(command="curl -H s3cret"))

    assert "s3cret" not in heard.text
    assert "key ***" in heard.text


def test_checks_are_told_turn_by_turn_when_the_trial_has_ended() -> None:
    heard = Heard()
    met = CheckResult(name="asks", kind="contains", passed=True, score=1)
    not_met = CheckResult(name="polite", kind="contains", passed=False, score=0, found="rude")
    turn = TurnGrade(
        turn_number=1,
        status="completed",
        source="case",
        content="x",
        response="y",
        score=0,
        post_condition_passed=None,
        session_verified=None,
        checks=[met],
    )
    heard.stream.end(JOB, "a", make_grade(turns=[turn], assertions=[not_met]))

    assert heard.text == (
        "a  checks of turn 1\n    met      asks\n"
        "a  checks of the conversation\n    NOT MET  polite: rude\n"
    )


def test_what_was_expected_and_found_is_not_said_twice() -> None:
    heard = Heard()
    check = CheckResult(name='not_contains "x"', kind="not_contains", passed=False, score=0,
                        expected='no "x"', found='found "x"')  # fmt: skip
    heard.stream.checks("a", "checks", [check], details=True)

    assert [line.split(maxsplit=1) for line in heard.text.splitlines()[2:]] == [
        ["expected", 'no "x"'],
        ["found", '"x"'],
    ]
