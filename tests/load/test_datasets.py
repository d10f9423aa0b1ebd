"""Datasets: a case for each item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.app.interruption import case_digests
from skillup.errors import UsageError
from skillup.load.model import Loaded, LoadedSuite
from skillup.load.suites import load_paths, sampled
from skillup.plan import Selection, make_plan
from skillup.schema.profile import Profile
from skillup.trial.history import past_of
from tests.support.trees import make_tree

SUITE = "name: d\ncases: {datasets: [{path: items.jsonl, case: item.yaml}]}\n"
CASE = "assertions: [{contains: x}]\n"


def load(root: Path, *items: Any, suite: str = SUITE, case: str = CASE) -> Loaded:
    lines = [item if isinstance(item, str) else json.dumps(item) for item in items]
    make_tree(root, {"eval.yaml": suite, "items.jsonl": "\n".join(lines), "item.yaml": case})
    return load_paths([root])


def cases(loaded: Loaded) -> list[dict[str, Any]]:
    (suite,) = loaded.or_raise().suites
    return [c.case.model_dump(mode="json", by_alias=True, exclude_unset=True) for c in suite.cases]


def test_an_item_is_a_case_with_its_message_its_answer_and_its_past(tmp_path: Path) -> None:
    item = {
        "id": "lead-1",
        "input": {"query": "We are 12", "locale": "en"},
        "expected_output": {"response": "asks for the budget"},
        "metadata": {
            "message_index": 2,
            "history": [
                {"role": "assistant", "content": "Q1: Stage?", "message_index": 0},
                {"role": "user", "content": "Seed", "message_index": 1},
                {"role": "user", "content": "We are 12", "message_index": 2},
            ],
            "region": "eu",
            "tags": ["seed"],
        },
    }
    (case,) = cases(load(tmp_path, item))
    assert case["id"] == "lead-1"
    assert case["tags"] == ["seed"]
    assert case["input"]["prompt"] == "<<query>>"
    assert case["input"]["message_index"] == 2
    assert [m["content"] for m in case["input"]["history"]] == ["Q1: Stage?", "Seed", "We are 12"]
    assert case["expected_output"] == "asks for the budget"
    assert case["vars"] == {
        "query": "We are 12",
        "locale": "en",
        "region": "eu",
        "message_index": "2",
        "expected_output": "asks for the budget",
        "expected_output.response": "asks for the budget",
    }
    assert case["assertions"] == [{"contains": {"all": ["x"]}}]


@pytest.mark.parametrize(
    ("given", "query", "history"),
    [
        ("hello", "hello", []),
        ({"question": "why?"}, "why?", []),
        ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"},
                       {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]},
         "c", [("user", "a"), ("assistant", "b")]),
        ([{"role": "human", "content": [{"type": "text", "text": "a"}]}], "a", []),
    ],
)  # fmt: skip
def test_messages_are_found_in_the_forms_that_datasets_use(
    tmp_path: Path, given: Any, query: str, history: list[tuple[str, str]]
) -> None:
    (case,) = cases(load(tmp_path, {"input": given}))
    assert case["vars"]["query"] == query
    assert [(m["role"], m["content"]) for m in case["input"].get("history", [])] == history


def test_tool_calls_of_a_history_keep_their_arguments_and_results(tmp_path: Path) -> None:
    call = {"id": "c1", "function": {"name": "lookup", "arguments": '{"a": 1}'}}
    history = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    (case,) = cases(load(tmp_path, {"input": "go", "metadata": {"history": history}}))
    _, asked, answered = case["input"]["history"]
    assert asked["tool_calls"] == [{"id": "c1", "name": "lookup", "arguments": {"a": 1}}]
    assert (answered["call_id"], answered["content"]) == ("c1", "found")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('[{"input": "a"},\n {"input": "b"}]', 2),
        ('{"input": "a"}\n\n{"input": "b"}\n', 2),
        ('{"items": [{"input": "a"}]}', 1),
        ('{"data": [{"input": "a"}, {"input": "b", "status": "ARCHIVED"}]}', 1),
    ],
)
def test_lists_lines_and_exports_are_read(tmp_path: Path, text: str, number: int) -> None:
    assert len(cases(load(tmp_path, text))) == number


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (['{"input": "a"}', '{"inp": 1}'], "items.jsonl:2:1: item 2: an item without `input`"),
        (['{"input": {}}'], "items.jsonl:1:1: item 1: there is no user message"),
        (['{"input": "a"}', "[oops"], "items.jsonl:2:2: not JSON: Expecting value"),
        (["[" * 100_000], "items.jsonl:1:1: not JSON: nested too deeply"),
        (['{"input": "a", "x": NaN}'], "items.jsonl:1:1: not JSON: NaN is no value"),
        (['{"id": "a", "id": "b", "input": "c"}'], "not JSON: the key `id` is there twice"),
        (['{"id": ["a"], "input": "c"}'], "items.jsonl:1:1: item 1: its `id` is neither a text"),
        (['{"input": "a", "metadata": {"history": [["a", "b"]]}}'], "of the history is not {role"),
        ([""], "items.jsonl:1:1: there is no item in it"),
        (['{"id": "a", "input": "a"}', '{"id": "a", "input": "b"}'],
         "items.jsonl:2:1: id: `a` is the id of `a` (items.jsonl:1) already"),
    ],
)  # fmt: skip
def test_a_wrong_item_is_told_with_its_line(tmp_path: Path, items: list[str], told: str) -> None:
    errors = [str(problem) for problem in load(tmp_path, *items).errors]
    assert len(errors) == 1
    assert told in errors[0]


def test_a_mistake_in_the_case_file_is_told_once_and_there(tmp_path: Path) -> None:
    items = {"input": "a"}, {"input": "b"}
    (error,) = load(tmp_path, *items, case="assertions: [{contians: x}]\n").errors
    assert (error.file.name, error.line, error.column) == ("item.yaml", 1, 15)


def test_the_case_file_is_no_case_of_its_own_and_stands_for_its_dataset(tmp_path: Path) -> None:
    load(tmp_path, {"id": "a", "input": "a"})
    make_tree(tmp_path, {"other.yaml": "input: {prompt: x}\nassertions: [{contains: x}]\n"})
    assert sorted(c["id"] for c in cases(load_paths([tmp_path]))) == ["a", "other"]
    assert [c["id"] for c in cases(load_paths([tmp_path / "item.yaml"]))] == ["a"]


def test_what_only_some_items_have_is_told_of_the_first_of_them(tmp_path: Path) -> None:
    case = 'context: {files: {r.txt: "<<region>>"}}\n' + CASE
    items = [{"input": "a", "metadata": {"region": "eu"}}, {"input": "b"}, {"input": "c"}]
    (error,) = load(tmp_path, *items, case=case).errors
    assert "<<region>> is not defined" in error.message
    assert error.message.endswith("(in 2 of 3 items)")
    assert (error.file.name, error.line) == ("items.jsonl", 2)


def test_a_case_file_that_never_says_the_message_is_refused(tmp_path: Path) -> None:
    (error,) = load(tmp_path, {"input": "a"}, case="input: {turns: [hello]}\n" + CASE).errors
    assert error.message == "the items' message is never sent: nothing here is <<query>>"
    assert error.file.name == "item.yaml"


PAST = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Which kind?"},
    {"role": "user", "content": "Technical"},
    {"role": "assistant", "content": "recorded"},
]
LATER = [{"role": "user", "content": "later"}, {"role": "assistant", "content": "more"}]


@pytest.mark.parametrize(
    ("history", "more", "expected", "kept"),
    [
        (PAST, {"message_index": 2}, None, 2),
        (PAST[:3], {}, None, 2),
        (PAST, {}, None, 2),
        ([*PAST, *LATER], {}, {"response": "recorded"}, 2),
        ([*PAST, *LATER], {}, {"response": "another"}, 6),  # said before, in another place
    ],
)
def test_the_past_ends_before_the_message_under_test(
    tmp_path: Path, history: Any, more: Any, expected: Any, kept: int
) -> None:
    """V11: neither the recorded answer nor the message itself is put into the session."""
    item = {"input": {"query": "Technical"}, "metadata": {"history": history, **more}}
    loaded = load(tmp_path, {**item, "expected_output": expected}).or_raise()
    past = past_of(loaded.suites[0].cases[0].case.input, {"query": "Technical"})
    assert [said.content for said in past.items] == [m["content"] for m in history[:kept]]
    assert past.unanswered == ()
    assert bool(past.notes) == (kept < len(history))


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (42, "42"),
        (False, "false"),
        ({"answer": 7, "why": "so"}, "7"),
        ("say {{x}} <<y>>", r"say \{{x}} \<<y>>"),
    ],
)
@pytest.mark.parametrize("message", ["<<query>>", "Q: {{ query }}"])
def test_an_expected_answer_of_any_form_reaches_the_turn_that_says_the_message(
    tmp_path: Path, expected: Any, text: str, message: str
) -> None:
    """V8: none is dropped in silence, and both spellings of the message are known."""
    turns = f"input: {{turns: [hi, {{content: '{message}'}}]}}\n"
    loaded = load(tmp_path, {"input": "x", "expected_output": expected}, case=turns)
    assert cases(loaded)[0]["input"]["turns"][1]["expected_output"] == text


def test_fields_of_an_expected_answer_are_variables_and_one_without_text_is_told(
    tmp_path: Path,
) -> None:
    """V8"""
    items = [
        {"input": "x", "expected_output": {"label": "spam", "score": 2}},
        {"input": "y", "expected_output": {"response": "z", "label": "ham", "score": 1}},
    ]
    check = "assertions: [{contains: '<<expected_output.label>> <<expected_output.score>>'}]\n"
    loaded = load(tmp_path, *items, case=check)
    assert cases(loaded)[0]["vars"]["expected_output.label"] == "spam"
    (told,) = [p for p in loaded.problems if "no text is found" in p.message]
    assert (told.severity, told.line) == ("warning", 1)


def test_what_items_say_is_no_template(tmp_path: Path) -> None:
    """V12: words of a dataset are data: they neither fail to load nor take values."""
    item = {
        "input": {"query": "use {{x}}"},
        "metadata": {"history": [{"role": "user", "content": "<<query>> {{z}}"}, PAST[1]]},
    }
    loaded = load(tmp_path, item).or_raise()
    past = past_of(loaded.suites[0].cases[0].case.input, {"query": "no"})
    assert past.items[0].content == "<<query>> {{z}}"


# Which items are taken.


@pytest.fixture
def suites(tmp_path: Path) -> tuple[LoadedSuite, ...]:
    items = [{"id": f"item-{n}", "input": f"Message {n % 3}"} for n in range(30)]
    make_tree(tmp_path, {"own.yaml": f"input: {{prompt: x}}\n{CASE}"})
    suite = "name: d\ncases: {files: [own.yaml], datasets: [items.jsonl]}\n"
    return load(tmp_path, *items, suite=suite).suites


def ids(suites: list[LoadedSuite]) -> list[str]:
    return [case.case.id for suite in suites for case in suite.cases]


def test_an_item_is_chosen_by_its_id_or_its_message(suites: tuple[LoadedSuite, ...]) -> None:
    assert ids(sampled(suites, item="ITEM-17")) == ["item-17"]
    assert len(ids(sampled(suites, item="message 2"))) == 10
    with pytest.raises(UsageError, match="no item has `nobody`") as refused:
        sampled(suites, item="nobody")
    assert "item-0, item-1" in (refused.value.hint or "")


def test_a_sample_is_the_same_for_the_same_seed(suites: tuple[LoadedSuite, ...]) -> None:
    first = ids(sampled(suites, size=5, seed=1))
    assert first == ids(sampled(suites, size=5, seed=1))
    assert first != ids(sampled(suites, size=5, seed=2))
    assert len(first) == 6, "the suite's own case stays"
    assert first[1:] == sorted(first[1:], key=lambda name: int(name.split("-")[1]))


def test_items_of_a_suite_without_a_dataset_are_refused(tmp_path: Path) -> None:
    make_tree(tmp_path, {"eval.yaml": "name: d\n", "c.yaml": f"input: {{prompt: x}}\n{CASE}"})
    with pytest.raises(UsageError, match="no suite given here has one"):
        sampled(load_paths([tmp_path]).suites, size=1)


ITEMS: list[dict[str, Any]] = [
    {"input": "plain"},
    {"input": {"query": "named", "locale": "en"}, "expected_output": "yes \\<<x>> <<y>>"},
    {"input": {"query": "another", "locale": "de"}, "expected_output": {"response": 5, "n": 1.5}},
    {"input": "tagged", "metadata": {"tags": ["a"], "message_index": 1, "region": True}},
    {"input": {"query": "half \ud83d", "locale": "en"}},
    {
        "input": [
            {"role": "system", "content": "Be <<brief>>"},
            {"role": "user", "content": "early"},
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": "late"},
        ]
    },
    {
        "input": "with calls",
        "metadata": {
            "history": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
                {"role": "tool", "content": "done", "tool_call_id": "1"},
            ]
        },
    },
]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
@pytest.mark.parametrize(
    "case",
    [
        "tags: x\nvars: {query: mine, other: 'no'}\nassertions: [{contains: <<query>>}]\n",
        """
        input: {system: s, turns: [first, {content: 'So: <<query>>', assertions: [{contains: y}]}]}
        assertions: [{contains: x}]
        """,
        """
        input: {turns: [{content: <<query>>, branches: [{name: b, turns: [z]}]}]}
        assertions: [{contains: x}]
        """,
    ],
)
def test_what_is_made_of_an_item_does_not_depend_on_the_others(
    tmp_path: Path, case: str, ending: str
) -> None:
    """Of items of one form the first alone is validated as a case when the run is planned."""
    # Each form three times; more of them than are kept together.
    items = [{**item, "id": f"{n}.{m}"} for m in range(3) for n, item in enumerate(ITEMS)]
    items += [{"id": f"more.{n}", "input": f"plain {n}"} for n in range(600)]

    def made(folder: str, those: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
        lines = "\n".join(map(json.dumps, those))
        make_tree(
            tmp_path / folder,
            {
                "eval.yaml": SUITE.replace("jsonl", ending),
                "item.yaml": case,
                f"items.{ending}": json.dumps(those) if ending == "json" else lines,
            },
        )
        loaded = load_paths([tmp_path / folder])
        (suite,) = loaded.suites
        profiles = {str(suite.path): [Profile(name="p", engine="scripted")]}
        digests = case_digests(make_plan([suite], profiles, Selection()).jobs)
        return {
            one.id: (
                digests[one.id],
                one.case.model_dump(by_alias=True, exclude_unset=True),
                one.branch_of,
                one.item,
                one.like.tags,
            )
            for one in suite.cases
        }

    forwards, backwards = made("f", items), made("b", items[::-1])
    assert forwards == backwards
    assert len({digest for digest, *_ in forwards.values()}) == len(forwards)
    alone = dict[str, tuple[Any, ...]]()
    for number, item in enumerate(items[: 2 * len(ITEMS)]):
        alone |= made(f"alone-{number}", [item])
    assert alone == {name: forwards[name] for name in alone}
