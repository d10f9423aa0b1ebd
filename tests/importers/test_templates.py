from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.importers.source import SourceFile, SourceValue, TemplateScope, parse_source

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


def test_where_names_may_be_plain_text_an_unknown_one_stays() -> None:
    assert filled("leak {{ SECRET }}", empties=False) == "leak {{ SECRET }}"


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


def test_the_environment_is_never_read() -> None:
    assert filled("Use {{ env.X | default('eu') }}") == "Use eu"
    assert filled("{{ a }} {{ env.HOME }} {{var('x')}}") == "{{ a }} {{ env.HOME }} {{var('x')}}"


def test_templates_that_name_each_other_end() -> None:
    assert "{{" in filled("{{ a }}", "a: '{{ b }}'\nb: '{{ a }}'")
