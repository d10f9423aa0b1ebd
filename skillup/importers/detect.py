"""Which tool a file comes from, by what is in it; and what it is if it is no suite at all."""

from __future__ import annotations

from typing import Any, Literal

from skillup.errors import UsageError
from skillup.importers.messages import is_messages
from skillup.importers.source import SourceFile

Format = Literal["agentv", "vibecheck", "promptfoo", "anthropic", "langfuse"]

_LOOKED_FOR = (
    "`tests` or `scenarios` (promptfoo, AgentV), `evals` with `prompt` and `checks` (vibecheck) or "
    "with `prompt` alone (Anthropic), a list of `query` and `should_trigger` (Anthropic), items "
    "with `input` and `expected_output` (Langfuse)"
)
# AgentV's suites have become a superset of promptfoo's: the signs of both are counted.
_PROMPTFOO_KEYS = {
    "defaultTest", "evaluateOptions", "assertionTemplates", "outputPath", "derivedMetrics",
    "nunjucksFilters", "commandLineOptions", "redteam", "sharing", "writeLatestResults",
}  # fmt: skip
_AGENTV_KEYS = {
    "default_test", "evaluate_options", "environment", "execution", "workspace", "input",
    "input_files", "assertions", "assert", "evalcases", "target", "targets", "name",
}  # fmt: skip
_CASE_KEYS = {
    "assert", "assertions", "criteria", "expected_outcome", "outcome", "turns", "vars",
    "evaluators", "rubrics", "input_messages", "input_files",
}  # fmt: skip
_AGENTV_TEST_KEYS = (_CASE_KEYS - {"assert", "vars"}) | {
    "id", "input", "mode", "execution", "conversation_id", "depends_on", "expected_output",
}  # fmt: skip
_LANGFUSE_KEYS = {"expectedOutput", "datasetId", "datasetName", "dataset_id", "dataset_name"}

_NO_SUITES: tuple[tuple[set[str], str], ...] = (
    ({"test_id", "score"}, "results of an AgentV run"),
    ({"test_id", "message_index"}, "a transcript that AgentV imported"),
    ({"test_id", "output", "fixture_id"}, "recorded answers for AgentV's replay"),
    ({"test_id", "grader", "range"}, "expected scores of AgentV's graders"),
    ({"text", "trace"}, "a recorded trace"),
    ({"type", "payload"}, "an agent's session file (see `skillup session`)"),
    ({"sessionId", "type"}, "an agent's session file (see `skillup session`)"),
    ({"expectations", "summary"}, "a grading, that is a result"),
    ({"assertion_results"}, "a grading, that is a result"),
    ({"run_summary"}, "benchmark results"),
    ({"winner", "reasoning"}, "the comparison of two results"),
    ({"comparison_summary"}, "the analysis of a comparison"),
    ({"reviews", "status"}, "reviewers' feedback on results"),
    ({"iterations", "current_best"}, "the history of a skill's improvement"),
    ({"tool_calls", "total_tool_calls"}, "metrics of a run"),
    ({"total_tokens", "duration_ms"}, "the timing of a run"),
    ({"results", "stats"}, "results of a promptfoo run"),
    ({"question_id", "turns"}, "MT-bench questions, which are not read"),
    ({"config", "tests"}, "a scenario without its suite: import the suite that names it"),
)


def detect(sources: list[SourceFile]) -> Format:
    """The tool that `sources` (one file) come from.

    Raises UsageError with what the file is instead, or with everything that was looked for.
    """
    path, data = sources[0].path, sources[0].data
    item = data[0] if isinstance(data, list) and data else data
    item = item if isinstance(item, dict) else {}
    found = _suite(data) or _items(data, item, path.name)
    if found is not None:
        return found
    raise UsageError(
        f"{path}: {_what_it_is(data, item)}",
        hint=f"looked for {_LOOKED_FOR}; --from says which tool it is",
    )


def _suite(data: Any) -> Format | None:
    if not isinstance(data, dict):
        return None
    evals = data.get("evals")
    if isinstance(evals, list):
        checked = any(isinstance(entry, dict) and "checks" in entry for entry in evals)
        return "vibecheck" if checked or "metadata" in data else "anthropic"
    if not {"tests", "scenarios", "evalcases"} & set(data):
        return None
    tests = data.get("tests", data.get("evalcases"))
    listed = [test for test in tests if isinstance(test, dict)] if isinstance(tests, list) else []
    keys = {str(key) for test in listed for key in test}
    providers = data.get("providers")
    named = providers if isinstance(providers, list) else [providers]
    promptfoo = 3 * len(_PROMPTFOO_KEYS & set(data))
    promptfoo += 2 * bool({"options", "metadata"} & keys) + 2 * ("_conversation" in str(data))
    promptfoo += 2 * any(isinstance(name, str) and ":" in name for name in named)
    agentv = 2 * len(_AGENTV_KEYS & set(data)) + 2 * len(_AGENTV_TEST_KEYS & keys)
    agentv += 3 * any(isinstance(a, str) for test in listed for a in _listed(test.get("assert")))
    agentv += 3 * any("expected_output" in (test.get("vars") or ()) for test in listed)
    return "agentv" if agentv > promptfoo else "promptfoo"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _items(data: Any, item: dict[Any, Any], name: str) -> Format | None:
    if _no_suite(item) or is_messages(data):
        return None
    listed = _listed(data.get("data", data.get("items"))) if isinstance(data, dict) else []
    item = listed[0] if listed and isinstance(listed[0], dict) else item
    keys = set(item)
    if {"query", "should_trigger"} <= keys or "queries" in keys:
        return "anthropic"
    if "prompt" in keys and keys & {"expectations", "assertions", "expected_output", "eval_id"}:
        return "anthropic"
    metadata = item.get("metadata")
    if keys & _LANGFUSE_KEYS or (isinstance(metadata, dict) and "history" in metadata):
        return "langfuse"
    if keys & _CASE_KEYS:
        return "agentv"
    given = item.get("input")
    if isinstance(given, dict) and not is_messages(given):
        return "langfuse"
    if "input" in keys and ("expected_output" in keys or name.startswith("case")):
        return "agentv" if "id" in keys else "langfuse"
    return None


def _no_suite(item: dict[Any, Any]) -> str | None:
    return next((what for needed, what in _NO_SUITES if needed <= set(item)), None)


def _what_it_is(data: Any, item: dict[Any, Any]) -> str:
    keys = sorted(map(str, item))
    if what := _no_suite(item):
        return f"not a suite but {what}"
    if is_messages(data):
        return "not a suite but a prompt: import the suite that names it"
    if "providers" in keys or "targets" in keys:
        return "not a suite but a list of providers: there are no tests in it"
    if keys and all(isinstance(value, str) for value in item.values()):
        return "not a suite but texts by name, such as feedback"
    return "not a suite that is known here" + (
        f" (its keys: {', '.join(keys[:8])})" if keys else ""
    )
