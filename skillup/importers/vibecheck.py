"""vibecheck: prompts, each with checks on one answer."""

from __future__ import annotations

from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.draft import (
    CaseDraft,
    SuiteDraft,
    TurnDraft,
    slug,
)
from skillup.importers.promptfoo.values import SourceValue, TemplateScope
from skillup.importers.source import SourceFile

Check = dict[str, Any]

EXPLANATIONS = {
    "model": "choose the agent and its model with --engine and --model",
    "authorization_token": "left out: secrets do not belong into a suite",
}
_OLD = "`type:` is an older format of vibecheck"
_KNOWN = "`match`, `not_match`, `min_tokens`, `max_tokens`, `semantic`, `llm_judge` and `or`"
_GROUPS = {"or": "any_of", "any_of": "any_of", "ors": "any_of", "all_of": "all_of"}


def convert(source: SourceFile) -> SuiteDraft:
    """The suite in `source`. Raises InvalidFilesError with every place that is not vibecheck's."""
    top = SourceValue.top(source)
    problems: list[Problem] = []
    metadata = top.get("metadata")
    draft = SuiteDraft(source.path.stem)
    system = None
    if metadata is not None:
        name = metadata.get("name")
        draft.name = name.text() if name is not None else draft.name
        system = metadata.get("system_prompt")
        if (described := metadata.get("description")) is not None:
            draft.description = described.text()
        if (threads := metadata.get("threads")) is not None and (count := threads.number()):
            draft.parallelism = max(1, int(count))
        _mcp(metadata.get("mcp_server"), draft)
    evals = top.get("evals")
    for number, node in enumerate(evals.elements() if evals is not None else [], start=1):
        case = _case(node, number, system, problems)
        if case is not None:
            draft.cases.append(case)
    if problems:
        raise InvalidFilesError(problems)
    return draft


def _mcp(node: SourceValue | None, draft: SuiteDraft) -> None:
    if node is None:
        return
    url, name = node.get("url"), node.get("name")
    if url is None:
        node.note("an MCP server without an address", "left out")
        return
    named = name.text() if name is not None else "mcp"
    server = {"name": named, "mode": "real", "transport": "http", "endpoint": url.text()}
    draft.mcp_servers.append(server)


def _case(
    node: SourceValue, number: int, system: SourceValue | None, problems: list[Problem]
) -> CaseDraft | None:
    scope = TemplateScope()
    node = node.with_scope(scope)
    prompt, checks = node.get("prompt"), node.get("checks")
    if prompt is None or checks is None:
        missing = "prompt" if prompt is None else "checks"
        problems.append(node.problem(f"an eval without `{missing}`", "add it"))
        return None
    found = _checks(checks, problems)
    said = prompt.message()
    case = CaseDraft(node, slug(said, f"eval-{number}"), [TurnDraft(said, found)])
    case.conversation = any("prompt" in check for check in found)
    if system is not None:
        case.system = system.with_scope(scope).text()
    case.vars = {name: later.default or later.original for name, later in scope.needed.items()}
    return case


def _checks(node: SourceValue, problems: list[Problem]) -> list[Check]:
    if node.value in ([], {}):
        problems.append(node.problem("there are no checks", "add one"))
    if isinstance(node.value, dict):
        return [check for key, item in node.items() if (check := _check(key, item, problems))]
    return [made for item in node.elements() for made in _item(item, problems)]


def _item(node: SourceValue, problems: list[Problem]) -> list[Check]:
    if isinstance(node.value, dict) and "type" in node.value:
        problems.append(node.problem(_OLD, f"name the check itself: {_KNOWN}"))
        return []
    if not isinstance(node.value, dict) or not node.value:
        problems.append(node.problem("not a check", f"the checks are {_KNOWN}"))
        return []
    made = [
        check
        for key, item in node.items()
        if key not in ("prompt", "checks") and (check := _check(key, item, problems))
    ]
    return made + _follow_up(node, problems)


def _follow_up(node: SourceValue, problems: list[Problem]) -> list[Check]:
    """A prompt among the checks: it is sent if one beside it failed, and its own checks decide."""
    prompt, checks = node.get("prompt"), node.get("checks")
    if prompt is None or checks is None:
        if prompt is not None or checks is not None:
            missing = "prompt" if prompt is None else "checks"
            problems.append(node.problem(f"a follow-up without `{missing}`", "add it"))
        return []
    return [{"prompt": prompt.message(), "assertions": _checks(checks, problems)}]


def _check(key: str, node: SourceValue, problems: list[Problem]) -> Check | None:
    if key in _GROUPS:
        options = [made for item in node.elements() for made in _item(item, problems)]
        return {_GROUPS[key]: options} if options else None
    if key in ("match", "not_match"):
        texts = node.texts()
        name = "glob" if key == "match" else "not_glob"
        return {name: texts[0] if len(texts) == 1 else texts}
    if key in ("min_tokens", "max_tokens"):
        return _tokens(key, node, problems)
    if key == "semantic":
        return _semantic(node, problems)
    if key == "llm_judge":
        criteria = node.get("criteria") if isinstance(node.value, dict) else node
        if criteria is None:
            problems.append(node.problem("`llm_judge` without `criteria`", "add it"))
            return None
        return {"rubric": criteria.text()}
    problems.append(node.problem(f"`{key}` is not a check", f"the checks are {_KNOWN}"))
    return None


def _tokens(key: str, node: SourceValue, problems: list[Problem]) -> Check | None:
    count = node.take()
    if isinstance(count, bool) or not isinstance(count, int | float) or count < 0:
        problems.append(node.problem("not a number of tokens", "write a whole number"))
        return None
    node.changed(
        "vibecheck counts the tokens of the text", "here the engine's count of output tokens"
    )
    return {key: int(count)}


def _semantic(node: SourceValue, problems: list[Problem]) -> Check | None:
    expected, threshold = node.get("expected"), node.get("threshold")
    if expected is None or threshold is None:
        missing = "expected" if expected is None else "threshold"
        problems.append(node.problem(f"`semantic` without `{missing}`", "add it"))
        return None
    least = threshold.take()
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        problems.append(threshold.problem("not a threshold", "write a number from 0 to 1"))
        return None
    return {"similar": {"to": expected.text(), "threshold": least}}
