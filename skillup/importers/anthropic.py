"""Anthropic's skill evals: `evals.json`, one eval's metadata, and trigger queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError
from skillup.importers import references
from skillup.importers.draft import (
    CaseDraft,
    SuiteDraft,
    TurnDraft,
    slug,
)
from skillup.importers.promptfoo.values import SourceValue
from skillup.importers.source import JsonText, SourceFile
from skillup.load.file_text import read_text

EXPLANATIONS: dict[str, str] = {}
_SKILL_FILE = "SKILL.md"
_EVALS = "evals.json"


def convert(source: SourceFile) -> SuiteDraft:
    """The suite in `source`: evals, one eval, or queries that should (not) trigger the skill."""
    top = SourceValue.top(source)
    directory = _skill_directory(source.path)
    named = top.get("skill_name") if isinstance(top.value, dict) else None
    skill = named.text() if named is not None else _skill_beside(source.path, directory)
    draft = SuiteDraft(_suite_name(source.path, skill))
    if directory is not None:
        draft.skills.append(directory)
    elif named is not None:
        named.changed(
            f"no {_SKILL_FILE} of `{skill}` is near this file",
            "the suite names no skill: add it under `skills`",
        )
    base = directory or _root(source.path)
    if (described := top.get("description")) is not None:
        draft.description = described.text()
    for number, node in enumerate(_evals(top), start=1):
        query = node.get("query")
        case = _eval(node, number, skill, base) if query is None else _query(node, query, skill)
        draft.cases.append(case)
    return draft


def _suite_name(path: Path, skill: str) -> str:
    if not skill:
        return slug(path.stem)
    if path.name == _EVALS or path.name.casefold() == f"{skill}.{_EVALS}".casefold():
        return skill
    return f"{skill}-{slug(path.stem)}"


def _evals(top: SourceValue) -> list[SourceValue]:
    listed = top.get("evals", "queries") if isinstance(top.value, dict) else None
    return listed.elements() if listed is not None else top.elements()


def _root(path: Path) -> Path:
    directory = path.resolve().parent
    return directory.parent if directory.name == "evals" else directory


def _skill_directory(path: Path) -> Path | None:
    """The skill that the evals belong to: where they lie, or one or two levels up."""
    directory = path.resolve().parent
    for candidate in (directory, *directory.parents[:2]):
        if (candidate / _SKILL_FILE).is_file():
            return candidate
    return None


def _skill_beside(path: Path, directory: Path | None) -> str:
    """The skill's name where the file itself does not say it: from an evals.json beside it."""
    beside = path.resolve().parent / _EVALS
    if beside.is_file() and beside != path.resolve():
        try:
            data = JsonText(read_text(beside), beside).data
        except InvalidFilesError:
            data = None  # that file's trouble is not this one's
        if isinstance(data, dict) and isinstance(data.get("skill_name"), str):
            return str(data["skill_name"])
    return directory.name if directory is not None else ""


def _trigger(node: SourceValue, skill: str, wanted: Any) -> dict[str, Any]:
    if skill:
        return {"skill_used" if wanted else "skill_not_used": skill}
    node.changed(
        "the file does not say which skill", "any skill counts: name the one that is meant"
    )
    return {"tool_called" if wanted else "tool_not_called": {"kind": "skill"}}


def _query(node: SourceValue, query: SourceValue, skill: str) -> CaseDraft:
    said = query.text()
    if not said.strip():
        raise query.refuse("an empty query", "write what the user says")
    should = node.get("should_trigger")
    wanted = should is None or should.take() is not False
    turn = TurnDraft(query.message(), [_trigger(node, skill, wanted)])
    case = CaseDraft(node, slug(said), [turn], tags=["trigger" if wanted else "no-trigger"])
    label = node.get("id", "name")
    if label is not None:
        case.id = label.text()
    return case


def _eval(node: SourceValue, number: int, skill: str, base: Path) -> CaseDraft:
    prompt = node.get("prompt")
    if prompt is None or not prompt.text().strip():
        raise (prompt or node).refuse("an eval without a prompt", "write what the user says")
    label, name = node.get("id", "eval_id"), node.get("eval_name", "name", "title")
    turn = TurnDraft(prompt.message())
    case = CaseDraft(node, _eval_id(label, number), [turn])
    if name is not None:
        case.title = name.text()
    if (described := node.get("description")) is not None:
        case.description = described.text()
    if (tags := node.get("tags")) is not None:
        case.tags = tags.texts()
    if (expected := node.get("expected_output")) is not None:
        turn.expected_output = expected.text()
    if (should := node.get("should_trigger")) is not None:
        turn.assertions.append(_trigger(node, skill, should.take() is not False))
    for key in ("expectations", "assertions"):
        for item in listed.elements() if (listed := node.get(key)) is not None else ():
            if (text := _statement(item)).strip():
                turn.assertions.append({"rubric": text})
    files = node.get("files")
    for item in files.elements() if files is not None else ():
        if item.text():
            references.place(item.text(), item, case.placed, base=base)
    return case


def _eval_id(label: SourceValue | None, number: int) -> str:
    """A number alone says too little in a report."""
    text = label.text() if label is not None else str(number)
    return f"eval-{text}" if text.isdigit() else text


def _statement(item: SourceValue) -> str:
    if not isinstance(item.value, dict):
        return item.text()
    text = item.get("text", "description", "assertion", "outcome", "value")
    if text is None:
        item.note("an expectation without a text", "left out")
        return ""
    return text.text()
