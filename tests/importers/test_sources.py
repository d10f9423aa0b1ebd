from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers.convert import detect
from skillup.importers.source import (
    SourceFile,
    SourceValue,
    TemplateScope,
    open_source,
    parse_json,
    parse_source,
)


def opened(tmp_path: Path, data: Any, name: str = "some.json") -> SourceFile:
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return open_source(path)


CHECKED = {"prompt": "p", "checks": [{"match": "*"}]}


@pytest.mark.parametrize(
    ("data", "format_"),
    [
        ({"evals": [CHECKED]}, "vibecheck"),
        ({"metadata": {"name": "n"}, "evals": []}, "vibecheck"),
        ({"skill_name": "s", "evals": [{"prompt": "p"}]}, "anthropic"),
        ([{"query": "q", "should_trigger": True}], "anthropic"),
        ({"eval_id": 1, "prompt": "p", "assertions": []}, "anthropic"),
        ([{"input": {"query": "q"}, "expected_output": {"response": "r"}}], "langfuse"),
        ({"data": [{"id": "a", "input": {"query": "q"}, "expected_output": "r"}]}, "langfuse"),
        ([{"input": "q", "datasetName": "d"}], "langfuse"),
        ([{"id": "a", "input": "q", "expected_output": "r"}], "agentv"),
        ({"tests": [{"id": "a", "input": "x"}]}, "agentv"),
        ({"tests": [{"vars": {"input": "x"}, "assert": ["text"]}]}, "agentv"),
        ({"name": "n", "tests": "./cases.yaml"}, "agentv"),
        ([{"id": "a", "criteria": "c", "input": "i"}], "agentv"),
        ({"prompts": ["p"], "tests": [{"vars": {"a": 1}, "assert": []}]}, "promptfoo"),
        ({"providers": ["openai:x"], "tests": [{"vars": 1.5}]}, "promptfoo"),
        ({"defaultTest": {}, "prompts": ["p"], "tests": [{"vars": {}}]}, "promptfoo"),
    ],
)
def test_says_which_tool_a_file_comes_from(tmp_path: Path, data: Any, format_: str) -> None:
    assert detect(opened(tmp_path, data)) == format_


@pytest.mark.parametrize(
    "data",
    [
        {"test_id": "a", "score": 1, "assertions": []},
        {"results": [], "stats": {}},
        [{"role": "user", "content": "x"}],
        [{"config": [], "tests": []}],
        {"id": "a", "input": {"prompt": "p"}, "expect": {}, "judge": {}},
        {"apple": 1, "pear": 2},
        [],
    ],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path: Path, data: Any) -> None:
    with pytest.raises(UsageError, match="not a suite") as refused:
        detect(opened(tmp_path, data))
    assert ("(its keys: apple, pear)" in refused.value.message) == ("apple" in data)


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("README.md", "# a document", 1, "are not read"),
        ("a.yaml", "a: [", 1, ""),
        ("a.yaml", "- a: 1\n  a: 2\n", 2, "the key `a` was given already"),
        ("a.yaml", "just text", 1, "a single value"),
        ("a.yaml", "", 1, "empty"),
        ("a.jsonl", "", 1, "empty"),
        ("a.jsonl", '{"a": 1}\n{"b": ', 2, "not JSON"),
        ("a.json", "[1 2]", 1, "not JSON: Expecting ',' delimiter"),
        ("a.json", '{"b": {},\n "a": 1, "a": 2}', 2, "the key `a` was given already"),
        ("a.json", '["\\ud800"]', 1, "half of a surrogate pair"),
        ("a.json", "[\n1, NaN]", 1, "NaN is no value of JSON"),
        ("a.json", "[" * 200 + "]" * 200, 1, "levels of nesting"),
        ("a.json", "[" * 100_000, 1, "not JSON"),
        ("a.json", "1" * 5000, 1, "Exceeds the limit"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, line: int, said: str
) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        opened(tmp_path, text, name)
    (problem, *_) = refused.value.problems
    assert (problem.line, problem.file.name) == (line, name)
    assert said in problem.message


def test_every_value_has_its_place(tmp_path: Path) -> None:
    listed = opened(tmp_path, "# c\n---\n- a: 1\n- b:\n    c: 2\n", "list.yaml")
    assert listed.locate((1, "b", "c")) == (5, 8)
    text = '{\n\t"a": [1,\n    {"b": "\\ud83d\\ude00"}], \n "c": {}\n}'
    found = parse_json(text, Path("some.json"))
    assert found.data["a"][1] == {"b": "\U0001f600"}
    assert found.locate(("a", 1, "b")) == (3, 11)
    assert found.locate(("a", 1, "b"), key=True) == (3, 6)
    assert found.locate(("c", "b", 3)) == (4, 7), "the nearest place around one that is not there"


# Templates.

HERE = Path("t.yaml")


def scope_of(text: str, **more: Any) -> tuple[TemplateScope, SourceFile]:
    source = parse_source(text, HERE)
    return TemplateScope(variables=dict(SourceValue.top(source).items()), **more), source


def filled(text: str, variables: str = "a: 1", **more: Any) -> Any:
    scope, _ = scope_of(variables, **more)
    node = SourceValue(SourceFile(HERE, text, lambda loc, key=False: (1, 1)), (), text, scope)
    return node.take()


@pytest.mark.parametrize(
    ("text", "variables", "result"),
    [
        ("Hi {{ name }}", "name: Ada", "Hi Ada"),
        ("Hi {{ vars.person.name }}!", "person: {name: Ada}", "Hi Ada!"),
        ("{{ items[1] }}", "items: [x, y]", "y"),
        ("{{ said }}", "said: [{role: user, content: x}]", [{"role": "user", "content": "x"}]),
        ("{{ a }} and {{ b }}", "a: 'see {{ b }}'\nb: B", "see B and B"),
        ("{{ list | dump }}", "list: [x, é]", '["x", "é"]'),
        ("{{ none | default('x') }}", "a: 1", "x"),
        ("{% for m in _conversation %}{{ m.input }},{% endfor %}{{ a }}", "a: x", "x"),
        ("no template", "a: 1", "no template"),
    ],
)  # fmt: skip
def test_templates_are_filled_in(text: str, variables: str, result: Any) -> None:
    assert filled(text, variables) == result


@pytest.mark.parametrize(
    "text",
    ["{{ 'x' * 1000000000 }}", "{{ ''.__class__ }}", "{% if a %}x{% endif %}", "{{ a | batch(3) }}",
     "{% for i in range(1000000000) %}x{% endfor %}{{ }}"],
)  # fmt: skip
def test_a_template_with_more_than_names_stays_text_and_is_reported(text: str) -> None:
    scope, source = scope_of(f"x: {json.dumps(text)}\na: 1")
    node = SourceValue.top(source).with_scope(scope).get("x")
    assert node.text() == text
    (note,) = source.notes({})[:1]
    assert "cannot be filled in" in note.message


def test_the_environment_is_never_read_and_names_may_lead_nowhere() -> None:
    assert filled("leak {{ SECRET }}", empties=False) == "leak {{ SECRET }}"
    assert filled("Use {{ env.X | default('eu') }}") == "Use eu"
    assert filled("{{ a }} {{ env.HOME }} {{var('x')}}") == "{{ a }} {{ env.HOME }} {{var('x')}}"
    assert "{{" in filled("{{ a }}", "a: '{{ b }}'\nb: '{{ a }}'")
