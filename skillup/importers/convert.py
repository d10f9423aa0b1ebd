"""`skillup import`: from files of other tools to suites on disk, with a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from skillup.dataclass import mutable
from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers.promptfoo import suite
from skillup.importers.source import SourceFile, SourceValue, TemplateScope, open_source
from skillup.importers.write import CaseDraft, SuiteDraft, lay_out, slug, unique_name, write_files
from skillup.load.datasets import EXPECTED, HISTORY, MESSAGE, NotAnItemError, read_item
from skillup.load.discover import ALLOW, SKILL_FILE
from skillup.load.suites import load_paths

Checks = list[dict[str, Any]]


@mutable
class Imported:
    """One file that has become a suite in `directory`."""

    source: Path
    format: str
    draft: SuiteDraft
    directory: Path
    notes: list[Problem]
    """Each of the severity `lost` or `changed`."""


def import_files(
    paths: Sequence[Path], out: Path, *, format_: str | None = None, force: bool = False
) -> list[Imported]:
    """Write `paths` as suites: one file into `out`, several into folders of it."""
    names: set[str] = set()
    imported: list[Imported] = []
    files: dict[Path, str | Path] = {}
    for path in paths:
        found, draft, notes = convert_file(path, format_)
        folder = unique_name(slug(draft.name, "suite"), names)
        if folder != slug(draft.name, "suite"):
            draft.name = folder
        directory = out / folder if len(paths) > 1 else out
        imported.append(Imported(path, found, draft, directory, notes))
        files |= lay_out(draft, directory)
    write_files(files, force=force)
    fix = "run it with --trust, or import it into that project"
    for item in imported:
        errors = load_paths([item.directory / "eval.yaml"]).errors
        # What it reads outside of its project is noted; a suite that does not load is our defect.
        if wrong := [problem for problem in errors if problem.fix != ALLOW]:
            raise InvalidFilesError(wrong)
        item.notes += [replace(problem, fix=fix, severity="changed") for problem in errors]
    return imported


def convert_file(path: Path, format_: str | None) -> tuple[str, SuiteDraft, list[Problem]]:
    """The file as a suite, not yet written, and the notes on it."""
    source = open_source(path)
    found = format_ or detect(source)
    convert, explanations = _FORMATS[found]
    try:
        draft = convert(SourceValue.top(source))
    except RecursionError:
        raise UsageError(f"{path}: the files that it names lead back to it") from None
    if not draft.cases:
        raise UsageError(f"{path}: there is no case in it", hint="it lists nothing to import")
    taken: set[str] = set()
    for case in draft.cases:
        given = case.id
        case.id = unique_name(given, taken)
        if case.id != given:
            case.node.changed(f"a second case with the id `{given}`", f"now `{case.id}`")
    read = [source, *source.related.values()]
    return found, draft, [note for one in read for note in one.notes(explanations)]


# Which tool a file comes from, by what is in it.

_LOOKED_FOR = (
    "looked for `tests` (promptfoo, AgentV), `evals` with `prompt` and `checks` (vibecheck) or "
    "with `prompt` alone (Anthropic), a list of `query` and `should_trigger` (Anthropic), items "
    "with `input` and `expected_output` (Langfuse); --from says which tool it is"
)
_CASE_KEYS = {
    "assertions", "criteria", "expected_outcome", "outcome", "turns", "rubrics", "input_files",
}  # fmt: skip
# AgentV's suites have become a superset of promptfoo's: these are signs of the one or the other.
_PROMPTFOO_KEYS = {
    "defaultTest", "evaluateOptions", "assertionTemplates", "outputPath", "derivedMetrics",
    "nunjucksFilters", "commandLineOptions", "redteam", "sharing", "writeLatestResults",
}  # fmt: skip
_AGENTV_KEYS = _CASE_KEYS | {
    "default_test", "evaluate_options", "environment", "execution", "workspace", "input", "target",
    "targets", "name", "id", "mode", "conversation_id", "depends_on", "expected_output",
}  # fmt: skip
_LANGFUSE_KEYS = {"expectedOutput", "datasetId", "datasetName", "dataset_id", "dataset_name"}
_RESULT_KEYS = {
    "score", "trace", "assertion_results", "summary", "range", "message_index", "fixture_id",
    "question_id", "config", "role",
}  # fmt: skip
"""Of results, recordings and parts of suites, whose other keys are a case's."""


def detect(source: SourceFile) -> str:
    """The tool that the file comes from. Raises UsageError if it is no suite."""
    path, data = source.path, source.data
    listed = data.get("items", data.get("data")) if isinstance(data, dict) else data
    item = listed[0] if isinstance(listed, list) and listed else data
    found = _suite(data) if isinstance(data, dict) else None
    if found is None and isinstance(item, dict):
        found = _item(item, path.name)
    if found is None:
        keys = ", ".join(sorted(map(str, item))[:8]) if isinstance(item, dict) else ""
        what = "not a suite that is known here" + (f" (its keys: {keys})" if keys else "")
        raise UsageError(f"{path}: {what}", hint=_LOOKED_FOR)
    return found


