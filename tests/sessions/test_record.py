"""A session as a record: judged as if skillup had held it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.judges import grade_record
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.sessions.readers import detect_format
from skillup.sessions.record import read_session, record_of_session
from tests.support.session_files import (
    claude_row,
    codex_meta,
    event,
    format_named,
    said,
    text,
    write_rows,
)


def case(*turns: dict[str, Any], **more: Any) -> Case:
    given = {"id": "c", "input": {"turns": [{"content": "x", **turn} for turn in turns]}}
    return Case.model_validate({**given, **more})


def record_of(path: Path, wanted: Case) -> Record:
    format_ = detect_format(path)
    assert format_ is not None
    return record_of_session(read_session(path, format_), wanted, "suite")


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
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.cached_input_tokens) == (95, 90)
    assert first.usage.output_tokens == 7
    assert second.usage is not None
    assert second.usage.output_tokens == 2
    assert second.started_at == "2026-01-01T00:01:00.000Z"
    assert second.duration_ms == 2500
    assert (record.session_id, record.engine.adapter, record.engine.model) == (
        "s1",
        "claude_code",
        "claude-x",
    )


def test_it_is_judged_turn_by_turn(session: Path) -> None:
    wanted = case(
        {"assertions": [{"tool_called": {"kind": "write"}}, {"contains": "a.md"}]},
        {"assertions": [{"contains": "done"}]},
    )
    assert grade(session, wanted).status == "PASS"
    swapped = case({"assertions": [{"contains": "done"}]}, {"assertions": [{"contains": "a.md"}]})
    assert grade(session, swapped).status == "FAIL"


@pytest.mark.parametrize(
    "check",
    [
        {"files_exist": "a.md"},
        {"files_not_exist": "b.md"},
        {"file_contains": {"path": "a.md", "content": "x"}},
    ],
)
def test_checks_of_files_never_pass_and_say_why(session: Path, check: dict[str, Any]) -> None:
    result = grade(session, case({"assertions": [check]}, {})).turns[0].checks[0]
    assert not result.passed
    assert not result.assertable
    assert "workspace was not looked at" in result.found


def test_that_it_was_held_with_the_users_own_settings_is_said(session: Path) -> None:
    assert any("isolation: shared" in text for text in grade(session, case({}, {})).warnings)


def test_more_turns_in_the_case_than_in_the_session_fail(session: Path) -> None:
    wanted = case({}, {}, {"assertions": [{"not_contains": "x"}]})
    assert any("2 turns, the case 3 turns" in note for note in record_of(session, wanted).notes)
    assert grade(session, wanted).status == "FAIL"


def test_more_turns_in_the_session_are_said(session: Path) -> None:
    wanted = case({"assertions": [{"contains": "a.md"}]})
    assert any("2 turns, the case 1 turn:" in note for note in record_of(session, wanted).notes)
    assert grade(session, wanted).status == "PASS"


NEVER = {"contains": "never said"}


@pytest.mark.parametrize("how", ["mean", "max", "min"])
def test_turns_that_the_case_does_not_have_do_not_count(session: Path, how: str) -> None:
    wanted = case({"assertions": [NEVER]}, aggregation=how, pass_threshold=0.5)
    graded = grade(session, wanted)
    assert (graded.status, graded.score, len(graded.turns)) == ("FAIL", 0.0, 1)
    # "Done." is what the second turn answered.
    assert grade(session, case({}, assertions=[{"contains": "done"}])).status == "FAIL"
    assert grade(session, case({}, assertions=[{"contains": "a.md"}])).status == "PASS"
    prompted = Case.model_validate(
        {"id": "c", "input": {"prompt": "x"}, "assertions": [{"contains": "done"}]}
    )
    assert grade(session, prompted).status == "FAIL"


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


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize(
    "third",
    [
        {},
        {"post_condition": {"must_contain_any": ["x"]}},
        {"post_condition": {"must_contain_any": ["x"], "on_fail": "skip_remaining"}},
        {"assertions": [{"not_contains": "x"}]},
    ],
)
def test_a_case_whose_last_turn_the_session_lacks_never_passes(
    session: Path, third: dict[str, Any], how: str
) -> None:
    first = {"assertions": [{"contains": "a.md"}]}
    graded = grade(session, case(first, {}, third, aggregation=how, pass_threshold=0.5))
    assert graded.status == "FAIL"
    assert "the session ends before this turn" in graded.reason
    assert [turn.status for turn in graded.turns] == ["completed", "completed", "skipped"]


def test_checks_of_a_conversation_that_is_not_whole_are_not_assertable(session: Path) -> None:
    graded = grade(session, case({}, {}, {}, assertions=[{"not_contains": "x"}]))
    assert [result.assertable for result in graded.assertions] == [False]


def test_a_message_that_got_no_answer_is_an_error_if_the_case_asks_for_it(tmp_path: Path) -> None:
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
    assert graded.error is not None
    assert "limit" in graded.error["evidence"]


def test_a_session_without_any_answer_is_an_error(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "session.jsonl", [claude_row("user", "one", "1", None)])
    wanted = case({}, assertions=[{"not_contains": "x"}])
    assert grade(path, wanted).status == "ERROR"


def test_usage_of_codex_is_told_as_sums_of_the_thread(tmp_path: Path) -> None:
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
    told = [
        (turn.usage.input_tokens, turn.usage.output_tokens) for turn in record.turns if turn.usage
    ]
    assert told == [(250, 15), (150, 5)]


def test_usage_of_a_message_that_is_told_on_several_rows_counts_once(tmp_path: Path) -> None:
    rows = [
        claude_row("user", "one", "1", None),
        answer("I look", "2", "1", input_tokens=10, output_tokens=1),
        answer("and see", "3", "2", input_tokens=10, output_tokens=9),
    ]
    rows[1]["message"]["id"] = rows[2]["message"]["id"]
    [turn] = record_of(write_rows(tmp_path / "s.jsonl", rows), case({})).turns
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (10, 9)


def test_a_file_that_is_gone_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_session(tmp_path / "none.jsonl", format_named("claude_session"))
