"""Which messages of a session are one turn, and its record: judged as if skillup had run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.judges import grade_record
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.sessions.record import read_session, record_of_session
from tests.support.session_files import (
    claude_row,
    claude_rows,
    codex_meta,
    event,
    said,
    text,
    write_rows,
)

WRITES = {"assertions": [{"contains": "a.md"}]}
NEVER = {"assertions": [{"contains": "never said"}]}


def case(*turns: dict[str, Any], **more: Any) -> Case:
    given = {"id": "c", "input": {"turns": [{"content": "x", **turn} for turn in turns]}}
    return Case.model_validate({**given, **more})


def record_of(path: Path, wanted: Case) -> Record:
    return record_of_session(read_session(path), wanted, "suite")


def grade(path: Path, wanted: Case) -> Grade:
    return grade_record(record_of(path, wanted), lambda _: None)


def answer(words: str, number: str, parent: str, **usage: int) -> dict[str, Any]:
    row = claude_row("assistant", text(words), number, parent)
    row["message"]["usage"] = usage
    return row


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Two turns of Claude Code: it writes a file, then answers."""
    call = [{"type": "tool_use", "id": "c1", "name": "Write", "input": {"file_path": "a.md"}}]
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]
    rows = [
        claude_row("user", "one", "1", None),
        claude_row("assistant", call, "2", "1"),
        claude_row("user", result, "3", "2"),
        answer("Wrote a.md", "4", "3", input_tokens=5, cache_read_input_tokens=90, output_tokens=7),
        claude_row("user", "two", "5", "4", timestamp="2026-01-01T00:01:00.000Z"),
        answer("Done.", "6", "5", input_tokens=1, output_tokens=2),
    ]
    rows[-1]["timestamp"] = "2026-01-01T00:01:02.500Z"
    return write_rows(tmp_path / "session.jsonl", rows)


def test_turns_tools_usage_and_times(session: Path) -> None:
    record = record_of(session, case({}, {}))
    first, second = record.turns
    assert (first.content, first.response, first.status) == ("one", "Wrote a.md", "completed")
    assert [(call.name, call.kind) for call in first.tool_calls] == [("Write", "write")]
    assert [result.status for result in first.tool_results] == ["success"]
    assert first.usage
    assert second.usage
    assert (first.usage.input_tokens, first.usage.cached_input_tokens) == (95, 90)
    assert (first.usage.output_tokens, second.usage.output_tokens) == (7, 2)
    assert (second.started_at, second.duration_ms) == ("2026-01-01T00:01:00.000Z", 2500)
    engine = record.engine
    assert (record.session_id, engine.adapter, engine.model) == ("s1", "claude_code", "claude-x")
    warnings = grade(session, case({}, {})).warnings
    assert any("isolation: shared" in warning for warning in warnings)
    with pytest.raises(UsageError):
        read_session(session.with_name("none.jsonl"))


NOTHING = {"assertions": [{"not_contains": "x"}]}
DONE = {"assertions": [{"contains": "done"}]}
WROTE = {"assertions": [{"tool_called": {"kind": "write"}}, {"contains": "a.md"}]}


@pytest.mark.parametrize(
    ("wanted", "status", "note"),
    [
        (case(WROTE, DONE), "PASS", None),
        (case(DONE, WRITES), "FAIL", None),
        (case({}, {}, NOTHING), "FAIL", "2 turns, the case 3 turns"),
        (case(WRITES), "PASS", "2 turns, the case 1 turn:"),
        # What the second turn answered is not the case's.
        (case({}, assertions=[{"contains": "done"}]), "FAIL", None),
        (case({}, assertions=[{"contains": "a.md"}]), "PASS", None),
        *(
            (case(NEVER, aggregation=how, pass_threshold=0.5), "FAIL", None)
            for how in ("mean", "max")
        ),
    ],
)
def test_it_is_judged_turn_by_turn(
    session: Path, wanted: Case, status: str, note: str | None
) -> None:
    assert grade(session, wanted).status == status
    assert note is None or any(note in one for one in record_of(session, wanted).notes)


@pytest.mark.parametrize("check", [{"files_exist": "a.md"}, {"files_not_exist": "b.md"}])
def test_checks_of_files_never_pass_and_say_why(session: Path, check: dict[str, Any]) -> None:
    result = grade(session, case({"assertions": [check]}, {})).turns[0].checks[0]
    assert not result.passed
    assert not result.assertable
    assert "workspace was not looked at" in result.found


@pytest.mark.parametrize("line", ['{"type": "assis', '{"a":' * 101 + "1" + "}" * 101])
def test_that_something_was_not_called_cannot_be_said_of_lines_not_read(
    session: Path, line: str
) -> None:
    never = {"assertions": [{"tool_not_called": {"kind": "shell"}}]}
    assert grade(session, case(never, never)).status == "PASS"
    with session.open("a") as file:
        file.write(line)
    first, second = grade(session, case(never, never)).turns
    assert (first.checks[0].passed, second.checks[0].assertable) == (True, False)


