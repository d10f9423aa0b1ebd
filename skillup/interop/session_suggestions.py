"""Checks that a session suggests: what happened in it, as far as rules can look for it again."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from skillup.checks import CheckContext, evaluate
from skillup.interop.session_phrases import key_phrases, may_last
from skillup.interop.templating import literal_checks
from skillup.schema.checks import Check
from skillup.schema.record import Record, ToolCall, TurnRecord

_MOST_TOOLS = 4
_MOST_FILES = 5
_SHORT = 30
_SKILL_NAMES = ("skill", "name", "command")
_PATHS = ("path", "file_path", "notebook_path")


def suggested_checks(turn: TurnRecord, record: Record) -> list[dict[str, Any]]:
    """Checks of the turn that hold for what happened, as YAML data."""
    wanted = [*_tools(turn), *({"contains": text} for text in _phrases(turn))]
    wanted = literal_checks(wanted)
    held = [check for check in wanted if _holds(check, turn, record)]
    answer = turn.response.strip(" .!\n")
    if held or not answer:
        return held
    if len(answer) <= _SHORT and may_last(answer):
        return [literal_checks({"contains": answer})]
    return [{"matches": r"\S"}]


def files_made(turn: TurnRecord, cwd: str | None) -> list[str]:
    """Files of the workspace that tools of the turn wrote, relative to it, each once."""
    paths: dict[str, None] = {}
    for call in _succeeded(turn):
        if call.kind in ("write", "edit"):
            given = next((call.arguments[key] for key in _PATHS if key in call.arguments), None)
            path = _inside(given, cwd) if isinstance(given, str) else None
            if path is not None:
                paths[path] = None
    return list(paths)[:_MOST_FILES]


def _succeeded(turn: TurnRecord) -> Iterator[ToolCall]:
    """Calls that failed, or that nothing is known of, suggest nothing."""
    succeeded = {result.call_id for result in turn.tool_results if result.status != "error"}
    yield from (call for call in turn.tool_calls if call.id in succeeded)


def _tools(turn: TurnRecord) -> Iterator[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for call in _succeeded(turn):
        check = _check_of(call)
        if check is not None and check not in seen:
            seen.append(check)
    yield from seen[:_MOST_TOOLS]


def _check_of(call: ToolCall) -> dict[str, Any] | None:
    if call.kind == "skill":
        names = (call.arguments.get(key) for key in _SKILL_NAMES)
        name = next((name for name in names if isinstance(name, str) and name.split()), None)
        return {"skill_used": name.split()[0].lstrip("/")} if name else None
    # A name is the agent's own; a kind is what another agent has, too.
    named = call.kind in ("mcp", "other")
    return {"tool_called": {"name": call.name} if named else {"kind": call.kind}}


def _phrases(turn: TurnRecord) -> list[str]:
    return key_phrases(turn.response, turn.content)


def _holds(check: dict[str, Any], turn: TurnRecord, record: Record) -> bool:
    try:
        wanted = Check.model_validate(check)
    except ValueError:
        return False
    return evaluate(wanted, CheckContext(record, turn, lambda _: None)).passed


def _inside(path: str, cwd: str | None) -> str | None:
    """The path relative to the workspace; None if it leads out of it, or cannot be told."""
    path = path.replace("\\", "/")
    if posixpath.isabs(path):
        root = posixpath.normpath(cwd or "")
        if not cwd or not posixpath.normpath(path).startswith(root.rstrip("/") + "/"):
            return None
        path = posixpath.relpath(path, root)
    path = posixpath.normpath(path)
    usual = path not in (".", "..") and not path.startswith("../") and path.isprintable()
    return path if usual and not any(mark in path for mark in "*?[]{}<>") else None
