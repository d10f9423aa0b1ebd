"""Anthropic's skill evals: `evals.json`, one eval's metadata, and trigger queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.importers import files
from skillup.importers.source import SourceValue
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_SKILL_FILE = "SKILL.md"


def convert(tops: list[SourceValue]) -> SuiteDraft:
    """The suite in a file: evals, one eval, or queries that should (not) trigger the skill."""
    top, path = tops[0], tops[0].source.path
    directory = path.resolve().parent
    # The skill that the evals belong to: where they lie, or one or two levels up.
    places = (directory, *directory.parents[:2])
    skill_directory = next((p for p in places if (p / _SKILL_FILE).is_file()), None)
    named = top.get("skill_name")
    skill = named.text() or (skill_directory.name if skill_directory else "")
    is_whole = skill and path.name.casefold() in ("evals.json", f"{skill}.evals.json".casefold())
    name = skill if is_whole else "-".join(filter(None, (skill, slug(path.stem))))
    draft = SuiteDraft(name, top.get("description").text())
    if skill_directory is not None:
        draft.skills.append(skill_directory)
    elif named:
        what = f"no {_SKILL_FILE} of `{skill}` is near this file"
        named.changed(what, "the suite names no skill: add it under `skills`")
    base = skill_directory or (directory.parent if directory.name == "evals" else directory)
    for number, node in enumerate((top.get("evals", "queries") or top).elements(), start=1):
        draft.cases.append(_case(node, number, skill, base))
    return draft


def _case(node: SourceValue, number: int, skill: str, base: Path) -> CaseDraft:
    prompt = node.get("query", "prompt")
    text = prompt.text()
    if not text.strip():
        raise (prompt or node).refuse("there is no message in this eval", "write one")
    is_query, label = bool(node.get("query")), node.get("id", "eval_id").text()
    checks: list[dict[str, Any]] = []
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
            files.place(item.text(), item, case.placed, base)
    return case