def _suite(data: dict[Any, Any]) -> str | None:
    evals = data.get("evals")
    if isinstance(evals, list):
        checked = any(isinstance(entry, dict) and "checks" in entry for entry in evals)
        return "vibecheck" if checked or "metadata" in data else "anthropic"
    if "tests" not in data or "config" in data:
        return None
    tests = data["tests"] if isinstance(data["tests"], list) else []
    listed = [test for test in tests if isinstance(test, dict)]
    keys = {str(key) for test in listed for key in test}
    if _PROMPTFOO_KEYS & set(data) or "options" in keys:
        return "promptfoo"
    asserted = [test["assert"] for test in listed if isinstance(test.get("assert"), list)]
    texts = any(isinstance(item, str) for one in asserted for item in one)
    variables = [test["vars"] for test in listed if isinstance(test.get("vars"), dict)]
    expected = any("expected_output" in one for one in variables)
    is_agentv = _AGENTV_KEYS & (set(data) | keys) or texts or expected
    return "agentv" if is_agentv else "promptfoo"


def _item(item: dict[Any, Any], name: str) -> str | None:
    keys = set(item)
    if keys & _RESULT_KEYS:
        return None
    if {"query", "should_trigger"} <= keys or "queries" in keys:
        return "anthropic"
    if "prompt" in keys and keys & {"expectations", "assertions", "expected_output", "eval_id"}:
        return "anthropic"
    given, metadata = item.get("input"), item.get("metadata")
    if keys & _LANGFUSE_KEYS or (isinstance(metadata, dict) and "history" in metadata):
        return "langfuse"
    if keys & (_CASE_KEYS | {"assert", "vars"}):
        return "agentv"
    if "expected_output" in keys and given and (isinstance(given, dict) or "id" not in keys):
        return "langfuse"
    is_case = "expected_output" in keys or name.startswith("case")
    return "agentv" if "input" in keys and is_case else None


# vibecheck: prompts, each with checks on one answer.

_GROUPS = {"or": "any_of", "any_of": "any_of", "ors": "any_of", "all_of": "all_of"}
_GLOBS = {"match": "glob", "not_match": "not_glob"}


def _vibecheck(top: SourceValue) -> SuiteDraft:
    """The suite in a file. Raises InvalidFilesError for an eval that is none of vibecheck's."""
    top = top.with_scope(TemplateScope(empties=False))
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
        prompt, checks = _vibecheck_eval(node)
        case = CaseDraft(node, slug(prompt, f"eval-{number}"))
        case.turns.append({"content": prompt, "assertions": checks})
        case.conversation = any("prompt" in check for check in checks)
        case.system = metadata.get("system_prompt").text()
        draft.cases.append(case)
    return draft


def _vibecheck_eval(node: SourceValue) -> tuple[str, Checks]:
    """Of an eval, or of a follow-up among the checks: sent if one beside it failed."""
    for name in ("prompt", "checks"):
        if not node.get(name).value:
            raise (node.get(name) or node).refuse(f"there is no `{name}` here", "add it")
    return node.get("prompt").text(), _vibecheck_checks(node.get("checks"))


def _vibecheck_checks(node: SourceValue) -> Checks:
    found: Checks = []
    for item in node.elements():
        if not isinstance(item.value, dict):
            raise item.refuse("not a check", 'write a mapping: `match: "*text*"`')
        for key, inner in item.items():
            if key not in ("prompt", "checks"):
                found += _vibecheck_check(key, inner)
        if "prompt" in item.value:
            prompt, checks = _vibecheck_eval(item)
            found.append({"prompt": prompt, "assertions": checks})
    return found


def _vibecheck_check(key: str, node: SourceValue) -> Checks:
    """One check; none, and a note, for what is none of vibecheck's."""
    if key in _GROUPS:
        return [{_GROUPS[key]: _vibecheck_checks(node)}]
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


# Anthropic's skill evals: `evals.json`, one eval's metadata, and trigger queries.


