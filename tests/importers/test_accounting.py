"""Nothing is dropped in silence: what no converter reads is listed, wherever it stands."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InvalidFilesError
from skillup.importers.convert import convert_file
from skillup.importers.source import unused

AGENTV: dict[str, Any] = {
    "name": "probe",
    "description": "d",
    "tags": ["t"],
    "threshold": 0.7,
    "evaluate_options": {"repeat": 2, "max_concurrency": 3},
    "environment": {"type": "host", "setup": {"command": ["make"]}},
    "default_test": {"assert": [{"type": "contains", "value": "x"}]},
    "tests": [
        {
            "id": "one",
            "criteria": "good",
            "input": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [{"type": "text", "value": "hi"}]},
            ],
            "expected_output": [{"role": "assistant", "content": "{\"a\": 1}"}],
            "execution": {"skip_defaults": False},
            "run": {"repeat": 2, "timeout_seconds": 5},
            "assertions": [
                {"type": "llm-rubric", "value": [{"id": "a", "outcome": "o", "weight": 2}]},
                {"type": "trajectory:tool-used", "value": {"name": "Read", "min": 1}},
                {"type": "trajectory:tool-sequence", "value": {"steps": [{"name": "Read"}]}},
                {"type": "skill-used", "value": {"name": "s"}},
                {"type": "execution-metrics", "max_tool_calls": 4, "max_duration_ms": 100},
                {"type": "assert-set", "assert": [{"type": "cost", "budget": 1}]},
            ],
        },
        {
            "id": "two",
            "mode": "conversation",
            "aggregation": "min",
            "turns": [{"input": "a", "assert": [{"type": "regex", "value": "x"}]}],
        },
    ],
}  # fmt: skip
PROMPTFOO: dict[str, Any] = {
    "description": "d",
    "prompts": [{"id": "p", "raw": "{{ q }}"}],
    "providers": ["openai:x"],
    "defaultTest": {"options": {"disableVarExpansion": True}},
    "evaluateOptions": {"repeat": 2},
    "tests": [{"vars": {"q": "hi"}, "metadata": {"conversationId": "c"}, "assert": [
        {"type": "similar", "value": "x", "threshold": 0.5}]}],
}  # fmt: skip
VIBECHECK: dict[str, Any] = {
    "metadata": {"name": "n", "model": "m", "mcp_server": {"url": "u", "name": "s"}},
    "evals": [{"prompt": "p", "checks": [{"semantic": {"expected": "e", "threshold": 0.5}},
                                         {"llm_judge": {"criteria": "c"}}]}],
}  # fmt: skip
ANTHROPIC: dict[str, Any] = {
    "skill_name": "s",
    "evals": [{"id": 1, "prompt": "p", "expectations": ["e", {"text": "f"}]}],
}
LANGFUSE: list[dict[str, Any]] = [
    {
        "id": "a",
        "input": {"query": "q"},
        "expected_output": {"response": "r"},
        "metadata": {"history": [{"role": "user", "content": "u"}]},
    }
]


def mappings(data: Any, loc: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = data.items() if isinstance(data, dict) else enumerate(data)
    if isinstance(data, dict):
        yield loc
    for part, value in inside:
        if isinstance(value, dict | list) and part != "vars":
            yield from mappings(value, (*loc, part))


def at(data: Any, loc: tuple[Any, ...]) -> Any:
    for part in loc:
        data = data[part]
    return data


@pytest.mark.parametrize(
    ("name", "data"),
    [("agentv", AGENTV), ("promptfoo", PROMPTFOO), ("vibecheck", VIBECHECK),
     ("anthropic", ANTHROPIC), ("langfuse", LANGFUSE)],
)  # fmt: skip
def test_a_key_that_nobody_knows_is_refused_or_listed_with_its_place(
    tmp_path: Path, name: Any, data: Any
) -> None:
    source = tmp_path / "suite.json"
    for loc in mappings(data):
        changed = copy.deepcopy(data)
        at(changed, loc)["zzz_unheard_of"] = 1
        source.write_text(json.dumps(changed, indent=1), encoding="utf-8")
        lines = source.read_text(encoding="utf-8").splitlines()
        line = next(n for n, text in enumerate(lines, start=1) if "zzz_unheard_of" in text)
        told: list[tuple[str, int]] = []
        try:
            _, _, notes = convert_file(source, name)
            told = [(note.field + note.message, note.line) for note in notes]
        except InvalidFilesError as refused:
            told = [(str(problem), line) for problem in refused.problems]
        assert any("zzz_unheard_of" in text for text, _ in told), loc
        assert all(at == line for text, at in told if "zzz_unheard_ofnot carried" in text), loc


def test_what_is_unused_is_named_by_its_highest_place() -> None:
    data = {"a": {"b": 1, "c": {"d": 2, "e": [3]}}, "f": {"g": {"h": 4}}, "i": [{"j": 5}]}
    assert list(unused(data, {("a", "b"), ("i",)})) == [("a", "c"), ("f",)]
