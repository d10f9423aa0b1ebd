"""A conversation that took place elsewhere becomes the turns of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.schema.case import HistoryMessage
from skillup.trial.history import turns_of
from tests.support.project import Project


def turns(*messages: dict[str, Any]) -> list[Any]:
    return turns_of([HistoryMessage.model_validate(message) for message in messages])


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def test_a_turn_is_a_user_message_and_everything_up_to_the_next() -> None:
    first, second = turns(user("a"), agent("b"), agent("c"), user("d"), agent("e"))

    assert (first.turn_number, first.content, first.response) == (1, "a", "c")
    assert [item.text for item in first.transcript] == ["b", "c"]
    assert (second.turn_number, second.content, second.response) == (2, "d", "e")
    assert {first.source, second.source} == {"history"}


def test_calls_and_results_are_paired() -> None:
    calls = [{"name": "Bash", "arguments": {"command": "ls"}}, {"kind": "read", "id": "r"}]
    (turn,) = turns(
        user("a"),
        agent("", tool_calls=calls),
        {"role": "tool", "content": "x"},
        {"role": "tool", "content": "no", "status": "error"},
        agent("done"),
    )

    assert [(call.name, call.kind) for call in turn.tool_calls] == [
        ("Bash", "other"), ("read", "read"),
    ]  # fmt: skip
    assert [result.call_id for result in turn.tool_results] == [call.id for call in turn.tool_calls]
    assert [result.status for result in turn.tool_results] == ["success", "error"]
    assert turn.response == "done"


@pytest.mark.parametrize(("word", "status"), [("330", "PASS"), ("nothing", "FAIL")])
def test_a_transcript_is_judged_without_an_agent(tmp_path: Path, word: str, status: str) -> None:
    case = f"""
        input:
          transcript:
            - {{role: user, content: How tall is it?}}
            - {{role: assistant, content: 330 metres.}}
        assertions: [{{contains: "{word}"}}, {{turn: 1, not_contains: feet}}]
    """
    project = Project(tmp_path).write({"s/eval.yaml": "name: s\n", "s/c.yaml": case})

    # An engine that is not here is not missed.
    result = project.run_json("s", "--engine", "codex", env={"PATH": "/nowhere"})

    (grade,) = result["cases"]
    assert (grade["status"], len(grade["turns"])) == (status, 1)
