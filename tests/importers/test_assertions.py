"""Every type of assertion of AgentV and promptfoo, and the check it becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.importers.promptfoo.assertions import Background, convert_assertions
from skillup.importers.source import SourceFile, SourceValue, parse_source
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from tests.support.check_rows import Row
from tests.support.records import make_record, make_turn

HERE = Path("a.yaml")
DRAFT = "http://json-schema.org/draft-07/schema#"

ROWS: list[tuple[str, list[dict[str, Any]]]] = [
    ("{type: contains, value: A}", [{"contains": "A", "case_sensitive": True}]),
    ("{type: icontains, value: a}", [{"contains": "a"}]),
    ("{type: contains-any, value: [a, b]}",
     [{"contains": {"any": ["a", "b"]}, "case_sensitive": True}]),
    ("{type: contains_all, value: [a, b]}",
     [{"contains": {"all": ["a", "b"]}, "case_sensitive": True}]),
    ("{type: icontains-any, value: [a, b]}", [{"contains": {"any": ["a", "b"]}}]),
    ("{type: not-contains, value: a, negate: true}", [{"contains": "a", "case_sensitive": True}]),
    ("{type: regex, value: 'a.b'}", [{"matches": "a.b"}]),
    ("{type: regex, value: 'a.b', flags: i}", [{"matches": "(?i)a.b"}]),
    ("{type: regex, value: '^a$', flags: ms}", [{"matches": "(?ms)^a$"}]),
    ("{type: regex, value: '(?<n>x)$'}", [{"matches": "(?<n>x)\\Z"}]),
    ("{type: regex, value: '\\(?<b>'}", [{"matches": "\\(?<b>"}]),  # F11
    ("{type: regex, value: '(?<=a)b\\$'}", [{"matches": "(?<=a)b\\$"}]),
    ("{type: starts-with, value: 'Dear (A)'}",
     [{"matches": "\\A\\s*Dear\\ \\(A\\)"}]),
    ("{type: ends-with, value: Bye}", [{"matches": "Bye\\s*\\Z"}]),
    ("{type: equals, value: 4}", [{"equals": "4", "case_sensitive": True}]),
    ("{type: equals, value: {a: 1}}",
     [{"json": {"path": "$", "equals": {"a": 1}}, "case_sensitive": True}]),
    ("{type: is-json}", [{"json": {"whole": True, "exists": True}}]),
    ("{type: is_json, value: {required: [a]}}",
     [{"json": {"whole": True, "schema": {"$schema": DRAFT, "required": ["a"]}}}]),
    ("{type: not-is-json}", [{"none_of": [{"json": {"whole": True, "exists": True}}]}]),
    ("{type: contains-json}", [{"json": {"exists": True}}]),
    ("{type: contains-json, value: 'type: array'}",
     [{"json": {"schema": {"$schema": DRAFT, "type": "array"}}}]),
    ("{type: latency, threshold: 1500}", [{"max_duration_seconds": 1.5}]),
    ("{type: latency, max_ms: 5000}", [{"max_duration_seconds": 5}]),
    ("{type: cost, threshold: 0.1}", [{"max_cost_usd": 0.1}]),
    ("{type: token-usage, max_output: 50}", [{"max_tokens": 50}]),
    ("{type: execution-metrics, max_tool_calls: 4, max_cost_usd: 1, metric: m}",
     [{"name": "m", "tool_called": {"name": "*", "min": 0, "max": 4}, "weight": 0.5},
      {"name": "m", "max_cost_usd": 1, "weight": 0.5}]),
    ("{type: trajectory:tool-used, value: Read}", [{"tool_called": {"name": "Read"}}]),
    ("{type: trajectory:tool-used, value: [A, B]}",
     [{"tool_called": {"name": "A"}, "weight": 0.5},
      {"tool_called": {"name": "B"}, "weight": 0.5}]),
    ("{type: trajectory:tool-used, value: {pattern: 'se*', min: 2, max: 3}}",
     [{"tool_called": {"name": "se*", "min": 2, "max": 3}}]),
    ("{type: trajectory:tool-used, value: {name: A, max: 0}}",
     [{"tool_called": {"name": "A", "min": 0, "max": 0}}]),
    ("{type: not-trajectory:tool-used, value: [A, B]}",
     [{"none_of": [{"tool_called": {"name": "A"}}, {"tool_called": {"name": "B"}}]}]),
    ("{type: trajectory:tool-sequence, value: {mode: exact, steps: [A, B]}}",
     [{"tool_sequence": {"calls": [{"name": "A"}, {"name": "B"}], "mode": "exact"}}]),
    ("{type: trajectory:tool-args-match, value: {name: A, args: {q: x, o: {equals: 1}}}}",
     [{"tool_called": {"name": "A", "args": {"q": "x", "o": {"equals": {"equals": 1}}}},
       "case_sensitive": True}]),
    ("{type: skill-used, value: s}", [{"skill_used": "s"}]),
    ("{type: not-skill-used, value: s}", [{"skill_not_used": "s"}]),
    ("{type: llm-rubric, value: Is kind}", [{"rubric": "Is kind"}]),
    ("{type: not-llm-rubric, value: Is rude}", [{"none_of": [{"rubric": "Is rude"}]}]),
    ("{type: rubrics, criteria: [{id: a, outcome: o, weight: 2, required: true}]}",
     [{"rubric": {"criteria": [{"id": "a", "outcome": "o", "weight": 2, "required": True}]}}]),
    ("{type: llm-rubric, value: [{outcome: o, operator: contradiction}]}",
     [{"rubric": "Says nothing that contradicts this (it need not be mentioned): o"}]),
    ("{type: llm-judge, value: c, prompt: 'Is {{ answer }} like {{ expected_output }}?'}",
     [{"rubric": {"criteria": [{"outcome": "c"}],
                  "prompt": 'Is {{output}} like {"a": {"b": [3]}}?'}}]),
    ("{type: llm-rubric, value: [a, b], prompt: '{{rubrics}} of {{ output }}: {{criteria}}.'}",
     [{"rubric": {"criteria": [{"outcome": "a"}, {"outcome": "b"}], "threshold": 0.8,
                  "prompt": "{{criteria}} of {{output}}: ."}}]),
    ("{type: llm-judge, prompt: 'Is {{output}} kind?'}",
     [{"rubric": {"criteria": [{"outcome": "The answer does well what was asked."}],
                  "prompt": "Is {{output}} kind?"}}]),
    ("{type: conversation-relevance, config: {windowSize: 3}}",
     [{"relevance": {"window_size": 3}}]),
    ("{type: llm-judge, prompt: Is it kind?}", [{"rubric": "Is it kind?"}]),
    ("{type: similar, value: x}", [{"similar": {"to": "x", "threshold": 0.75}}]),
    ("{type: similar, value: [x, y], threshold: 0.5}",
     [{"any_of": [{"similar": {"to": "x", "threshold": 0.5}},
                  {"similar": {"to": "y", "threshold": 0.5}}]}]),
    ("{type: factuality, value: f}", [{"rubric": "The answer agrees with these facts: f"}]),
    ("{type: g-eval, value: [a, b]}",
     [{"rubric": {"criteria": [{"outcome": "a"}, {"outcome": "b"}], "threshold": 0.8}}]),
    ("{type: is-refusal}", [{"rubric": "The agent refuses to do what was asked."}]),
    ("{type: contains, value: a, metric: m, weight: 0, required: true}",
     [{"name": "m", "required": True, "contains": "a", "case_sensitive": True, "weight": 0}]),
    ("{type: contains, value: a, required: 0.6}",
     [{"required": True, "contains": "a", "case_sensitive": True}]),
    ("{type: assert-set, assert: [{type: icontains, value: a}, {type: is-json, weight: 0}]}",
     [{"all_of": [{"contains": "a"}]}]),
    ("{type: assert-set, metric: g, weight: 2, assert: [{type: is-json, weight: 3}, a text]}",
     [{"name": "g", "all_of": [{"json": {"whole": True, "exists": True}, "weight": 3},
                               {"rubric": "a text"}], "weight": 2}]),
]  # fmt: skip


def converted(text: str, **background: Any) -> tuple[list[dict[str, Any]], SourceFile]:
    source = parse_source(f"assert:\n  - {text}\n", HERE)
    listed = SourceValue.top(source).get("assert")
    assert listed is not None
    expected = json.dumps({"a": {"b": [3]}})
    return convert_assertions([listed], Background(expected=expected, **background)), source


@pytest.mark.parametrize(("text", "checks"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_becomes(text: str, checks: list[dict[str, Any]]) -> None:
    made, _ = converted(text)
    assert made == checks
    for check in made:
        Check.model_validate(check)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{type: javascript, value: output.length}", "program"),
        ("{type: script, command: [x]}", "program"),
        ("{type: python, value: 'file://x.py'}", "program"),
        ("{type: my-own-check}", "`my-own-check`: there is no counterpart"),
        ("{type: composite, graders: []}", "no counterpart"),
        ("{type: llm-rubric, value: [{id: a, score_ranges: {0: bad}}]}", "says nothing"),
        ("{value: x}", "an assertion without a type"),
        ("{type: contains}", "says nothing"),
        ("{type: token-usage, max_total: 5}", "says nothing"),
    ],
)
def test_what_has_no_counterpart_is_lost_and_listed(text: str, said: str) -> None:
    made, source = converted(text)
    notes = list(source.notes({}))
    assert made == []
    assert any(
        note.severity == "lost" and said in note.message and note.line == 2 for note in notes
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{type: llm-rubric, value: x, threshold: 0.6}", "score of 0.6"),
        ("{type: regex, value: '('}", "not read here"),
        ("{type: assert-set, threshold: 0.7, assert: [a]}", "a group that passes from a score of"),
        ("{type: is-json, value: 'file://schema.js'}", "JSON Schema"),
        (
            "{type: trajectory:tool-args-match, value: {name: A, args: {}, mode: exact}}",
            "no other arguments",
        ),
        ("{type: is-json, value: {type: text}}", "JSON Schema"),
    ],
)
def test_what_is_only_nearly_the_same_is_said(text: str, said: str) -> None:
    made, source = converted(text)
    assert made
    assert any(n.severity == "changed" and said in n.message for n in source.notes({}))


def test_bare_texts_become_one_rubric_where_the_first_stood() -> None:
    source = parse_source(
        "assert:\n  - {type: is-json}\n  - One\n  - {type: cost, budget: 1}\n  - Two\n", HERE
    )
    listed = SourceValue.top(source).get("assert")
    assert listed is not None
    made = convert_assertions([listed], Background())
    assert [next(iter(check)) for check in made] == ["json", "rubric", "max_cost_usd"]
    assert made[1] == {"rubric": {"criteria": ["One", "Two"], "threshold": 0.8}, "weight": 2}


ANSWER = '{"id": 7, "tags": ["a"], "on": "2026-01-31"}'
SCHEMA = (
    "{type: object, required: [id], additionalProperties: false,"
    " properties: {id: {type: integer}, on: {format: date}, tags: {items: {pattern: '^[a-z]$'}}}}"
)


def judged(check: dict[str, Any], answer: str) -> CheckResult:
    recorded = make_record(make_turn(answer))
    return Row(Check.model_validate(check), recorded, 1, passes=True).result()


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        (
            "{type: is-json}",
            [ANSWER, " [1]\n", "1"],
            [f"Here: {ANSWER}", f"```\n{ANSWER}\n```", "NaN"],
        ),
        (
            f"{{type: is-json, value: {SCHEMA}}}",
            [ANSWER],
            ['{"id": "7"}', '{"id": 7, "more": 1}', '{"id": 7, "on": "soon"}', f"Here: {ANSWER}"],
        ),
        (f"{{type: not-is-json, value: {SCHEMA}}}", ["[]", "prose", f"So: {ANSWER}"], [ANSWER]),
        (
            f"{{type: contains-json, value: {SCHEMA}}}",
            [ANSWER, f"So: {ANSWER}."],
            ['So: {"id": 0.5}'],
        ),
        ("{type: is-json, value: 'file://schema.js'}", [], [ANSWER, "{}"]),
        ("{type: not-is-json, value: 'file://schema.js'}", ["text"], [ANSWER, "{}"]),
    ],
)
@pytest.mark.parametrize("spelled_by_us", [True, False])
def test_json_is_judged_as_promptfoo_judges_it(
    text: str, passing: list[str], failing: list[str], spelled_by_us: bool
) -> None:
    """V7: the schema counts, and for `is-json` the answer is JSON as a whole."""
    if spelled_by_us and "file://" not in text:
        checks = [parse_source(text, HERE).data]
    else:
        checks, _ = converted(text, promptfoo=True)
    (check,) = checks
    for answer in [*passing, *failing]:
        result = judged(check, answer)
        assert (result.passed, result.error) == (answer in passing, None), (answer, result.found)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "https://example.org/x.json"}, "cannot be applied"),
        ({"pattern": "^(a|aa)+$"}, "too long"),
        ({"allOf": [{"$ref": "#"}]}, "cannot be applied"),
    ],
)
def test_a_schema_that_cannot_be_applied_is_an_error_and_no_verdict(
    schema: dict[str, Any], said: str
) -> None:
    """V7: nothing is fetched, and no regex holds up the run."""
    result = judged({"json": {"schema": schema}}, f'"{"a" * 60}!"')
    assert not result.passed
    assert said in (result.error or "")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            "{type: llm-rubric, value: x, threshold: 0.6}",
            {"criteria": [{"outcome": "x"}], "threshold": 0.6},
        ),
        ("{type: llm-rubric, value: x}", "x"),
        ("{type: llm-rubric, value: x, threshold: 0}", "x"),
        (
            "{type: g-eval, value: [a, b]}",
            {"criteria": [{"outcome": "a"}, {"outcome": "b"}], "threshold": 0.7},
        ),
    ],
)
def test_promptfoos_thresholds_are_its_own(text: str, made: Any) -> None:
    """V7: a threshold is kept; a missing one is promptfoo's."""
    assert converted(text, promptfoo=True)[0] == [{"rubric": made}]
