"""A session of an agent as a case: its messages as turns, with checks that it suggests."""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.checks import CheckContext, evaluate
from skillup.errors import UsageError
from skillup.importers.write import literal_checks, slug
from skillup.importers.yaml_writer import to_yaml
from skillup.reports.text import one_line
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.record import Record, ToolCall, TurnRecord
from skillup.sessions.record import RecordedSession, record_of_session

# Words of an answer that a check may go by: the same ones each time, the likeliest to last first.

_FILE = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,5}(?![\w/])")
_QUOTED = re.compile(r"`([^`\n]{2,40})`|“([^”\n]{2,40})”|\"([^\"\n]{2,40})\"")
# A single digit says something only with what was counted.
_NUMBER = re.compile(
    r"(?<![\w.,:/-])(?:\d{1,6} [^\W\d_]{3,20}|\d{2,3}(?:[,.]?\d{1,3})?)(?![\w:/-]|[.,]\d)"
)
_WORD = re.compile(r"(?<![\w/.-])[^\W\d_]{7,24}(?![\w/.-]*[\w/])")
_CHANGING = re.compile(
    r"[0-9a-f]{7,}|\d\d:\d\d|\d{4}-\d\d|^v?\d+(?:\.\d+)+$|/tmp|/var/|/home/|/Users/|https?:"
    r"|<<|>>|\{\{|\}\}|\s{2}|trimmed for fixture|(?:com|org|net|io|dev)$",
    re.IGNORECASE,
)


def key_phrases(answer: str, message: str, most: int = 3) -> list[str]:
    """Up to `most` of them: names of files, what stands in quotes, numbers, then long words.

    Words that the user's own `message` has, too, come last: an agent repeats them whatever it does.
    """
    found = dict.fromkeys(_candidates(answer))
    asked = message.casefold()
    told = sorted(found, key=lambda phrase: phrase.casefold() in asked)
    chosen: list[str] = []
    for phrase in told:
        known = any(phrase.casefold() in other.casefold() for other in chosen)
        if not known and may_last(phrase):
            chosen.append(phrase)
    return chosen[:most]


def may_last(phrase: str) -> bool:
    """Nothing in it differs from run to run by its nature."""
    return phrase.isprintable() and _CHANGING.search(phrase) is None


def _candidates(answer: str) -> Iterator[str]:
    yield from _FILE.findall(answer)
    for match in _QUOTED.finditer(answer):
        yield next(group for group in match.groups() if group).strip(" .,;:!?")
    yield from _NUMBER.findall(answer)
    words = dict.fromkeys(_WORD.findall(answer))
    # The longest say most; those of the same length in the order of the answer.
    yield from sorted(words, key=len, reverse=True)


# Checks that a session suggests: what happened in it, as far as rules can look for it again.

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


_TITLE = 80
_ID_WORDS = 7
_NO_SNAPSHOT = "A session has no snapshot of its files, so this can only be asked of runs:"


@dataclass(frozen=True, slots=True)
class CaseText:
    """A case file that is not written yet."""

    case_id: str
    text: str
    notes: tuple[str, ...] = ()
    """What of the session is not in the case."""


def case_of_session(
    session: RecordedSession,
    *,
    schema: str,
    revision: str | None = None,
    fixture: str | None = None,
    case_id: str | None = None,
) -> CaseText:
    """The case of a session; `schema` is what its header names for editors, if anything.

    Its id is made of the first words if none is given. `fixture` is the folder of the session's
    workspace, relative to the suite. Raises UsageError if the session has no message that was
    answered, or does not tell what was said to the agent.
    """
    _check_told(session)
    words = next((turn.content for turn in session.found.turns), "")
    case_id = case_id or slug(" ".join(words[:500].split()[:_ID_WORDS]), otherwise="session")
    plain = _plain_data(session, case_id, words)
    record = record_of_session(session, Case.model_validate(plain), "")
    head = [
        *([f"# yaml-language-server: $schema={schema}"] if schema else []),
        f"# Made from the {session.engine} session {_id(session)}"
        + (f", {session.summary.started}" if session.summary.started else "") + ".",
    ]  # fmt: skip
    if revision:
        head.append(f"# The session began at {revision} of its repository.")
    head += [
        "# The checks are suggestions: what happened once. Keep what must be so, and take out what",
        "# may differ.",
    ]
    about = {key: plain[key] for key in ("id", "title", "tags")}
    parts = ["\n".join(map(_comment, head)) + "\n" + to_yaml(about)]
    if fixture is not None:
        parts.append(_fixture(fixture))
    parts.append("input:\n  turns:\n")
    for turn, data in zip(record.turns, plain["input"]["turns"], strict=True):
        parts.append(textwrap.indent("".join(_turn(turn, data, record, session)), "    "))
    return CaseText(case_id, "".join(parts), tuple(record.notes))


def _check_told(session: RecordedSession) -> None:
    turns = session.found.turns
    if not turns:
        wordless = "that has a text " if session.found.wordless else ""
        raise UsageError(
            f"{session.path}: none of its messages {wordless}was answered",
            hint="there is nothing in it that a case could ask for",
        )
    if not all(turn.content.strip() for turn in turns):
        raise UsageError(
            f"{session.path}: it does not tell what the user said",
            hint="recordings of events have no prompts; give the session file of the agent itself",
        )


def _plain_data(session: RecordedSession, case_id: str, words: str) -> dict[str, Any]:
    turns = []
    for turn in session.found.turns:
        data: dict[str, Any] = {"content": templates.escape(turn.content)}
        if turn.command:
            data["slash_command"] = True
        turns.append(data)
    title = one_line(words, _TITLE)
    return {"id": case_id, "title": title, "tags": ["session"], "input": {"turns": turns}}


def _id(session: RecordedSession) -> str:
    return one_line(session.summary.session_id or session.path.stem, 80)


def _fixture(fixture: str) -> str:
    comment = (
        "# The workspace as it is now, after the session: undo in it what the agent has done.\n"
    )
    return comment + to_yaml({"context": {"fixture": fixture}})


def _turn(
    turn: TurnRecord, data: dict[str, Any], record: Record, session: RecordedSession
) -> Iterator[str]:
    """The turn as an item of a list."""
    held = session.found.turns[turn.turn_number - 1]
    if held.interrupted:
        yield "# The user interrupted the agent here.\n"
    if held.command:
        yield "# A command of the agent's CLI, not text for the model.\n"
    yield _item(data)
    checks = suggested_checks(turn, record)
    made = files_made(turn, session.summary.cwd)
    if checks:
        yield "  # Suggested by what happened:\n  assertions:\n"
        yield textwrap.indent("".join(map(_item, checks)), "    ")
    if made:
        lines = [_NO_SNAPSHOT, *([] if checks else ["assertions:"])]
        lines += [f"  {line}" for line in _item({"files_exist": made}).splitlines()]
        yield textwrap.indent("".join(f"# {line}\n" for line in lines), "  ")


def _item(data: dict[str, Any]) -> str:
    """``- key: value``, in as many lines as it takes."""
    return textwrap.dedent(to_yaml({"x": [data]}).partition("\n")[2])


def _comment(line: str) -> str:
    """One line whatever is in it."""
    return one_line(line, 400)


def suite_text(schema: str, engine: str, skills: Sequence[str] = ()) -> str:
    """The smallest suite for a case that has none."""
    data: dict[str, Any] = {"name": "from-sessions"}
    data["engine"] = {"name": engine}
    data["skills"] = [{"path": path} for path in skills]
    return to_yaml(data, header=f"# yaml-language-server: $schema={schema}\n")
