from __future__ import annotations

import json

import pytest

from skillup.errors import InvalidFilesError
from tests.importers.conftest import Convert

HISTORY = [
    {"role": "user", "content": "I want to apply", "message_index": 1},
    {"role": "assistant", "content": "Which <<stage>>? 😀", "message_index": 2},
]
ITEM = {
    "id": "item-a",
    "input": {"query": "Series <<A>>"},
    "expected_output": {"response": "Fits"},
    "metadata": {"history": HISTORY, "message_index": 3},
}


def test_a_line_for_each_item_becomes_a_case(convert: Convert) -> None:
    other = {"id": "b", "input": "Hi", "expectedOutput": {"x": 1, "y": 2}, "odd": 1}
    archived = {**ITEM, "id": "c", "status": "ARCHIVED"}
    result = convert("\n".join(map(json.dumps, (ITEM, other, archived))), "items.jsonl")
    assert result.imported.format == "langfuse"
    assert result.suite["name"] == "items"
    first, second = result.cases
    assert first == {
        "id": "item-a",
        "input": {
            "history": [HISTORY[0], {**HISTORY[1], "content": r"Which \<<stage>>? 😀"}],
            "message_index": 3,
            "prompt": r"Series \<<A>>",
        },
        "expected_output": "Fits",
    }
    assert second == {"id": "b", "input": {"prompt": "Hi"}}
    places = [(note.line, note.field) for note in result.imported.notes]
    assert places == [(2, "[1].expectedOutput"), (2, "[1].odd"), (3, "[2]")]


def test_an_item_without_a_message_is_refused_with_its_place(convert: Convert) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        convert(json.dumps({"data": [ITEM, {**ITEM, "input": {"other": 1}}]}), "dataset.json")
    assert [problem.field for problem in refused.value.problems] == ["data[1].input"]
