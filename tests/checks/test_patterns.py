"""Regexes with a time limit, in Python's spelling and in Go's; values taken out of a turn."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

import pytest

from skillup.checks.evaluate import evaluate
from skillup.checks.registry import path_problem
from skillup.checks.text import Searcher, capture
from skillup.schema.base import compiled_path, compiled_pattern
from skillup.schema.case import Capture
from skillup.schema.checks import Check
from tests.support.records import call, make_record, make_turn

HOSTILE = [
    "from skillup.checks.text import answer_json as f; f('```\\n' * 60000)",
    "from skillup.checks.text import answer_json as f; f('   ```x\\n{\\n' * 30000)",
    "from skillup.checks.context import plain as f; f('a' + '\\u0301\\u0316' * 400000)",
    "from skillup.workspace.globs import matches_glob as f; f('-' * 255, '*-*-*-*-*-*-*-*.log')",
    "from skillup.workspace.globs import matches_glob as f; f('a/' * 2000, '**/a/' * 4 + '**/b')",
    "from skillup.workspace.globs import matches_glob as f; f('a', '{' * 3000 + 'a' + '}' * 3000)",
    "from skillup.checks.tools import same_tool as f; f('*a*a*a*a*a*b', 'a' * 200000, False)",
    "from skillup.judges.voting import _LEFT_OUT as f; f.split(' ' * 200000)",
    "from skillup.engines.events import _DURATION as f; f.findall('1' * 200000)",
]

LONG = "a" * 60 + "!"
CALLS = [call("Bash", "shell", command=LONG)]
RECORDED = make_record(make_turn(f'{{"x": "{LONG}"}}', calls=CALLS, files={"f.txt": LONG}))
SLOW = "(a|aa)+$"


@pytest.mark.parametrize(
    "spec",
    [
        {"tool_not_called": {"kind": "shell", "args": {"command": {"matches": SLOW}}}},
        {"none_of": [{"output_matches": {"any": ["b" * n + "|" + SLOW for n in range(1, 50)]}}]},
    ],
    ids=("call", "negated"),
)
def test_catastrophic_pattern_is_an_error_of_its_check(spec: dict[str, object]) -> None:
    result = evaluate(Check.model_validate(spec), RECORDED.context(1))

    assert not result.passed
    assert "took too long" in (result.error or "")
    captured = capture([rule(pattern="(?P<value>(a|aa)+)$")], make_turn(LONG))
    assert "too long" in (captured.miss or "")


def test_json_too_deep_to_be_compared_is_an_error_of_its_check() -> None:
    deep = "[" * 400 + "]" * 400
    check = Check.model_validate({"json": {"equals": json.loads(deep)}})
    result = evaluate(check, make_record(deep).context(1))
    assert "itself failed: RecursionError" in (result.error or "")


def test_what_an_agent_wrote_takes_no_more_than_linear_time() -> None:
    """S3: each of these took from half a minute to for ever."""
    limit = (resource.RLIMIT_CPU, (20, 20))
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(HOSTILE)],
        check=False,
        preexec_fn=lambda: resource.setrlimit(*limit),
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"end\z", "the end", True),
        (r"end\z", "end\n", False),
        (r"end\\z", "the end\\z", True),
        (r"[[:digit:]]+\pL", "12x", True),
    ],
)
def test_spellings_of_both_languages_are_understood(pattern: str, text: str, matches: bool) -> None:
    found = Searcher().search(pattern, text)

    assert (found is not None) is matches


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*a", r"(?P<1>a)", r"a{2,1}", r"\1", "(?<=a+", r"\Qa.b\E", r"\x{41}"]
)
def test_invalid_pattern_is_named_with_its_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a valid regex") as caught:
        compiled_pattern(pattern, False)
    assert pattern in str(caught.value)


@pytest.mark.parametrize(
    "path", ["$.[", "", "$.a[", "$.a[?(@.b =~ '(a+)+$')]", "$.a.`sub(/x/, y)`"]
)
def test_path_that_cannot_be_used_is_named(path: str) -> None:
    with pytest.raises(ValueError, match="JSONPath"):
        compiled_path(path)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "~/x", "C:\\x", "[z-a]"])
def test_path_out_of_the_workspace_is_refused(path: str) -> None:
    assert path_problem(path) is not None


@pytest.mark.parametrize(
    "spec",
    [
        {"matches": "HELLO"},
        {"output_matches": "HELLO"},
        {"type": "regex", "value": "HELLO"},
        {"tool_called": {"kind": "shell", "args": {"command": {"matches": "HELLO"}}}},
        {"contains": "HELLO"},
        {"type": "contains", "value": "HELLO"},
        {"file_contains": {"path": "f.txt", "content": "HELLO"}},
        {"tool_called": {"kind": "shell", "args": {"command": {"contains": "HELLO"}}}},
    ],
    ids=str,
)
def test_texts_ignore_case_and_patterns_respect_it(spec: dict[str, Any]) -> None:
    """V5: one rule for the whole language, with one switch for texts and `(?i)` for patterns."""
    calls = [call("Bash", "shell", command="hello")]
    record = make_record(make_turn('["hello"]', calls=calls, files={"f.txt": "hello"}))

    def passes(**switch: bool) -> bool:
        return evaluate(Check.model_validate({**spec, **switch}), record.context(1)).passed

    is_pattern = any(word in str(spec) for word in ("matches", "regex"))
    assert passes() is not is_pattern
    assert not passes(case_sensitive=True)
    if is_pattern:
        ignoring = json.loads(json.dumps(spec).replace("HELLO", "(?i)HELLO"))
        assert evaluate(Check.model_validate(ignoring), record.context(1)).passed


TURN = make_turn(
    'Found 12 files, Order-7.\n```json\n{"count": 12, "none": null, "list": [1, true]}\n```',
    calls=[call("Bash", "shell", command="ls"), call("Read", "read", file_path="a")],
    results=["a.txt", ""],
    output_tokens=9,
)


def rule(**fields: Any) -> Capture:
    return Capture.model_validate({"variable": "it", **fields})


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"pattern": r"(?P<value>\d+) (files?)"}, "12"),
        ({"pattern": r"Order-(\d+)"}, "7"),
        ({"jsonpath": "$.transcript.tool_results[0].call_id"}, "call-1"),
        ({"jsonpath": "$.transcript.tool_calls[?(@.kind == 'read')].arguments.file_path"}, "a"),
        ({"jsonpath": "$.response_json.count"}, "12"),
        ({"jsonpath": "$.response_json.list[1]"}, "true"),
        ({"jsonpath": "$.usage.output_tokens"}, "9"),
        ({"pattern": "absent (.)", "default": "none"}, "none"),
        ({"jsonpath": "$.transcript.tool_results[1].content", "default": "empty"}, "empty"),
    ],
)
def test_value_is_captured(fields: dict[str, Any], value: str) -> None:
    captured = capture([rule(**fields)], TURN)
    assert captured.miss is None
    assert captured.values == {"it": value}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"pattern": r"absent (\d)"}, "found nothing"),
        ({"pattern": "Found( *)12"}, "empty value"),
        ({"pattern": "(?P<value>x)?Found"}, "found nothing"),
        ({"jsonpath": "$.response_json.absent"}, "found nothing"),
        ({"jsonpath": "$.response_json.none"}, "empty value"),
        ({"jsonpath": "$.transcript.tool_results[1].content"}, "empty value"),
    ],
)
def test_miss_says_which_variable_and_why(fields: dict[str, Any], why: str) -> None:
    captured = capture([rule(**fields)], TURN)

    assert captured.values == {}
    assert captured.miss is not None
    assert captured.miss.startswith("capture `it`: ")
    assert why in captured.miss


def test_values_before_a_miss_are_kept_and_those_after_are_not_sought() -> None:
    patterns = {"one": r"(\d+)", "two": "(absent)", "three": "(Order)"}
    captured = capture([rule(variable=one, pattern=p) for one, p in patterns.items()], TURN)

    assert captured.values == {"one": "12"}
    assert "capture `two`" in (captured.miss or "")
