"""Anthropic's skill evals: `evals.json`, one eval's metadata, and trigger queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers import files
from skillup.importers.source import SourceFile, open_sources
from skillup.importers.values import SourceValue
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_SKILL_FILE = "SKILL.md"
_EVALS = "evals.json"


def convert(sources: list[SourceFile]) -> SuiteDraft:
    """The suite in a source: evals, one eval, or queries that should (not) trigger the skill."""
    if len(sources) > 1:
        raise UsageError(f"{sources[0].path}: Anthropic's evals are not JSON lines")
    path, top = sources[0].path, SourceValue.top(sources[0])
    directory = path.resolve().parent
    # The skill that the evals belong to: where they lie, or one or two levels up.
    places = (directory, *directory.parents[:2])
    skill_directory = next((p for p in places if (p / _SKILL_FILE).is_file()), None)
    named = top.get("skill_name")
    skill = named.text() or _skill_beside(path) or (skill_directory.name if skill_directory else "")
    draft = SuiteDraft(_suite_name(path, skill), top.get("description").text())
    if skill_directory is not None:
        draft.skills.append(skill_directory)
    elif named:
        named.changed(
            f"no {_SKILL_FILE} of `{skill}` is near this file",
            "the suite names no skill: add it under `skills`",
        )
    base = skill_directory or (directory.parent if directory.name == "evals" else directory)
    for number, node in enumerate((top.get("evals", "queries") or top).elements(), start=1):
        draft.cases.append(
            _query(node, skill) if node.get("query") else _eval(node, number, skill, base)
        )
    return draft


def _suite_name(path: Path, skill: str) -> str:
    if path.name == _EVALS or path.name.casefold() == f"{skill}.{_EVALS}".casefold():
        return skill or slug(path.stem)
    return f"{skill}-{slug(path.stem)}" if skill else slug(path.stem)


def _skill_beside(path: Path) -> str:
    """The skill's name where the file itself does not say it: from an evals.json beside it."""
    beside = path.resolve().parent / _EVALS
    if not beside.is_file() or beside == path.resolve():
        return ""
    try:
        return SourceValue.top(open_sources(beside)[0]).get("skill_name").text()
    except InvalidFilesError:
        return ""  # that file's trouble is not this one's


def _trigger(node: SourceValue, skill: str, wanted: bool) -> dict[str, Any]:
    if skill:
        return {"skill_used" if wanted else "skill_not_used": skill}
    node.changed(
        "the file does not say which skill", "any skill counts: name the one that is meant"
    )
    return {"tool_called" if wanted else "tool_not_called": {"kind": "skill"}}


def _query(node: SourceValue, skill: str) -> CaseDraft:
    query = node.get("query")
    text = query.text()
    if not text.strip():
        raise query.refuse("an empty query", "write what the user says")
    wanted = node.get("should_trigger").take() is not False
    turn = {"content": query.message(), "assertions": [_trigger(node, skill, wanted)]}
    case_id = node.get("id", "name").text() or slug(text)
    return CaseDraft(node, case_id, [turn], tags=["trigger" if wanted else "no-trigger"])


def _eval(node: SourceValue, number: int, skill: str, base: Path) -> CaseDraft:
    prompt = node.get("prompt")
    if not prompt.text().strip():
        raise (prompt or node).refuse("an eval without a prompt", "write what the user says")
    # A number alone says too little in a report.
    label = node.get("id", "eval_id").text() or str(number)
    checks: list[dict[str, Any]] = []
    if should := node.get("should_trigger"):
        checks.append(_trigger(node, skill, should.take() is not False))
    listed = [*node.get("expectations").elements(), *node.get("assertions").elements()]
    checks += [{"rubric": text} for item in listed if (text := _statement(item))]
    expected = node.get("expected_output").text()
    turn = {"content": prompt.message(), "expected_output": expected, "assertions": checks}
    case = CaseDraft(
        node,
        f"eval-{label}" if label.isdigit() else label,
        [turn],
        title=node.get("eval_name", "name", "title").text(),
        description=node.get("description").text(),
        tags=node.get("tags").texts(),
    )
    for item in node.get("files").elements():
        if item.text():
            files.place(item.text(), item, case.placed, base)
    return case


def _statement(item: SourceValue) -> str:
    if not isinstance(item.value, dict):
        return item.text()
    text = item.get("text", "description", "assertion", "outcome", "value")
    if not text:
        item.drop("an expectation without a text")
    return text.text()
