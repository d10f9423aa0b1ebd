"""The past as a session can hold it: ids, results, and what is said of what was mended."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.schema.case import Input
from skillup.trial.history import NO_RESULT, Past, past_of


def past(*messages: dict[str, Any], **more: Any) -> Past:
    return past_of(Input.model_validate({"prompt": "go", "history": list(messages), **more}))


def calls(*ids: str | None) -> dict[str, Any]:
    made = [{"name": "Bash", **({"id": one} if one else {})} for one in ids]
    return {"role": "assistant", "tool_calls": made}


def result(content: str, call_id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"call_id": call_id} if call_id else {})}


def pairs(found: Past) -> list[tuple[str, str]]:
    return [(i.tool_result.call_id, i.content) for i in found.items if i.tool_result is not None]


def test_every_call_gets_an_id_of_its_own_and_results_in_order() -> None:
    found = past(calls("i", "i"), result("one", "i"), result("two", "i"), calls("i"), result("x"))

    assert [content for _, content in pairs(found)] == ["one", "two", "x"]
    assert len({call_id for call_id, _ in pairs(found)}) == 3
    assert [call.id for call in found.items[0].tool_calls] == [p[0] for p in pairs(found)[:2]]


def test_every_repair_is_noted() -> None:
    found = past(
        {"role": "user", "content": "a", "message_index": 0},
        {"role": "assistant", "content": "b", "message_index": 1},
        {"role": "assistant", "content": "b", "message_index": 2},
        {**calls("x"), "message_index": 3},
        {"role": "user", "content": "later", "message_index": 4},
        message_index=4,
    )

    assert found.notes == (
        "of the history, 1 message from place 4 on: left out",
        "of the history, 1 message empty or a repeated answer: left out",
        "the history does not say what the call `x` gave back",
    )
    assert [content for _, content in pairs(found)] == [NO_RESULT]


@pytest.mark.parametrize("first", ["Technical", "<<query>>", "{{ query }}"])
def test_a_last_message_that_is_the_one_under_test_is_sent_once_and_is_not_past(first: str) -> None:
    """V11: compared with templates filled in, and taken out before `reconstruct` looks."""
    pairs = {"marker": "Which", "fields": ["kind"], "default": "", "pending": "asked"}
    given = {
        "prompt": first,
        "history": [
            {"role": "user", "content": "hi, I am <<name>>"},
            {"role": "assistant", "content": "Which kind?"},
            {"role": "user", "content": "Technical"},
        ],
        "reconstruct": [{"pairs": pairs}],
    }
    found = past_of(Input.model_validate(given), {"query": "Technical", "name": "Ada"})
    assert [item.content for item in found.items] == ["hi, I am Ada", "Which kind?"]
    assert found.unanswered == ()
    assert found.variables == {"kind": "", "asked": "kind?"}


def test_places_are_those_in_the_list_where_no_message_has_one() -> None:
    """V11: `message_index` cuts a history whose messages are not numbered."""
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    found = past(*said, {"role": "user", "content": "x"}, said[1], message_index=2)
    assert [item.content for item in found.items] == ["a", "b"]
    assert found.unanswered == ()


def test_messages_are_sorted_by_their_index_and_empty_ones_and_orphans_left_out() -> None:
    found = past(
        {"role": "assistant", "content": "first answer", "message_index": 1},
        {"role": "user", "content": "later", "message_index": 5},
        {"role": "user", "content": "first", "message_index": 0},
        {"role": "user", "content": " ", "message_index": 2},
        {**result("of nothing"), "message_index": 3},
        message_index=4,
    )
    assert [item.content for item in found.items] == ["first", "first answer"]
    assert any("without its call" in note for note in found.notes)
