"""Pieces of a conversation for the page: items, messages, attempts, links, branches."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest

from skillup.reports.html.detail import ORDINARY, PageLimits, content_parts, history_of, items_of
from skillup.reports.html.run_data import RunData
from skillup.reports.html.run_files import RawFiles
from skillup.schema.record import Record, ToolCall, ToolResult, TranscriptItem, TurnError
from skillup.store import RunDirectory
from skillup.store.stored_run import ReadFile
from tests.support.pasts import SOUP
from tests.support.records import make_record, make_turn
from tests.support.stored import a_grade, a_record, change

# Calls and results of a transcript as one item each.


def _call(name: str, **arguments: object) -> TranscriptItem:
    call = ToolCall(id=name, name="Bash", kind="shell", arguments=arguments)
    return TranscriptItem(type="tool_call", tool_call=call)


def _result(name: str, content: str) -> TranscriptItem:
    result = ToolResult(call_id=name, status="success", content=content)
    return TranscriptItem(type="tool_result", tool_result=result)


def test_results_stand_with_their_calls_in_whatever_order_they_come() -> None:
    transcript = [_call("a"), _call("b"), _result("b", "2"), _result("a", "1"), _call("c")]
    transcript += [_call("a"), _result("a", "3"), _result("x", "4")]
    items, places = items_of(transcript, ORDINARY)
    shown = [(i["id"], i["name"], i["result"] and i["result"]["content"]) for i in items]
    assert shown == [
        ("a", "Bash", "1"),
        ("b", "Bash", "2"),
        ("c", "Bash", None),
        ("a", "Bash", "3"),
        ("x", "", "4"),
    ]
    assert places == [0, 1, 1, 0, 2, 3, 3, 4]


def test_long_texts_are_shortened_with_a_note() -> None:
    message = TranscriptItem(type="message", text="c" * 100)
    call = _call("a", command="x" * 100, list=["y" * 100, 1])
    items, _ = items_of([call, _result("a", "b" * 100), message], PageLimits(tool=30, text=30))
    note = "… 70 characters left out; whole in the raw stream …"
    assert note in items[0]["arguments"]["command"]
    assert note in items[0]["arguments"]["list"][0]
    assert items[0]["result"]["content"].startswith("b" * 20 + "\n…")
    assert items[0]["result"]["content"].endswith("…\n" + "b" * 10)
    assert note in items[1]["text"]


def test_a_past_keeps_its_order_and_its_calls() -> None:
    history = history_of(SOUP, ORDINARY)
    roles = ["user", "assistant", "assistant", "assistant", "user", "assistant"]
    assert [entry["role"] for entry in history] == roles
    likes, dislikes = history[1]["items"]
    assert likes["result"] == {"status": "success", "content": "lentil soup"}
    assert dislikes["result"]["status"] == "error"


# Messages in pieces: what came out of which variable.


@pytest.mark.parametrize(
    ("template", "content", "values", "parts"),
    [
        ("a <<x>>{{y}} b", "a 1{{y}} b", {"x": "1"}, [("a ", None), ("1", "x"), ("{{y}} b", None)]),
        ("<<x>><<x>>", "11", {"x": "1"}, [("1", "x"), ("1", "x")]),
        ("\\<<x>> <<x>>", "<<x>> 1", {"x": "1"}, [("<<x>> ", None), ("1", "x")]),
        (None, "a", {}, [("a", None)]),
        ("<<x>>", "***KEY***", {"x": "secret"}, [("***KEY***", None)]),
        ("<<x>>", "<<x>>", {}, [("<<x>>", None)]),
        ("", "", {}, [("", None)]),
    ],
)
def test_a_message_is_taken_apart_where_values_were_filled_in(
    template: str | None, content: str, values: dict[str, str], parts: list[tuple[str, str | None]]
) -> None:
    found = content_parts(template, content, values)
    assert [(part["text"], part["variable"]) for part in found] == parts


def test_a_value_that_is_taken_anew_counts_from_the_turn_after() -> None:
    turns = make_turn(captures={"x": "1"}), make_turn(captures={"x": "2"}), make_turn()
    record = make_record(*turns, initial_variables={"x": "0", "z": "8"}).record
    assert [record.variables_after(n)["x"] for n in (0, 1, 2)] == ["0", "1", "2"]
    assert record.variables_after(None) == {"x": "2", "z": "8"}


# Attempts that were not counted: how they ended, and where their files are.

JOB = "case/scripted/with_skill/1"


def _attempts(path: Path, *earlier: Record | None) -> RunData:
    """A trial whose last attempt passed; `earlier` ones, or None where the record is damaged."""
    with RunDirectory.create(path, {"run_id": "run", "jobs": [JOB]}) as run:
        for number, record in enumerate(earlier, start=1):
            run.begin_trial(JOB).streams.open("turn-01.stdout.jsonl").close()
            kept = (record or a_record()).model_copy(update={"attempt": number})
            run.write_record(JOB, kept, state="retried")
        run.write_record(JOB, a_record().model_copy(update={"attempt": len(earlier) + 1}))
        run.write_grade(JOB, a_grade())
    for number, record in enumerate(earlier, start=1):
        if record is None:
            change(path, "UPDATE attempts SET record = ? WHERE id = ?", b"{", number)
    return RunData(path, base="files/")


def test_each_attempt_says_how_it_ended_with_its_turns_and_files(tmp_path: Path) -> None:
    crashed = a_record(error=TurnError(kind="crash", message="exit code 1"), response="")
    gate = a_record(response="no")
    update = {"status": "failed", "reason": "post-condition not met: x"}
    gate = gate.model_copy(update={"turns": [gate.turns[0].model_copy(update=update)]})

    found = _attempts(tmp_path / "run", crashed, None, gate).detail(1, ORDINARY)["attempts"]

    assert [one["attempt"] for one in found] == [1, 3], "a damaged one is left out"
    assert [one["error"] and one["error"]["kind"] for one in found] == ["crash", None]
    assert [one["reason"] for one in found] == ["", "post-condition not met: x"]
    assert [[turn["response"] for turn in one["turns"]] for one in found] == [[""], ["no"]]
    raw = f"{JOB.replace('/', '%2F')}/raw.attempt-1/turn-01.stdout.jsonl"
    assert [link["href"] for link in found[0]["turns"][0]["raw"]] == [f"files/{raw}"]


# Links to the raw streams, for every name that a job or a file can have.

ODD = 'odd "name" #1?/50%/e/with_skill/1'
NAMES = (
    *("record.json", "attempt-1.json", "raw/turn-01.stdout.jsonl", "files/out/a b.txt"),
    *("raw/turn-01-follow-up-1.stdout.jsonl", "raw/turn-010.stdout.jsonl"),
    *("raw/user/user-01.stdout.jsonl", "raw.attempt-1/turn-01.stdout.jsonl"),
)


def test_links_lead_to_the_files() -> None:
    files: dict[str, ReadFile] = dict.fromkeys(NAMES, lambda: iter([b""]))
    raw = RawFiles(lambda _: files, base="base/")
    links = [*raw.of_turn(ODD, 1), *raw.of_turn(ODD, 1, 1), *raw.of_turn(ODD, 10)]
    streams = ["turn-01", "turn-01-follow-up-1", "turn-010"]
    assert [link["name"] for link in links] == [f"{name}.stdout.jsonl" for name in streams]
    others = raw.of_trial(ODD)
    assert {link["name"] for link in others} == {
        "record.json",
        "attempt-1.json",
        "files/out/a b.txt",
        "raw.attempt-1/turn-01.stdout.jsonl",
        "raw/user/user-01.stdout.jsonl",
    }
    for link in [*links, *others]:
        base, job, name = link["href"].split("/", 2)
        assert (base, unquote(job)) == ("base", ODD)
        assert unquote(name) in NAMES
        assert not set(link["href"]) & set(' "#?<>\\')