@pytest.mark.parametrize(
    "given",
    [
        {"input": {"conversation": {"max_turns": 1, "persona": {"objective": "x"}}}},
        {"input": {"transcript": [{"role": "user", "content": "x"}]}},
        {"input": {"prompt": "x"}, "max_turns": 1, "user_simulator": {"scenario": "s"}},
    ],
)
def test_where_the_case_does_not_say_how_many_turns_there_are_all_are_judged(
    session: Path, given: dict[str, Any]
) -> None:
    wanted = Case.model_validate({"id": "c", **given, "assertions": [{"contains": "done"}]})
    graded = grade(session, wanted)
    assert (graded.status, len(graded.turns)) == ("PASS", 2)
    assert not record_of(session, wanted).notes


@pytest.mark.parametrize(
    "third",
    [{}, {"post_condition": {"must_contain_any": ["x"], "on_fail": "skip_remaining"}}, NOTHING],
)
def test_a_case_whose_last_turn_the_session_lacks_never_passes(
    session: Path, third: dict[str, Any]
) -> None:
    for how in ("mean", "max"):
        graded = grade(session, case(WRITES, {}, third, aggregation=how, pass_threshold=0.5))
        assert graded.status == "FAIL"
        assert "the session ends before this turn" in graded.reason
        assert [turn.status for turn in graded.turns] == ["completed", "completed", "skipped"]
    graded = grade(session, case({}, {}, third, assertions=[{"not_contains": "x"}]))
    assert [result.assertable for result in graded.assertions] == [False]


def test_a_message_without_an_answer_is_an_error_if_the_case_asks_for_it(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "one", "1", None),
        answer("yes", "2", "1"),
        claude_row("user", "two", "3", "2"),
        claude_row("assistant", text("You've hit your limit"), "4", "3"),
    ]
    rows[-1]["message"]["model"] = "<synthetic>"
    path = write_rows(tmp_path / "session.jsonl", rows)
    check = {"assertions": [{"contains": "yes"}]}
    assert grade(path, case(check)).status == "PASS"
    graded = grade(path, case(check, check))
    assert graded.status == "ERROR"
    assert "limit" in (graded.error or {})["evidence"]
    alone = write_rows(tmp_path / "alone.jsonl", rows[:1])
    assert grade(alone, case({}, assertions=[{"not_contains": "x"}])).status == "ERROR"


def test_usage_is_the_turns_own_and_counted_once(tmp_path: Path) -> None:
    """Codex writes sums of the thread; Claude's rows of one message repeat their counts."""

    def count(given: int, output: int) -> dict[str, Any]:
        total = {"input_tokens": given, "cached_input_tokens": 0, "output_tokens": output}
        return event("token_count", info={"total_token_usage": total})

    rows = [
        codex_meta(),
        *said("user", "one"),
        count(100, 10),
        *said("assistant", "yes"),
        count(250, 15),
        *said("user", "two"),
        *said("assistant", "yes!"),
        count(400, 20),
    ]
    record = record_of(write_rows(tmp_path / "r.jsonl", rows), case({}, {}))
    usages = [turn.usage for turn in record.turns if turn.usage]
    assert [(one.input_tokens, one.output_tokens) for one in usages] == [(250, 15), (150, 5)]
    rows = [
        claude_row("user", "one", "1", None),
        answer("I look", "2", "1", input_tokens=10, output_tokens=1),
        answer("and see", "3", "2", input_tokens=10, output_tokens=9),
    ]
    rows[1]["message"]["id"] = rows[2]["message"]["id"]
    [turn] = record_of(write_rows(tmp_path / "s.jsonl", rows), case({})).turns
    assert turn.usage
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (10, 9)


COMMAND = "<command-message>x</command-message><command-name>/{}</command-name>"
CLEARED = f"u {COMMAND.format('clear')}", "u <local-command-stdout>cleared</local-command-stdout>"
REVIEW = f"u {COMMAND.format('review')}<command-args>the diff\n</command-args>"
CALL = [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}]


@pytest.mark.parametrize(
    ("spoken", "turns", "unanswered"),
    [
        (
            ["u one", "a first", "a second", "u two", "a third"],
            [("one", "second"), ("two", "third")],
            [],
        ),
        (["u one", "u two", "a yes"], [("one\n\ntwo", "yes")], []),
        (["u one", "u one", "a yes"], [("one", "yes")], []),
        (["u one", "a yes", "u two"], [("one", "yes")], ["two"]),
        ([*CLEARED, "u one", "a yes"], [("one", "yes")], ["/clear"]),
        ([REVIEW, "a fine"], [("/review the diff", "fine")], []),
        (["u one", CALL, "u two"], [("one", "")], ["two"]),
        (
            ["u one", "a I begin", "u [Request interrupted by user]", "u two", "a yes"],
            [("one", "I begin"), ("two", "yes")],
            [],
        ),
    ],
)
def test_messages_and_answers_as_turns(
    tmp_path: Path, spoken: list[Any], turns: list[tuple[str, str]], unanswered: list[str]
) -> None:
    kinds = {"a": "assistant", "u": "user"}
    said = [("assistant", CALL) if one is CALL else (kinds[one[0]], one[2:]) for one in spoken]
    found = read_session(write_rows(tmp_path / "session.jsonl", claude_rows(*said)))
    assert [(turn.content, turn.response) for turn in found.turns] == turns
    assert [turn.content for turn in found.unanswered] == unanswered
    assert found.turns[0].command == turns[0][0].startswith("/")
    assert found.turns[0].interrupted == (turns[0][1] == "I begin")
