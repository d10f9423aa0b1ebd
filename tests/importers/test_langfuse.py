from __future__ import annotations

import json
from typing import Any

import pytest

from skillup.errors import InvalidFilesError
from tests.support.imported import Convert

HISTORY = [
    {"role": "user", "content": "I want to apply", "message_index": 1},
    {"role": "assistant", "content": "Which stage? 😀", "message_index": 2},
]


def item(**more: Any) -> dict[str, Any]:
    return {
        "id": "item-a",
        "input": {"query": "Series <<A>>"},
        "expected_output": {"response": "Fits"},
        "metadata": {"history": HISTORY},
        **more,
    }


@pytest.mark.parametrize("wrap", [list, lambda items: {"data": items, "meta": {"page": 1}}])
def test_history_comes_before_the_message_under_test(convert: Convert, wrap: Any) -> None:
    result = convert(json.dumps(wrap([item()])), "dataset.json")
    assert result.imported.format == "langfuse"
    assert result.case == {
        "id": "item-a",
        "input": {"history": HISTORY, "prompt": r"Series \<<A>>"},
        "expected_output": "Fits",
    }


def test_a_line_for_each_item_with_its_line_number(convert: Convert) -> None:
    lines = [json.dumps(item()), "", json.dumps(item(id="b", expectedOutput=None, odd=1))]
    result = convert("\n".join(lines), "items.jsonl")
    assert [case["id"] for case in result.cases] == ["item-a", "b"]
    (note,) = [note for note in result.imported.notes if note.field.endswith("odd")]
    assert note.line == 3


def test_messages_from_the_one_under_test_on_are_left_out_and_listed(convert: Convert) -> None:
    later = {"role": "user", "content": "Series A", "message_index": 3}
    data = [item(metadata={"history": [*HISTORY, later], "message_index": 3})]
    result = convert(json.dumps(data), "dataset.json")
    assert result.case["input"]["history"] == HISTORY
    assert len(result.noted("[0].metadata.history")) == 1


def test_every_item_without_a_message_is_reported(convert: Convert) -> None:
    data = [item(input={"other": 1}), item(), {"id": "c", "expectedOutput": "x"}]
    with pytest.raises(InvalidFilesError) as refused:
        convert(json.dumps(data, indent=0), "dataset.json")
    assert [problem.field for problem in refused.value.problems] == ["[0].input", "[2]"]
