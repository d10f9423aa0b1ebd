"""A session of an agent as a case: its messages as turns, with checks that it suggests."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.checks import CheckContext, evaluate
from skillup.checks.tools import argument
from skillup.errors import UsageError
from skillup.importers.write import literal_checks, slug
from skillup.importers.yaml_writer import to_yaml
from skillup.reports.text import one_line
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.record import Record, ToolCall, TurnRecord
from skillup.sessions.record import RecordedSession, record_of_session

# Words of an answer that a check may go by: names of files, and what stands in quotes.
_PHRASE = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,5})(?![\w/])"
    r"|`([^`\n]{2,40})`|“([^”\n]{2,40})”|\"([^\"\n]{2,40})\""
)
# What differs from run to run by its nature.
_CHANGING = re.compile(
    r"[0-9a-f]{7,}|\d\d:\d\d|\d{4}-\d\d|^v?\d+(?:\.\d+)+$|/tmp|/var/|/home/|/Users/|https?:"
    r"|<<|>>|\{\{|\}\}|\s{2}|(?:com|org|net|io|dev)$",
    re.IGNORECASE,
)
_MOST_PHRASES = 3
_MOST_TOOLS = 4
_MOST_FILES = 5
_TITLE = 80
_ID_WORDS = 7


def key_phrases(answer: str) -> list[str]:
    """The first few that may be there again."""
    found = ("".join(groups).strip(" .,;:!?") for groups in _PHRASE.findall(answer))
    lasting = (one for one in dict.fromkeys(found) if one and not _CHANGING.search(one))
    return list(filter(str.isprintable, lasting))[:_MOST_PHRASES]


def _suggested_checks(turn: TurnRecord, record: Record) -> list[dict[str, Any]]:
    """Checks of the turn that pass for what happened, as YAML data."""
    checks: list[dict[str, Any]] = []
    for call in _succeeded(turn):
        if call.kind == "skill":
            name = argument(call, "skill")
            check: dict[str, Any] = {"skill_used": name.text.removeprefix("/") if name else ""}
        elif call.kind in ("mcp", "other"):
            check = {"tool_called": {"name": call.name}}
        else:  # a name is the agent's own; a kind is what another agent has, too
            check = {"tool_called": {"kind": call.kind}}
        if check not in checks:
            checks.append(check)
    phrases = ({"contains": text} for text in key_phrases(turn.response))
    suggested = literal_checks([*checks[:_MOST_TOOLS], *phrases])
    passed = [check for check in suggested if _passes(check, turn, record)]
    return passed or ([{"matches": r"\S"}] if turn.response.strip() else [])


def _succeeded(turn: TurnRecord) -> list[ToolCall]:
    succeeded = {result.call_id for result in turn.tool_results if result.status != "error"}
    return [call for call in turn.tool_calls if call.id in succeeded]


def _files_made(turn: TurnRecord, cwd: str) -> list[str]:
    """Files of the workspace that tools wrote, relative to it."""
    paths: dict[str, None] = {}
    for call in _succeeded(turn):
        given = argument(call, "path") if call.kind in ("write", "edit") else None
        if given is not None and call.arguments.get("change") != "delete":
            path = os.path.relpath(Path(cwd, given.text), cwd)
            if not path.startswith("..") and not set(path) & set("*?[]{}<>"):
                paths[path] = None
    return list(paths)[:_MOST_FILES]


def _passes(check: dict[str, Any], turn: TurnRecord, record: Record) -> bool:
    try:
        model = Check.model_validate(check)
    except ValueError:
        return False
    return evaluate(model, CheckContext(record, turn, lambda _: None)).passed


@dataclass(frozen=True, slots=True)
class CaseText:
    """A case file that is not written yet."""

    case_id: str
    text: str
    notes: tuple[str, ...] = ()  # What of the session is not in the case


def case_of_session(
    session: RecordedSession, *, case_id: str | None = None, fixture: str | None = None
) -> CaseText:
    """The case of a session, which begins in `fixture`, a copy of the session's workspace.

    Its id is made of the first words if none is given. Raises UsageError if the session has no
    message that was answered.
    """
    turns = session.found.turns
    if not turns:
        raise UsageError(
            f"{session.path}: none of its messages was answered",
            hint="there is nothing in it that a case could ask for",
        )
    words = turns[0].content
    case_id = case_id or slug(" ".join(words[:500].split()[:_ID_WORDS]), otherwise="session")
    inputs: list[dict[str, Any]] = [{"content": templates.escape(turn.content)} for turn in turns]
    for data, source in zip(inputs, turns, strict=True):
        if source.command:
            data["slash_command"] = True
    about = {"id": case_id, "title": one_line(words, _TITLE), "tags": ["session"]}
    record = record_of_session(
        session, Case.model_validate({**about, "input": {"turns": inputs}}), ""
    )
    name = one_line(session.summary.session_id or session.path.stem, 80)
    started = f", {session.summary.started}" if session.summary.started else ""
    head = [f"# Made from the {session.engine} session {name}{started}."]
    cwd = session.summary.cwd
    if fixture is not None:
        head.append("# The fixture is as the session left it: undo in it what the agent has done.")
    elif cwd:
        head.append(f"# What it needs of its workspace, {cwd}, belongs in `context.fixture`.")
    head += [
        "# The checks are suggestions: what happened once. Keep what must be so, and take out what",
        "# may differ.",
    ]
    for turn, data in zip(record.turns, inputs, strict=True):
        if checks := _suggested_checks(turn, record):
            data["assertions"] = checks
        if cwd and (made := _files_made(turn, cwd)):
            check = json.dumps({"files_exist": made}, ensure_ascii=False)
            head.append(f"# Of runs, not of sessions, ask in turn {turn.turn_number}: {check}")
    header = "".join(one_line(line, 400) + "\n" for line in head)
    context = {"context": {"fixture": fixture}} if fixture is not None else {}
    text = header + to_yaml({**about, **context, "input": {"turns": inputs}})
    return CaseText(case_id, text, tuple(record.notes))


def suite_text(engine: str) -> str:
    """The smallest suite for a case that has none."""
    data = {"name": "from-sessions", "engine": {"name": engine}, "skills": []}
    return to_yaml(data)
