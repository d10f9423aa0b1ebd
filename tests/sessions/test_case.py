"""A session becomes a case that validates, and that the session itself passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.judges import grade_record
from skillup.load.yaml_reader import parse_yaml
from skillup.schema.case import Case, Turn
from skillup.sessions.case import CaseText, case_of_session, key_phrases
from skillup.sessions.record import read_session, record_of_session
from tests.support.session_files import claude_rows, write_rows


def made(tmp_path: Path, *said: tuple[str, Any], **more: Any) -> CaseText:
    """The case of a session of Claude Code in which this was said."""
    path = write_rows(tmp_path / "session.jsonl", claude_rows(*said))
    return case_of_session(read_session(path), **more)


def case_in(case: CaseText) -> Case:
    return Case.model_validate(parse_yaml(case.text, Path("case.yaml")).data)


def turns_in(case: CaseText) -> list[Turn]:
    return list(case_in(case).input.all_turns())


def use(name: str, **arguments: Any) -> tuple[str, Any]:
    block = {"type": "tool_use", "id": f"id-{name}", "name": name, "input": arguments}
    return "assistant", [block]


def result(name: str, *, failed: bool = False) -> tuple[str, Any]:
    given = {"tool_use_id": f"id-{name}", "content": "x", "is_error": failed}
    return "user", [{"type": "tool_result", **given}]


def test_messages_stay_what_they_were(tmp_path: Path) -> None:
    """S13: blank lines at the end of a message ended the case."""
    odd = "Put <<name>> and {{name}}:\n  - # no comment\n\n\ttab \x1b[31m 'q' \"d\" \\n  "
    said = [("user", odd), ("assistant", "x"), ("user", "one\n\n"), ("assistant", "1")]
    turns = turns_in(made(tmp_path, *said, ("user", "two"), ("assistant", "2")))
    escaped = odd.replace("<<n", "\\<<n").replace("{{n", "\\{{n")
    assert [turn.content for turn in turns] == [escaped, "one\n\n", "two"]


def test_a_message_without_text_is_no_turn(tmp_path: Path) -> None:
    case = made(
        tmp_path,
        *(("user", "one"), ("assistant", "first answer")),
        *(("user", "\u3000\t"), ("assistant", "to `nothing`")),
        *(("user", "two"), ("assistant", "second answer"), ("user", "three")),
    )
    assert [turn.content for turn in turns_in(case)] == ["one", "two"]
    assert any("without an answer" in note for note in case.notes)
    path = tmp_path / "session.jsonl"
    record = record_of_session(read_session(path), case_in(case), "")
    assert [turn.response for turn in record.turns] == ["to `nothing`", "second answer"]
    assert grade_record(record, lambda _: None).status == "PASS"
    with pytest.raises(UsageError, match="none of its messages was answered"):
        made(tmp_path, ("user", " "), ("assistant", "to nothing"))


def test_tools_skills_words_and_files_are_suggested(tmp_path: Path) -> None:
    case = made(
        tmp_path,
        *(("user", "go"), use("Bash", command="ls"), result("Bash")),
        *(use("Skill", skill="log-keeper"), result("Skill")),
        *(use("mcp__github__list", repo="x"), result("mcp__github__list")),
        *(use("Read", path="x"), result("Read", failed=True)),
        *(use("Write", file_path="/project/docs/a.md", content="x"), result("Write")),
        *(use("Edit", file_path="/project/b.md"), result("Edit", failed=True)),
        *(use("MultiEdit", file_path="/elsewhere/b.md"), result("MultiEdit")),
        ("assistant", "There are 3 files, as in `a b`."),
    )
    [turn] = turns_in(case)
    assert [check.model_dump(exclude_unset=True) for check in turn.assertions] == [
        {"tool_called": {"kind": "shell"}},
        {"skill_used": "log-keeper"},
        {"tool_called": {"name": "github::list"}},
        {"tool_called": {"kind": "write"}},
        {"contains": {"all": ["a b"]}},
    ]
    assert '# Of runs, not of sessions, ask in turn 1: {"files_exist": ["docs/a.md"]}' in case.text


def test_a_vague_answer_just_has_to_be_there(tmp_path: Path) -> None:
    vague = "It is what it is, I would say; so be it."
    [turn] = turns_in(made(tmp_path, ("user", "one"), ("assistant", vague)))
    assert [check.key for check in turn.assertions] == ["matches"]


def test_the_header_and_commands(tmp_path: Path) -> None:
    command = "<command-name>/review</command-name><command-args>all</command-args>"
    case = made(tmp_path, ("user", command), ("assistant", "All reviewed."))
    [turn] = turns_in(case)
    assert (turn.content, turn.slash_command) == ("/review all", True)
    assert "claude_code session s1" in case.text
    assert "# What it needs of its workspace, /project, belongs in" in case.text


@pytest.mark.parametrize(
    ("answer", "phrases"),
    [
        ("I wrote notes.md and src/main.py.", ["notes.md", "src/main.py"]),
        ('It said "not found" to me', ["not found"]),
        ("Run `make test` first", ["make test"]),
        ("alpha.py beta.py gamma.py delta.py", ["alpha.py", "beta.py", "gamma.py"]),
        *((answer, []) for answer in ("Yes, ok.", "", "1", "at 10:42:07", "on 2026-01-01")),
        *((answer, []) for answer in ("commit 3f2a9bc1d4e5", "in `/tmp/x8s1`", "v2.1.0")),
        *(
            (answer, [])
            for answer in ("see https://example.com/page", "it is `<<name>>`", "`{{x}}`")
        ),
    ],
)
def test_the_words_of_an_answer_that_a_check_may_go_by(answer: str, phrases: list[str]) -> None:
    assert key_phrases(answer) == phrases
