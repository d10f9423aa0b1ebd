"""Which tool a file comes from, by what is in it."""

from __future__ import annotations

from typing import Any, Literal

from skillup.errors import UsageError
from skillup.importers.messages import is_messages
from skillup.importers.source import SourceFile

Format = Literal["agentv", "vibecheck", "promptfoo", "anthropic", "langfuse"]

_LOOKED_FOR = (
    "`tests` (promptfoo, AgentV), `evals` with `prompt` and `checks` (vibecheck) or with `prompt` "
    "alone (Anthropic), a list of `query` and `should_trigger` (Anthropic), items with `input` and "
    "`expected_output` (Langfuse)"
)
# AgentV's suites have become a superset of promptfoo's: these are signs of promptfoo alone.
_PROMPTFOO_KEYS = {
    "defaultTest", "evaluateOptions", "assertionTemplates", "outputPath", "derivedMetrics",
    "nunjucksFilters", "commandLineOptions", "redteam", "sharing", "writeLatestResults",
}  # fmt: skip
_CASE_KEYS = {
    "assert", "assertions", "criteria", "expected_outcome", "outcome", "turns", "vars", "rubrics",
    "input_files",
}  # fmt: skip
_AGENTV_KEYS = (_CASE_KEYS - {"vars"}) | {
    "default_test", "evaluate_options", "environment", "execution", "workspace", "input",
    "target", "targets", "name",
}  # fmt: skip
_AGENTV_TEST_KEYS = (_CASE_KEYS - {"assert", "vars"}) | {
    "id", "input", "mode", "execution", "conversation_id", "depends_on", "expected_output",
}  # fmt: skip
_LANGFUSE_KEYS = {"expectedOutput", "datasetId", "datasetName", "dataset_id", "dataset_name"}
_RESULT_KEYS = {
    "score", "trace", "assertion_results", "summary", "range", "message_index", "fixture_id",
    "question_id", "config",
}  # fmt: skip
"""Of results, recordings and parts of suites, whose other keys are a case's."""


def detect(sources: list[SourceFile]) -> Format:
    """The tool that `sources` (one file) come from. Raises UsageError if it is no suite."""
    path, data = sources[0].path, sources[0].data
    found = _suite(data) if isinstance(data, dict) else None
    listed = data
    if found is None and isinstance(data, dict):
        listed = data.get("data", data.get("items"))
    item = listed[0] if isinstance(listed, list) and listed else data
    found = found or (_item(item, path.name) if isinstance(item, dict) else None)
    if found is None:
        keys = ", ".join(sorted(map(str, item))[:8]) if isinstance(item, dict) else ""
        what = "not a suite that is known here" + (f" (its keys: {keys})" if keys else "")
        hint = f"looked for {_LOOKED_FOR}; --from says which tool it is"
        raise UsageError(f"{path}: {what}", hint=hint)
    return found


def _suite(data: dict[Any, Any]) -> Format | None:
    evals = data.get("evals")
    if isinstance(evals, list):
        checked = any(isinstance(entry, dict) and "checks" in entry for entry in evals)
        return "vibecheck" if checked or "metadata" in data else "anthropic"
    if "tests" not in data or "config" in data:
        return None
    tests = data["tests"] if isinstance(data["tests"], list) else []
    listed = [test for test in tests if isinstance(test, dict)]
    keys = {str(key) for test in listed for key in test}
    providers = data.get("providers")
    named = providers if isinstance(providers, list) else [providers]
    promptfoo = 3 * len(_PROMPTFOO_KEYS & set(data))
    promptfoo += 2 * bool({"options", "metadata"} & keys) + 2 * ("_conversation" in str(data))
    promptfoo += 2 * any(isinstance(name, str) and ":" in name for name in named)
    agentv = 2 * len(_AGENTV_KEYS & set(data)) + 2 * len(_AGENTV_TEST_KEYS & keys)
    asserted = [test["assert"] for test in listed if isinstance(test.get("assert"), list)]
    agentv += 3 * any(isinstance(item, str) for one in asserted for item in one)
    agentv += 3 * any("expected_output" in (test.get("vars") or ()) for test in listed)
    return "agentv" if agentv > promptfoo else "promptfoo"


def _item(item: dict[Any, Any], name: str) -> Format | None:
    keys = set(item)
    if keys & _RESULT_KEYS or is_messages(item):
        return None
    if {"query", "should_trigger"} <= keys or "queries" in keys:
        return "anthropic"
    if "prompt" in keys and keys & {"expectations", "assertions", "expected_output", "eval_id"}:
        return "anthropic"
    metadata = item.get("metadata")
    if keys & _LANGFUSE_KEYS or (isinstance(metadata, dict) and "history" in metadata):
        return "langfuse"
    if keys & _CASE_KEYS:
        return "agentv"
    if "input" in keys and ("expected_output" in keys or isinstance(item["input"], dict)):
        return "agentv" if "id" in keys and not isinstance(item["input"], dict) else "langfuse"
    return "agentv" if name.startswith("case") and "input" in keys else None