def _anthropic(top: SourceValue) -> SuiteDraft:
    """The suite in a file: evals, one eval, or queries that should (not) trigger the skill."""
    path = top.source.path
    directory = path.resolve().parent
    # The skill that the evals belong to: where they lie, or one or two levels up.
    places = (directory, *directory.parents[:2])
    skill_directory = next((p for p in places if (p / SKILL_FILE).is_file()), None)
    named = top.get("skill_name")
    skill = named.text() or (skill_directory.name if skill_directory else "")
    is_whole = skill and path.name.casefold() in ("evals.json", f"{skill}.evals.json".casefold())
    name = skill if is_whole else "-".join(filter(None, (skill, slug(path.stem))))
    draft = SuiteDraft(name, top.get("description").text())
    if skill_directory is not None:
        draft.skills.append(skill_directory)
    elif named:
        what = f"no {SKILL_FILE} of `{skill}` is near this file"
        named.changed(what, "the suite names no skill: add it under `skills`")
    base = skill_directory or (directory.parent if directory.name == "evals" else directory)
    for number, node in enumerate((top.get("evals", "queries") or top).elements(), start=1):
        draft.cases.append(_anthropic_case(node, number, skill, base))
    return draft


def _anthropic_case(node: SourceValue, number: int, skill: str, base: Path) -> CaseDraft:
    prompt = node.get("query", "prompt")
    text = prompt.text()
    if not text.strip():
        raise (prompt or node).refuse("there is no message in this eval", "write one")
    is_query, label = bool(node.get("query")), node.get("id", "eval_id").text()
    checks: Checks = []
    tags = node.get("tags").texts()
    if is_query or node.get("should_trigger"):
        used = node.get("should_trigger").take() is not False
        if skill:
            checks = [{"skill_used" if used else "skill_not_used": skill}]
        else:
            checks = [{"tool_called" if used else "tool_not_called": {"kind": "skill"}}]
            what = "the file does not say which skill"
            node.changed(what, "any skill counts: name the one that is meant")
        tags += ["trigger" if used else "no-trigger"] if is_query else []
    title = node.get("eval_name", "name", "title").text()
    if not label:
        label = title or slug(text) if is_query else str(number)
    for item in [*node.get("expectations").elements(), *node.get("assertions").elements()]:
        statement = item.inner("text", "description", "assertion", "outcome", "value")
        if not statement:
            item.drop("an expectation without a text")
        elif given := statement.text():
            checks.append({"rubric": given})
    expected = node.get("expected_output").text()
    turn = {"content": text, "expected_output": expected, "assertions": checks}
    # A number alone says too little in a report.
    case = CaseDraft(node, f"eval-{label}" if label.isdigit() else label, [turn], title=title)
    case.description, case.tags = node.get("description").text(), tags
    for item in node.get("files").elements():
        if item.text():
            item.place(item.text(), case.placed, base)
    return case


# Langfuse's dataset items: a message, what is expected, and the conversation before it.

_OF_A_MESSAGE = ("role", "content", "message_index", "tool_calls", "tool_call_id")


def _langfuse(top: SourceValue) -> SuiteDraft:
    """The dataset in a file: a list of items, or an export of the API."""
    draft = SuiteDraft(top.source.path.stem)
    for node in (top.get("items", "data") or top).elements():
        if node.get("status").text().upper() == "ARCHIVED":
            node.drop("an archived item")
            continue
        draft.name = node.get("datasetName", "dataset_name").text() or draft.name
        draft.cases.append(_langfuse_case(node, f"item-{len(draft.cases) + 1}"))
    return draft


def _langfuse_case(node: SourceValue, default_id: str) -> CaseDraft:
    """As `cases.datasets` reads the item; what that looks at is used."""
    try:
        item = read_item(node.value, 1, default_id)
    except NotAnItemError as error:
        raise (node.get("input") or node).refuse(*error.args) from None
    given, metadata = node.get("input"), node.get("metadata")
    expected = node.get("expected_output", "expectedOutput")
    read = [node.get("id"), metadata.get("message_index"), metadata.get("tags")]
    read.append(given.inner(*MESSAGE))
    if item.expected is not None:
        read.append(expected.get(*EXPECTED) or expected)
    for message in [*given.get(*HISTORY).elements(), *metadata.get(*HISTORY).elements()]:
        read += [message.get(key) for key in _OF_A_MESSAGE]
    for value in read:
        value.use()
    case = CaseDraft(node, item.id, tags=item.tags, message_index=item.message_index)
    case.turns.append({"content": item.query, "expected_output": item.expected or ""})
    case.history, case.system = item.history, item.system or ""
    return case


_VIBECHECKS = {
    "model": "choose the agent and its model with --engine and --model",
    "authorization_token": "left out: secrets do not belong into a suite",
}
_FORMATS: dict[str, tuple[Callable[[SourceValue], SuiteDraft], dict[str, str]]] = {
    "agentv": (partial(suite.convert, promptfoo=False), suite.EXPLANATIONS),
    "promptfoo": (partial(suite.convert, promptfoo=True), suite.EXPLANATIONS),
    "vibecheck": (_vibecheck, _VIBECHECKS),
    "anthropic": (_anthropic, {}),
    "langfuse": (_langfuse, {}),
}
"""Of each format its converter, and why some of its keys are not carried over."""
