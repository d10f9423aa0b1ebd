"""Calls and results of a transcript as one item each."""

from __future__ import annotations

from skillup.reports.html.detail import history_of, items_of
from skillup.reports.html.limits import ORDINARY, PageLimits
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem
from tests.support.pasts import SOUP


def _call(name: str, **arguments: object) -> TranscriptItem:
    call = ToolCall(id=name, name="Bash", kind="shell", arguments=arguments)
    return TranscriptItem(type="tool_call", tool_call=call)


def _result(name: str, content: str) -> TranscriptItem:
    result = ToolResult(call_id=name, status="success", content=content)
    return TranscriptItem(type="tool_result", tool_result=result)


def test_results_stand_with_their_calls_in_whatever_order_they_come() -> None:
    items, _ = items_of(
        [_call("a"), _call("b"), _result("b", "2"), _result("a", "1"), _call("c")], ORDINARY
    )
    assert [(i["id"], i["result"] and i["result"]["content"]) for i in items] == [
        ("a", "1"),
        ("b", "2"),
        ("c", None),
    ]


def test_one_id_twice_is_two_items_and_a_result_without_a_call_is_its_own() -> None:
    items, _ = items_of(
        [_call("a"), _result("a", "1"), _call("a"), _result("a", "2"), _result("x", "3")], ORDINARY
    )
    assert [i["result"]["content"] for i in items] == ["1", "2", "3"]
    assert items[2]["name"] == ""


def test_results_of_very_many_calls_that_come_late_find_their_calls() -> None:
    """Looked for among all items, each of them, this would take minutes."""
    names = [str(n) for n in range(50_000)]
    items, _ = items_of([*map(_call, names), *(_result(n, n) for n in reversed(names))], ORDINARY)
    assert [item["result"]["content"] for item in items] == names


def test_long_texts_are_shortened_with_a_note() -> None:
    limits = PageLimits(tool=30, text=30)
    items, _ = items_of(
        [
            _call("a", command="x" * 100, list=["y" * 100, 1]),
            _result("a", "b" * 100),
            TranscriptItem(type="message", text="c" * 100),
        ],
        limits,
    )
    note = "… 70 characters left out; whole in the raw stream …"
    assert note in items[0]["arguments"]["command"]
    assert note in items[0]["arguments"]["list"][0]
    assert items[0]["result"]["content"].startswith("b" * 20 + "\n…")
    assert items[0]["result"]["content"].endswith("…\n" + "b" * 10)
    assert note in items[1]["text"]


def test_a_past_keeps_its_order_and_its_calls() -> None:
    history = history_of(SOUP, ORDINARY)
    assert [entry["role"] for entry in history] == [
        *("user", "assistant", "assistant", "assistant", "user", "assistant"),
    ]
    likes, dislikes = history[1]["items"]
    assert likes["result"] == {"status": "success", "content": "lentil soup"}
    assert dislikes["result"]["status"] == "error"
