"""vibecheck: prompts, each with checks on one answer."""

from __future__ import annotations

from typing import Any

from skillup.importers.source import SourceValue, TemplateScope
from skillup.importers.write import CaseDraft, SuiteDraft, slug

Check = dict[str, Any]

EXPLANATIONS = {
    "model": "choose the agent and its model with --engine and --model",
    "authorization_token": "left out: secrets do not belong into a suite",
}
_GROUPS = {"or": "any_of", "any_of": "any_of", "ors": "any_of", "all_of": "all_of"}
_GLOBS = {"match": "glob", "not_match": "not_glob"}


def convert(tops: list[SourceValue]) -> SuiteDraft:
    """The suite in a file. Raises InvalidFilesError for an eval that is none of vibecheck's."""
    top = tops[0].with_scope(TemplateScope(empties=False))
    metadata = top.get("metadata")
    draft = SuiteDraft(metadata.get("name").text() or top.source.path.stem)
    draft.description = metadata.get("description").text()
    if threads := metadata.get("threads").number():
        draft.parallelism = max(1, int(threads))
    server = metadata.get("mcp_server")
    if url := server.get("url"):
        named = server.get("name").text() or "mcp"
        endpoint = {"mode": "real", "transport": "http", "endpoint": url.text()}
        draft.mcp_servers.append({"name": named, **endpoint})
    for number, node in enumerate(top.get("evals").elements(), start=1):
        prompt, checks = _prompt_and_checks(node)
        case = CaseDraft(node, slug(prompt, f"eval-{number}"))
        case.turns.append({"content": prompt, "assertions": checks})
        case.conversation = any("prompt" in check for check in checks)
        case.system = metadata.get("system_prompt").text()
        draft.cases.append(case)
    return draft


def _prompt_and_checks(node: SourceValue) -> tuple[str, list[Check]]:
    """Of an eval, or of a follow-up among the checks: sent if one beside it failed."""
    for name in ("prompt", "checks"):
        if not node.get(name).value:
            raise (node.get(name) or node).refuse(f"there is no `{name}` here", "add it")
    return node.get("prompt").text(), _checks(node.get("checks"))


def _checks(node: SourceValue) -> list[Check]:
    found: list[Check] = []
    for item in node.elements():
        if not isinstance(item.value, dict):
            raise item.refuse("not a check", 'write a mapping: `match: "*text*"`')
        for key, inner in item.items():
            if key not in ("prompt", "checks"):
                found += _check(key, inner)
        if "prompt" in item.value:
            prompt, checks = _prompt_and_checks(item)
            found.append({"prompt": prompt, "assertions": checks})
    return found


def _check(key: str, node: SourceValue) -> list[Check]:
    """One check; none, and a note, for what is none of vibecheck's."""
    if key in _GROUPS:
        return [{_GROUPS[key]: _checks(node)}]
    if key in _GLOBS:
        texts = node.texts()
        return [{_GLOBS[key]: texts[0] if len(texts) == 1 else texts}]
    if key in ("min_tokens", "max_tokens") and (count := node.number()) is not None:
        what = "vibecheck counts the tokens of the text"
        node.changed(what, "here the engine's count of output tokens")
        return [{key: int(count)}]
    if key == "semantic":
        least, text = node.get("threshold").number(), node.get("expected").text()
        if least is None or not 0 <= least <= 1 or not text:
            raise node.refuse("`semantic` needs `expected` and a `threshold` from 0 to 1", "add it")
        return [{"similar": {"to": text, "threshold": least}}]
    if key == "llm_judge" and (criteria := node.inner("criteria")):
        return [{"rubric": criteria.text()}]
    node.drop(f"`{key}` is not a check that can be read")
    return []
