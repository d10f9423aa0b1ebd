"""vibecheck: prompts, each with checks on one answer."""

from __future__ import annotations

from typing import Any

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers.source import SourceFile
from skillup.importers.values import SourceValue, TemplateScope
from skillup.importers.write import CaseDraft, SuiteDraft, slug

Check = dict[str, Any]

EXPLANATIONS = {
    "model": "choose the agent and its model with --engine and --model",
    "authorization_token": "left out: secrets do not belong into a suite",
}
_KNOWN = "`match`, `not_match`, `min_tokens`, `max_tokens`, `semantic`, `llm_judge` and `or`"
_GROUPS = {"or": "any_of", "any_of": "any_of", "ors": "any_of", "all_of": "all_of"}
_GLOBS = {"match": "glob", "not_match": "not_glob"}


def convert(sources: list[SourceFile]) -> SuiteDraft:
    """The suite in a source. Raises InvalidFilesError with every place that is not vibecheck's."""
    if len(sources) > 1:
        raise UsageError(f"{sources[0].path}: vibecheck's suites are not JSON lines")
    top = SourceValue.top(sources[0])
    metadata, problems = top.get("metadata"), list[Problem]()
    draft = SuiteDraft(metadata.get("name").text() or sources[0].path.stem)
    draft.description = metadata.get("description").text()
    if threads := metadata.get("threads").number():
        draft.parallelism = max(1, int(threads))
    server = metadata.get("mcp_server")
    if url := server.get("url"):
        named = server.get("name").text() or "mcp"
        endpoint = {"mode": "real", "transport": "http", "endpoint": url.text()}
        draft.mcp_servers.append({"name": named, **endpoint})
    for number, node in enumerate(top.get("evals").elements(), start=1):
        scope = TemplateScope()
        node = node.with_scope(scope)
        if missing := _missing(node, "prompt", "checks"):
            problems.append(node.problem(f"an eval without `{missing}`", "add it"))
            continue
        checks = _checks(node.get("checks"), problems)
        prompt = node.get("prompt").message()
        turn = {"content": prompt, "assertions": checks}
        case = CaseDraft(node, slug(prompt, f"eval-{number}"), [turn])
        case.conversation = any("prompt" in check for check in checks)
        case.system = metadata.get("system_prompt").with_scope(scope).text()
        case.vars = {name: later.default or later.original for name, later in scope.needed.items()}
        draft.cases.append(case)
    if problems:
        raise InvalidFilesError(problems)
    return draft


def _missing(node: SourceValue, *names: str) -> str | None:
    return next((name for name in names if not node.get(name)), None)


def _checks(node: SourceValue, problems: list[Problem]) -> list[Check]:
    if node.value in ([], {}):
        problems.append(node.problem("there are no checks", "add one"))
    found: list[Check] = []
    for item in node.elements():
        value = item.value
        if not isinstance(value, dict) or not value:
            problems.append(item.problem("not a check", f"the checks are {_KNOWN}"))
        elif "type" in value:
            old = "`type:` is an older format of vibecheck"
            problems.append(item.problem(old, f"name the check itself: {_KNOWN}"))
        else:
            own = [entry for entry in item.items() if entry[0] not in ("prompt", "checks")]
            found += [made for key, inner in own if (made := _check(key, inner, problems))]
            if "prompt" in value or "checks" in value:
                found += _follow_up(item, problems)
    return found


def _follow_up(node: SourceValue, problems: list[Problem]) -> list[Check]:
    """A prompt among the checks: it is sent if one beside it failed, and its own checks decide."""
    if missing := _missing(node, "prompt", "checks"):
        problems.append(node.problem(f"a follow-up without `{missing}`", "add it"))
        return []
    checks = _checks(node.get("checks"), problems)
    return [{"prompt": node.get("prompt").message(), "assertions": checks}]


def _check(key: str, node: SourceValue, problems: list[Problem]) -> Check | None:
    if key in _GROUPS:
        options = _checks(node, problems)
        return {_GROUPS[key]: options} if options else None
    if key in _GLOBS:
        texts = node.texts()
        return {_GLOBS[key]: texts[0] if len(texts) == 1 else texts}
    wrong, fix = "", "add it"
    if key in ("min_tokens", "max_tokens"):
        count = _number(node)
        if count is not None:
            what = "vibecheck counts the tokens of the text"
            node.changed(what, "here the engine's count of output tokens")
            return {key: int(count)}
        wrong, fix = "not a number of tokens", "write a whole number"
    elif key == "semantic":
        least = _number(node.get("threshold"))
        if missing := _missing(node, "expected", "threshold"):
            wrong = f"`semantic` without `{missing}`"
        elif least is not None and least <= 1:
            return {"similar": {"to": node.get("expected").text(), "threshold": least}}
        else:
            wrong, fix = "not a threshold", "write a number from 0 to 1"
    elif key == "llm_judge":
        criteria = node.get("criteria") if isinstance(node.value, dict) else node
        if criteria:
            return {"rubric": criteria.text()}
        wrong = "`llm_judge` without `criteria`"
    else:
        wrong, fix = f"`{key}` is not a check", f"the checks are {_KNOWN}"
    problems.append(node.problem(wrong, fix))
    return None


def _number(node: SourceValue) -> float | int | None:
    value = node.take()
    number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return value if number else None
