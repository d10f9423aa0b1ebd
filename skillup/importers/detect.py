"""Which tool a file comes from, by what is in it; and what it is if it is no suite at all."""

from __future__ import annotations

from typing import Any, Literal, get_args

from skillup.errors import UsageError
from skillup.importers.messages import is_messages
from skillup.importers.source import SourceFile

Format = Literal["agentv", "vibecheck", "promptfoo", "anthropic", "langfuse"]
FORMATS: tuple[str, ...] = get_args(Format)

_LOOKED_FOR = (
    "`tests` or `scenarios` (promptfoo, AgentV), `evals` with `prompt` and `checks` (vibecheck) or "
    "with `prompt` alone (Anthropic), a list of `query` and `should_trigger` (Anthropic), items "
    "with `input` and `expected_output` (Langfuse)"
)
_PROMPTFOO_KEYS = {
    "defaultTest", "evaluateOptions", "assertionTemplates", "outputPath", "derivedMetrics",
    "nunjucksFilters", "commandLineOptions", "redteam", "sharing", "writeLatestResults",
}  # fmt: skip
_AGENTV_KEYS = {
    "default_test", "evaluate_options", "environment", "execution", "workspace", "input",
    "input_files", "assertions", "assert", "evalcases", "eval_cases", "target", "targets",
}  # fmt: skip
_AGENTV_TEST_KEYS = {
    "input", "input_messages", "criteria", "expected_outcome", "outcome", "turns", "mode",
    "assertions", "evaluators", "execution", "conversation_id", "input_files", "depends_on",
    "rubrics", "expected_output",
}  # fmt: skip
_CASE_KEYS = {
    "assert", "assertions", "criteria", "expected_outcome", "outcome", "turns", "vars",
    "evaluators", "rubrics", "input_messages", "input_files",
}  # fmt: skip
_LANGFUSE_KEYS = {"expectedOutput", "datasetId", "datasetName", "dataset_id", "dataset_name"}

_NO_SUITES: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(keys), what)
    for keys, what in (
        (("test_id", "score"), "results of an AgentV run"),
        (("test_id", "message_index"), "a transcript that AgentV imported"),
        (("test_id", "output", "fixture_id"), "recorded answers for AgentV's replay"),
        (("test_id", "grader", "range"), "expected scores of AgentV's graders"),
        (("text", "trace"), "a recorded trace"),
        (("type", "payload"), "an agent's session file (see `skillup session`)"),
        (("sessionId", "type"), "an agent's session file (see `skillup session`)"),
        (("expectations", "summary"), "a grading, that is a result"),
        (("assertion_results",), "a grading, that is a result"),
        (("run_summary",), "benchmark results"),
        (("winner", "reasoning"), "the comparison of two results"),
        (("comparison_summary",), "the analysis of a comparison"),
        (("reviews", "status"), "reviewers' feedback on results"),
        (("iterations", "current_best"), "the history of a skill's improvement"),
        (("tool_calls", "total_tool_calls"), "metrics of a run"),
        (("total_tokens", "duration_ms"), "the timing of a run"),
        (("results", "stats"), "results of a promptfoo run"),
        (("question_id", "turns"), "MT-bench questions, which are not read"),
        (("config", "tests"), "a scenario without its suite: import the suite that names it"),
    )
)


def detect(sources: list[SourceFile]) -> Format:
    """The tool that `sources` (one file) come from.

    Raises UsageError naming what the file is instead, or everything that was looked for.
    """
    path, data = sources[0].path, sources[0].data
    item = _first_item(data)
    found = _suite(data, item) or _items(data, item, path.name)
    if found is not None:
        return found
    raise UsageError(
        f"{path}: {_what_it_is(data, item)}",
        hint=f"looked for {_LOOKED_FOR}; --from says which tool it is",
    )


def _first_item(data: Any) -> dict[Any, Any]:
    if isinstance(data, list):
        data = data[0] if data else {}
    return data if isinstance(data, dict) else {}


def _suite(data: Any, item: dict[Any, Any]) -> Format | None:
    if not isinstance(data, dict):
        return None
    evals = data.get("evals")
    if isinstance(evals, list):
        checked = any(isinstance(entry, dict) and "checks" in entry for entry in evals)
        return "vibecheck" if checked or "metadata" in data else "anthropic"
    if {"tests", "scenarios", "evalcases", "eval_cases"} & set(item):
        return _dialect(data)
    return None


def _dialect(data: dict[Any, Any]) -> Format:
    """AgentV's suites have become a superset of promptfoo's: the signs of both are counted."""
    tests = data.get("tests", data.get("evalcases", data.get("eval_cases")))
    listed = [test for test in tests if isinstance(test, dict)] if isinstance(tests, list) else []
    keys = {str(key) for test in listed for key in test}
    promptfoo = 3 * len(_PROMPTFOO_KEYS & set(data))
    agentv = 2 * len(_AGENTV_KEYS & set(data)) + 2 * len(_AGENTV_TEST_KEYS & keys)
    agentv += 2 * ("id" in keys) + 2 * ("name" in data) + 3 * any(map(_has_bare_text, listed))
    promptfoo += 2 * bool({"options", "metadata"} & keys) + 2 * ("_conversation" in str(data))
    providers = data.get("providers")
    named = providers if isinstance(providers, list) else [providers]
    promptfoo += 2 * any(isinstance(name, str) and ":" in name for name in named)
    variables = [test.get("vars") for test in listed]
    agentv += 3 * any(isinstance(v, dict) and "expected_output" in v for v in variables)
    return "agentv" if agentv > promptfoo else "promptfoo"


def _has_bare_text(test: dict[Any, Any]) -> bool:
    assertions = test.get("assert")
    return isinstance(assertions, list) and any(isinstance(item, str) for item in assertions)


def _items(data: Any, item: dict[Any, Any], name: str) -> Format | None:
    keys = {str(key) for key in item}
    if _no_suite(keys) or is_messages(data):
        return None
    listed = data.get("data", data.get("items")) if isinstance(data, dict) else None
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        keys, item = {str(key) for key in listed[0]}, listed[0]
    if {"query", "should_trigger"} <= keys or "queries" in keys:
        return "anthropic"
    if "prompt" in keys and keys & {"expectations", "assertions", "expected_output", "eval_id"}:
        return "anthropic"
    metadata = item.get("metadata")
    if keys & _LANGFUSE_KEYS or (isinstance(metadata, dict) and "history" in metadata):
        return "langfuse"
    if keys & _CASE_KEYS:
        return "agentv"
    if "input" in keys and isinstance(item["input"], dict) and not is_messages(item["input"]):
        return "langfuse"
    if "input" in keys and ("expected_output" in keys or name.startswith("case")):
        return "agentv" if "id" in keys else "langfuse"
    return None


def _no_suite(keys: set[str]) -> str | None:
    return next((what for needed, what in _NO_SUITES if needed <= keys), None)


def _what_it_is(data: Any, item: dict[Any, Any]) -> str:
    keys = {str(key) for key in item}
    if (what := _no_suite(keys)) is not None:
        return f"not a suite but {what}"
    if is_messages(data):
        return "not a suite but a prompt: import the suite that names it"
    if "providers" in keys or "targets" in keys:
        return "not a suite but a list of providers: there are no tests in it"
    if keys and all(isinstance(value, str) for value in item.values()):
        return "not a suite but texts by name, such as feedback"
    known = f" (its keys: {', '.join(sorted(keys)[:8])})" if keys else ""
    return f"not a suite that is known here{known}"
