"""A session becomes a case that validates, and that the session itself passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.judges import grade_record
from skillup.load.yaml_reader import parse_yaml
from skillup.schema.case import Case
from skillup.sessions.case import CaseText, case_of_session
from skillup.sessions.index import revision_of, session_format
from skillup.sessions.readers import detect_format
from skillup.sessions.record import RecordedSession, read_session, record_of_session
from tests.support.session_files import claude_row, text, write_rows


def held(path: Path) -> RecordedSession:
    format_ = detect_format(path)
    assert format_ is not None
    return read_session(path, format_)


def made(tmp_path: Path, *said: tuple[str, Any], **more: Any) -> CaseText:
    """The case of a session of Claude Code in which this was said."""
    rows = []
    for number, (kind, content) in enumerate(said):
        parent = str(number - 1) if number else None
        rows.append(claude_row(kind, content, str(number), parent))
    session = held(write_rows(tmp_path / "session.jsonl", rows))
    return case_of_session(session, schema="case.schema.json", **more)


def case_in(case: CaseText) -> Case:
    return Case.model_validate(parse_yaml(case.text, Path("case.yaml")).data)


def use(name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": f"id-{name}", "name": name, "input": arguments}]


def result(name: str, *, failed: bool = False) -> list[dict[str, Any]]:
    given = {"tool_use_id": f"id-{name}", "content": "x", "is_error": failed}
    return [{"type": "tool_result", **given}]


def test_messages_stay_what_they_were(tmp_path: Path) -> None:
    message = "Put <<name>> and {{name}}:\n  - # no comment\n\n\ttab \x1b[31m 'q' \"d\" \\n  "
    case = made(tmp_path, ("user", message), ("assistant", text("done it")))
    assert case_in(case).input.all_turns()[0].content == message.replace("<<n", "\\<<n").replace(
        "{{n", "\\{{n"
    )


def test_blank_lines_at_the_end_of_a_message_do_not_end_the_case(tmp_path: Path) -> None:
    """S13: found with damaged sessions."""
    said = (
        ("user", "one\n\n"),
        ("assistant", text("1")),
        ("user", "two"),
        ("assistant", text("2")),
    )
    case = made(tmp_path, *said)
    assert [turn.content for turn in case_in(case).input.all_turns()] == ["one\n\n", "two"]


@pytest.mark.parametrize("blank", ["\n", " ", "\u3000\t"])
def test_a_message_without_text_is_left_out_and_that_is_said(tmp_path: Path, blank: str) -> None:
    case = made(
        tmp_path,
        *(("user", "one"), ("assistant", text("first answer"))),
        *(("user", blank), ("assistant", text("to nothing"))),
        *(("user", "two"), ("assistant", text("second answer"))),
    )
    assert [turn.content for turn in case_in(case).input.all_turns()] == ["one", "two"]
    assert any("a message without text" in note for note in case.notes)
    record = record_of_session(held(tmp_path / "session.jsonl"), case_in(case), "")
    assert [turn.response for turn in record.turns] == ["first answer", "second answer"]
    assert grade_record(record, lambda _: None).status == "PASS"


def test_a_session_of_nothing_but_messages_without_text_makes_no_case(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of its messages that has a text was answered"):
        made(tmp_path, ("user", "\n"), ("assistant", text("to nothing")))


def test_tools_skills_and_words_are_suggested(tmp_path: Path) -> None:
    case = made(
        tmp_path,
        ("user", "go"),
        ("assistant", use("Bash", command="ls")),
        ("user", result("Bash")),
        ("assistant", use("Skill", skill="log-keeper")),
        ("user", result("Skill")),
        ("assistant", use("mcp__github__list", repo="x")),
        ("user", result("mcp__github__list")),
        ("assistant", text("There are 3 files.")),
    )
    [turn] = case_in(case).input.all_turns()
    assert [check.model_dump(exclude_unset=True) for check in turn.assertions] == [
        {"tool_called": {"kind": "shell"}},
        {"skill_used": "log-keeper"},
        {"tool_called": {"name": "github::list"}},
        {"contains": {"all": ["3 files"]}},
    ]
    assert "# Suggested by what happened" in case.text


def test_a_short_answer_is_suggested_as_a_whole_and_a_vague_one_just_has_to_be_there(
    tmp_path: Path,
) -> None:
    case = made(
        tmp_path,
        ("user", "one"),
        ("assistant", text("lol.")),
        ("user", "two"),
        ("assistant", text("It is what it is, I would say; so be it.")),
    )
    first, second = case_in(case).input.all_turns()
    assert [check.key for check in first.assertions] == ["contains"]
    assert first.assertions[0].contains is not None
    assert first.assertions[0].contains.all == ["lol"]
    assert [check.key for check in second.assertions] == ["matches"]


def test_tools_that_failed_are_not_suggested(tmp_path: Path) -> None:
    case = made(
        tmp_path,
        ("user", "go"),
        ("assistant", use("Bash", command="false")),
        ("user", result("Bash", failed=True)),
        ("assistant", text("It failed: permission denied")),
    )
    assert "tool_called" not in case.text


def test_files_made_are_suggested_as_a_comment_that_can_be_taken_in(tmp_path: Path) -> None:
    case = made(
        tmp_path,
        ("user", "go"),
        ("assistant", use("Write", file_path="/project/docs/a.md", content="x")),
        ("user", result("Write")),
        ("assistant", use("Edit", file_path="/elsewhere/b.md")),
        ("user", result("Edit")),
        ("assistant", text("Written.")),
    )
    assert all(not check.files_exist for check in case_in(case).input.all_turns()[0].assertions)
    lines = case.text.splitlines()
    start = next(n for n, line in enumerate(lines) if "# A session has no snapshot" in line)
    taken_in = [line.replace("# ", "", 1) for line in lines[start + 1 :]]
    with_files = "\n".join([*lines[:start], *taken_in])
    [turn] = Case.model_validate(parse_yaml(with_files, Path("x")).data).input.all_turns()
    assert turn.assertions[-1].files_exist == ["docs/a.md"]


def test_a_command_of_the_cli_is_marked(tmp_path: Path) -> None:
    command = "<command-name>/review</command-name><command-args>all</command-args>"
    case = made(tmp_path, ("user", command), ("assistant", text("All reviewed.")))
    [turn] = case_in(case).input.all_turns()
    assert (turn.content, turn.slash_command) == ("/review all", True)
    assert "# A command of the agent's CLI" in case.text


def test_what_the_case_cannot_say_is_a_note(tmp_path: Path) -> None:
    case = made(tmp_path, ("user", "one"), ("assistant", text("answered")), ("user", "two"))
    assert any("without an answer" in note for note in case.notes)
    assert len(case_in(case).input.all_turns()) == 1


def test_the_header_says_where_it_comes_from_on_lines_of_its_own(tmp_path: Path) -> None:
    case = made(
        tmp_path,
        ("user", "one"),
        ("assistant", text("answered")),
        revision="branch x\ninput: {prompt: evil}",
    )
    assert case.text.startswith("# yaml-language-server: $schema=case.schema.json\n")
    assert "claude_code session s1" in case.text
    assert case_in(case).input.all_turns()[0].content == "one"


def test_the_fixture_is_named(tmp_path: Path) -> None:
    case = made(tmp_path, ("user", "one"), ("assistant", text("answered")), fixture="fixtures/x")
    assert case_in(case).context.fixture == "fixtures/x"


def test_the_revision_of_either_cli(tmp_path: Path) -> None:
    claude = write_rows(
        tmp_path / "a", [{"type": "x"}, claude_row("user", "a", "1", None, gitBranch="b")]
    )
    assert revision_of(claude, session_format(claude)) == "branch b"
    git = {"branch": "main", "commit_hash": "abc", "repository_url": "https://user:pw@host/x"}
    codex = write_rows(tmp_path / "b", [{"type": "session_meta", "payload": {"git": git}}])
    assert revision_of(codex, session_format(codex)) == "branch main, commit abc"
