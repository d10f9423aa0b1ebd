from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.errors import InvalidFilesError, SkillupError, UsageError
from skillup.importers.detect import detect
from skillup.importers.source import open_sources, parse_json


def sources(tmp_path: Path, data: Any, name: str = "some.json") -> Any:
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return open_sources(path)


CHECKED = {"prompt": "p", "checks": [{"match": "*"}]}


@pytest.mark.parametrize(
    ("data", "format_"),
    [
        ({"evals": [CHECKED]}, "vibecheck"),
        ({"metadata": {"name": "n"}, "evals": []}, "vibecheck"),
        ({"skill_name": "s", "evals": [{"prompt": "p"}]}, "anthropic"),
        ([{"query": "q", "should_trigger": True}], "anthropic"),
        ({"eval_id": 1, "prompt": "p", "assertions": []}, "anthropic"),
        ({"tests": [{"id": "a", "input": "x"}]}, "agentv"),
        ({"tests": [{"vars": {"input": "x"}, "assert": ["text"]}]}, "agentv"),
        ({"name": "n", "tests": "./cases.yaml"}, "agentv"),
        ([{"id": "a", "criteria": "c", "input": "i"}], "agentv"),
        ({"prompts": ["p"], "tests": [{"vars": {"a": 1}, "assert": []}]}, "promptfoo"),
        ({"providers": ["openai:x"], "tests": [{"vars": {}}]}, "promptfoo"),
        ({"defaultTest": {}, "prompts": ["p"], "tests": [{"vars": {}}]}, "promptfoo"),
    ],
)
def test_says_which_tool_a_file_comes_from(tmp_path: Path, data: Any, format_: str) -> None:
    assert detect(sources(tmp_path, data)) == format_


@pytest.mark.parametrize(
    "data",
    [
        {"test_id": "a", "score": 1, "assertions": []},
        {"results": [], "stats": {}},
        [{"role": "user", "content": "x"}],
        [{"config": [], "tests": []}],
        [{"input": {"query": "q"}, "expected_output": {"response": "r"}}],
        {"apple": 1, "pear": 2},
        [],
    ],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path: Path, data: Any) -> None:
    with pytest.raises(UsageError, match="not a suite") as refused:
        detect(sources(tmp_path, data))
    assert ("(its keys: apple, pear)" in refused.value.message) == ("apple" in data)
    assert "`cases.datasets`" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# a document", "README.md"),
        ("a: [", "broken.yaml"),
        ("- a\n b: c", "broken.yaml"),
        ("{", "broken.json"),
        ('{"a": 1}\n{"b": ', "broken.jsonl"),
        ("", "empty.jsonl"),
        ("", "empty.yaml"),
        ("just text", "scalar.yaml"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(SkillupError) as refused:
        sources(tmp_path, text, name)
    (problem, *_) = refused.value.problems  # type: ignore[attr-defined]
    assert problem.line >= 1
    assert problem.file.name == name


def test_the_place_in_a_list_is_the_place_in_the_file(tmp_path: Path) -> None:
    (source,) = sources(tmp_path, "# c\n---\n- a: 1\n- b:\n    c: 2\n", "list.yaml")
    assert source.locate((1, "b", "c")) == (5, 8)


def test_a_problem_in_a_list_has_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(SkillupError) as refused:
        sources(tmp_path, "- a: 1\n  a: 2\n", "list.yaml")
    (problem,) = refused.value.problems  # type: ignore[attr-defined]
    assert problem.line == 2
    assert "at line 1, column 3" in problem.message


HERE = Path("some.json")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=40)
@given(values, st.sampled_from([None, 0, 2, "\t"]))
def test_reads_what_the_standard_library_writes(value: Any, indent: Any) -> None:
    assert parse_json(json.dumps(value, indent=indent), HERE).data == value


def test_every_value_has_its_place() -> None:
    found = parse_json('{\n\t"a": [1,\n    {"b": "\\ud83d\\ude00"}], \n "c": {}\n}', HERE)
    assert found.data["a"][1] == {"b": "\U0001f600"}
    assert found.locate(("a", 1, "b")) == (3, 11)
    assert found.locate(("a", 1, "b"), key=True) == (3, 6)
    assert found.locate(("c", "b", 3)) == (4, 7), "the nearest place around one that is not there"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[1 2]", 1, "not JSON: Expecting ',' delimiter"),
        ("", 1, "not JSON: Expecting value"),
        ('{"a": 1} x', 1, "not JSON: Extra data"),
        ('{"b": {},\n "a": 1, "a": 2}', 2, "the key `a` was given already"),
        ('["\\ud800"]', 1, "half of a surrogate pair"),
        ("[\n1, NaN]", 1, "NaN is no value of JSON"),
        ('["a\nb"]', 1, "control character"),
        ("[" * 200 + "]" * 200, 1, "levels of nesting"),
        ("[" * 100_000, 1, "not JSON"),
        ("1" * 5000, 1, "Exceeds the limit"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text: str, line: int, said: str) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        parse_json(text, HERE)
    (problem,) = refused.value.problems
    assert problem.line == line
    assert said in problem.message
